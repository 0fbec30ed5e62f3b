package opencode

import (
	"strconv"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// transcriptOffset is a position in the database, and in the log that tells when to read it. Where its files are is kept, so that
// what an agent said last can be read when it has ended.
type transcriptOffset struct {
	Since     time.Time           `json:"since"` // what was said before does not count
	DB        string              `json:"db,omitempty"`
	Binary    string              `json:"binary,omitempty"`
	Log       string              `json:"log,omitempty"`
	LogOffset int64               `json:"logAt,omitzero"` // offset in the log
	RunID     string              `json:"run,omitempty"`  // the log's name for the process in the pane
	LastRead  map[string]position `json:"read,omitempty"` // the session's conversations
	Turn      sessions.Turn       `json:"turn,omitzero"`
}

// position is the last message that was read of a conversation.
type position struct {
	At int64  `json:"at"` // milliseconds
	ID string `json:"id,omitempty"`
}

// startOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startOffset(conv sessions.Conversation, since sessions.Offset) (s transcriptOffset, err error) {
	s = transcriptOffset{Since: conv.Started}
	if since != "" {
		if s, err = parseOffset(since); err != nil {
			return transcriptOffset{}, err
		}
	}
	if s.LastRead == nil {
		s.LastRead = map[string]position{}
	}
	return s, nil
}

func parseOffset(o sessions.Offset) (s transcriptOffset, err error) {
	if at, err := strconv.ParseInt(string(o), 10, 64); err == nil { // as the version before wrote where evidence begins
		return transcriptOffset{Since: time.UnixMilli(at)}, nil
	}
	if err := transcript.Decode(o, &s); err != nil || s.LogOffset < 0 || s.Since.IsZero() {
		return transcriptOffset{}, transcript.InvalidOffset(o)
	}
	return s, nil
}
