package harness

import (
	"encoding/json"
	"fmt"
	"time"

	"the-loop/sessions"
)

// spot is how far an agent's answers were read: a conversation, and an offset in bytes in its file. As a string it is JSON.
type spot struct {
	Talk    string    `json:"talk"`             // the session's conversation as it was recorded then
	Now     string    `json:"now"`              // the one that it had become
	At      int64     `json:"at"`               // offset in its file
	Reports int64     `json:"reports,omitzero"` // offset in the session's report file
	File    string    `json:"file,omitempty"`   // where that conversation is written, once it is known
	Since   time.Time `json:"since,omitzero"`   // what was said before does not count

	Turn   sessions.Turn `json:"turn,omitzero"`
	Queued int           `json:"queued,omitzero"` // texts that are still to be answered, where the record does not tell when a turn begins
}

func (s spot) String() string {
	data, _ := json.Marshal(s) // strings, numbers and a time always encode
	return string(data)
}

func parseSpot(place string) (spot, error) {
	var s spot
	err := json.Unmarshal([]byte(place), &s)
	if err != nil || s.At < 0 || s.Reports < 0 || !sessions.ValidConversation(s.Talk) || !sessions.ValidConversation(s.Now) {
		return spot{}, fmt.Errorf("%q is no place in an agent's record", place)
	}
	return s, nil
}

// spotOf is where reading goes on: at the place, or at the moment from which on it counts.
func spotOf(c sessions.Conversation, place string) (spot, error) {
	if place != "" {
		return parseSpot(place)
	}
	if !sessions.ValidConversation(c.ID) {
		return spot{}, fmt.Errorf("%q is no id of a conversation", c.ID)
	}
	return spot{Talk: c.ID, Now: c.ID, Since: c.Started}, nil
}

// turnLines gathers texts from the lines of a growing file. One of which only a later line tells whether it ends the turn
// waits, and reading goes on from it the next time.
type turnLines struct {
	turn    sessions.Turn
	said    []sessions.Said
	waiting []sessions.Said
	at      int64 // offset of the line
	held    int64 // offset of the first line that waits; -1: none does
}

// wait has a text wait for the next line. start is the offset of its own.
func (l *turnLines) wait(s sessions.Said, start int64) {
	if s.Text == "" {
		return
	}
	if l.waiting = append(l.waiting, s); l.held < 0 {
		l.held = start
	}
}

// settle takes what waits: now it is known whether it ended the turn.
func (l *turnLines) settle(final bool) {
	for _, s := range l.waiting {
		s.Final = final
		l.said = append(l.said, s)
	}
	l.waiting, l.held = nil, -1
}
