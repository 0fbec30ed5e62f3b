package harness

import (
	"encoding/json"
	"fmt"
	"time"

	"the-loop/sessions"
)

// spot is how far an agent's answers were read: a conversation, and an offset in bytes in its file. As a string it is JSON.
type transcriptCursor struct {
	Recorded     string    `json:"talk"`             // the session's conversation as it was recorded then
	Conversation string    `json:"now"`              // the one that it had become
	Offset       int64     `json:"at"`               // offset in its file
	ReportOffset int64     `json:"reports,omitzero"` // offset in the session's report file
	File         string    `json:"file,omitempty"`   // where that conversation is written, once it is known
	Since        time.Time `json:"since,omitzero"`   // what was said before does not count

	Turn   sessions.Turn `json:"turn,omitzero"`
	Queued int           `json:"queued,omitzero"` // texts that are still to be answered, where the record does not tell when a turn begins
}

func (s transcriptCursor) String() string {
	data, _ := json.Marshal(s) // strings, numbers and a time always encode
	return string(data)
}

func parseCursor(place string) (transcriptCursor, error) {
	var s transcriptCursor
	err := json.Unmarshal([]byte(place), &s)
	if err != nil || s.Offset < 0 || s.ReportOffset < 0 || !sessions.ValidConversation(s.Recorded) || !sessions.ValidConversation(s.Conversation) {
		return transcriptCursor{}, fmt.Errorf("%q is no place in an agent's record", place)
	}
	return s, nil
}

// newCursor is where reading goes on: at the place, or at the moment from which on it counts.
func newCursor(c sessions.Conversation, place sessions.Offset) (transcriptCursor, error) {
	if place != "" {
		return parseCursor(string(place))
	}
	if !sessions.ValidConversation(c.ID) {
		return transcriptCursor{}, fmt.Errorf("%q is no id of a conversation", c.ID)
	}
	return transcriptCursor{Recorded: c.ID, Conversation: c.ID, Since: c.Started}, nil
}

// turnParser gathers texts from the lines of a growing file. One of which only a later line tells whether it ends the turn
// waits, and reading goes on from it the next time.
type turnParser struct {
	turn          sessions.Turn
	messages      []sessions.AgentMessage
	pending       []sessions.AgentMessage
	offset        int64 // offset of the line
	pendingOffset int64 // offset of the first line that waits; -1: none does
}

// addPending has a text wait for the next line. start is the offset of its own.
func (l *turnParser) addPending(s sessions.AgentMessage, start int64) {
	if s.Text == "" {
		return
	}
	if l.pending = append(l.pending, s); l.pendingOffset < 0 {
		l.pendingOffset = start
	}
}

// settle takes what waits: now it is known whether it ended the turn.
func (l *turnParser) flushPending(final bool) {
	for _, s := range l.pending {
		s.Final = final
		l.messages = append(l.messages, s)
	}
	l.pending, l.pendingOffset = nil, -1
}
