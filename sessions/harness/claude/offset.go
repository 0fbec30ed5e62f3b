package claude

import (
	"strconv"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// transcriptOffset is a position in the transcript and the reports of a session.
type transcriptOffset struct {
	transcript.Cursor
	Reports int64 `json:"reports,omitzero"` // offset in the session's reports
}

// startOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startOffset(conv sessions.Conversation, since sessions.Offset) (transcriptOffset, error) {
	if since != "" {
		return parseOffset(since)
	}
	c, err := transcript.Start(conv)
	return transcriptOffset{Cursor: c}, err
}

func parseOffset(o sessions.Offset) (p transcriptOffset, err error) {
	if p, ok := parseOldOffset(o); ok {
		return p, nil
	}
	if err := transcript.Decode(o, &p); err != nil || !p.IsValid() || p.Reports < 0 {
		return transcriptOffset{}, transcript.InvalidOffset(o)
	}
	return p, nil
}

// parseOldOffset parses "reports:conversation@offset", as the version before wrote where evidence begins.
func parseOldOffset(o sessions.Offset) (transcriptOffset, bool) {
	reports, rest, ok := strings.Cut(string(o), ":")
	id, at, ok2 := strings.Cut(rest, "@")
	from, err := strconv.ParseInt(reports, 10, 64)
	offset, err2 := strconv.ParseInt(at, 10, 64)
	p := transcriptOffset{Cursor: transcript.Cursor{Recorded: id, Conversation: id, Offset: offset}, Reports: from}
	return p, ok && ok2 && err == nil && err2 == nil && from >= 0 && p.IsValid()
}
