package transcript

import (
	"encoding/json"
	"fmt"
	"time"

	"the-loop/sessions"
)

// Cursor is how far a transcript was read: a conversation, and an offset in bytes in its file. Agents embed it in their own
// offsets.
type Cursor struct {
	Recorded     string    `json:"talk"`           // the session's conversation as it was recorded then
	Conversation string    `json:"now"`            // the one that it had become
	Offset       int64     `json:"at"`             // in its file
	File         string    `json:"file,omitempty"` // where that conversation is written, once it is known
	Since        time.Time `json:"since,omitzero"` // what was said before does not count

	Turn sessions.Turn `json:"turn,omitzero"`
}

// Start returns the cursor of a conversation from the moment on that its run began.
func Start(c sessions.Conversation) (Cursor, error) {
	if !sessions.ValidConversation(c.ID) {
		return Cursor{}, fmt.Errorf("%q is no id of a conversation", c.ID)
	}
	return Cursor{Recorded: c.ID, Conversation: c.ID, Since: c.Started}, nil
}

// IsValid reports whether the cursor may have been made by [Start].
func (c Cursor) IsValid() bool {
	return c.Offset >= 0 && sessions.ValidConversation(c.Recorded) && sessions.ValidConversation(c.Conversation)
}

// SwitchTo moves the cursor to the beginning of another conversation. What was said there before since does not count.
func (c *Cursor) SwitchTo(conversation string, since time.Time) {
	c.Conversation, c.Offset, c.File, c.Since, c.Turn = conversation, 0, "", since, sessions.Turn{}
}

// Counts reports whether a message was said late enough to count.
func (c Cursor) Counts(m sessions.AgentMessage) bool { return !m.At.Before(c.Since) }

// Encode returns an agent's own struct as an offset. It must consist of what always encodes: strings, numbers and times.
func Encode(v any) sessions.Offset {
	data, _ := json.Marshal(v)
	return sessions.Offset(data)
}

// Decode reads what [Encode] made.
func Decode(o sessions.Offset, v any) error {
	if json.Unmarshal([]byte(o), v) != nil {
		return InvalidOffset(o)
	}
	return nil
}

// InvalidOffset is the error of an offset that the agent did not make.
func InvalidOffset(o sessions.Offset) error {
	return fmt.Errorf("%q is no offset in the agent's transcript", o)
}
