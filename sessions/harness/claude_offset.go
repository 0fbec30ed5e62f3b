package harness

import (
	"strconv"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// claudeOffset is a position in the transcript and the reports of a session.
type claudeOffset struct {
	transcript.Cursor
	Reports int64 `json:"reports,omitzero"` // offset in the session's reports
}

// startOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startOffset(talk sessions.Conversation, since sessions.Offset) (claudeOffset, error) {
	if since != "" {
		return parseClaudeOffset(since)
	}
	c, err := transcript.Start(talk)
	return claudeOffset{Cursor: c}, err
}

func parseClaudeOffset(o sessions.Offset) (p claudeOffset, err error) {
	if p, ok := parseOldClaudeOffset(o); ok {
		return p, nil
	}
	if err := transcript.Decode(o, &p); err != nil || !p.IsValid() || p.Reports < 0 {
		return claudeOffset{}, transcript.InvalidOffset(o)
	}
	return p, nil
}

// parseOldClaudeOffset parses "reports:conversation@offset", as the version before wrote where evidence begins.
func parseOldClaudeOffset(o sessions.Offset) (claudeOffset, bool) {
	reports, rest, ok := strings.Cut(string(o), ":")
	id, at, ok2 := strings.Cut(rest, "@")
	from, err := strconv.ParseInt(reports, 10, 64)
	offset, err2 := strconv.ParseInt(at, 10, 64)
	p := claudeOffset{Cursor: transcript.Cursor{Recorded: id, Conversation: id, Offset: offset}, Reports: from}
	return p, ok && ok2 && err == nil && err2 == nil && from >= 0 && p.IsValid()
}
