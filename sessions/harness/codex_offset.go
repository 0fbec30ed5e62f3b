package harness

import (
	"strconv"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// codexOffset is a position in the file of a conversation, and in the history where evidence counts from there.
type codexOffset struct {
	transcript.Cursor
	HistoryChanged int64  `json:"reports,omitzero"` // when the history was changed last, as of that look, in Unix seconds
	Home           string `json:"home,omitempty"`   // where the history is; empty: no evidence counts from here
	HistoryOffset  int64  `json:"history,omitzero"` // in the history
}

// startCodexOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startCodexOffset(talk sessions.Conversation, since sessions.Offset) (codexOffset, error) {
	if since != "" {
		return parseCodexOffset(since)
	}
	c, err := transcript.Start(talk)
	return codexOffset{Cursor: c}, err
}

func parseCodexOffset(o sessions.Offset) (p codexOffset, err error) {
	if p, ok := parseOldCodexOffset(o); ok {
		return p, nil
	}
	if err := transcript.Decode(o, &p); err != nil || !p.IsValid() || p.HistoryOffset < 0 {
		return codexOffset{}, transcript.InvalidOffset(o)
	}
	return p, nil
}

// parseOldCodexOffset parses "home@offset", as the version before wrote where evidence begins.
func parseOldCodexOffset(o sessions.Offset) (codexOffset, bool) {
	i := strings.LastIndex(string(o), "@")
	if i < 0 {
		return codexOffset{}, false
	}
	at, err := strconv.ParseInt(string(o[i+1:]), 10, 64)
	return codexOffset{Home: string(o[:i]), HistoryOffset: at}, err == nil && at >= 0
}
