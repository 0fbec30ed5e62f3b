package codex

import (
	"strconv"
	"strings"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// transcriptOffset is a position in the file of a conversation, and in the history where evidence counts from there.
type transcriptOffset struct {
	transcript.Cursor
	HistoryChanged int64  `json:"reports,omitzero"` // when the history was changed last, as of that look, in Unix seconds
	Home           string `json:"home,omitempty"`   // where the history is; empty: no evidence counts from here
	HistoryOffset  int64  `json:"history,omitzero"` // in the history
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
	if err := transcript.Decode(o, &p); err != nil || !p.IsValid() || p.HistoryOffset < 0 {
		return transcriptOffset{}, transcript.InvalidOffset(o)
	}
	return p, nil
}

// parseOldOffset parses "home@offset", as the version before wrote where evidence begins.
func parseOldOffset(o sessions.Offset) (transcriptOffset, bool) {
	i := strings.LastIndex(string(o), "@")
	if i < 0 {
		return transcriptOffset{}, false
	}
	at, err := strconv.ParseInt(string(o[i+1:]), 10, 64)
	return transcriptOffset{Home: string(o[:i]), HistoryOffset: at}, err == nil && at >= 0
}
