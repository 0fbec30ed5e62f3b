package harness

import (
	"strconv"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/transcript"
)

// openCodeOffset is a position in the database, and in the log that tells when to read it. Where its files are is kept, so that
// what an agent said last can be read when it has ended.
type openCodeOffset struct {
	Since     time.Time                   `json:"since"` // what was said before does not count
	DB        string                      `json:"db,omitempty"`
	Binary    string                      `json:"binary,omitempty"`
	Log       string                      `json:"log,omitempty"`
	LogOffset int64                       `json:"logAt,omitzero"` // offset in the log
	RunID     string                      `json:"run,omitempty"`  // the log's name for the process in the pane
	LastRead  map[string]openCodePosition `json:"read,omitempty"` // the session's conversations
	Turn      sessions.Turn               `json:"turn,omitzero"`
}

// openCodePosition is the last message that was read of a conversation.
type openCodePosition struct {
	At int64  `json:"at"` // milliseconds
	ID string `json:"id,omitempty"`
}

// startOpenCodeOffset returns where reading starts: at an offset, or where that is empty at the beginning of the conversation's run.
func startOpenCodeOffset(talk sessions.Conversation, since sessions.Offset) (s openCodeOffset, err error) {
	s = openCodeOffset{Since: talk.Started}
	if since != "" {
		if s, err = parseOpenCodeOffset(since); err != nil {
			return openCodeOffset{}, err
		}
	}
	if s.LastRead == nil {
		s.LastRead = map[string]openCodePosition{}
	}
	return s, nil
}

func parseOpenCodeOffset(o sessions.Offset) (s openCodeOffset, err error) {
	if at, err := strconv.ParseInt(string(o), 10, 64); err == nil { // as the version before wrote where evidence begins
		return openCodeOffset{Since: time.UnixMilli(at)}, nil
	}
	if err := transcript.Decode(o, &s); err != nil || s.LogOffset < 0 || s.Since.IsZero() {
		return openCodeOffset{}, transcript.InvalidOffset(o)
	}
	return s, nil
}
