package harness

import "the-loop/sessions"

// CursorName is Cursor's name in the configuration.
const CursorName = "cursor"

// Cursor is Cursor's agent program, which cannot be hosted: it takes no id for a new conversation, tells none, and does not
// resume one in a terminal. [Set.Get] refuses it with that reason.
type Cursor struct{}

// Name is [CursorName].
func (Cursor) Name() string { return CursorName }

// Capabilities are none.
func (Cursor) Capabilities() sessions.Capabilities { return sessions.Capabilities{} }

// Command refuses.
func (c Cursor) Command(sessions.Launch) (sessions.Command, error) {
	return sessions.Command{}, c.refusal()
}

func (Cursor) refusal() error {
	return &sessions.Refusal{Cause: sessions.ErrRefused,
		What:   "cursor cannot be hosted in tmux: its agent takes no id for a conversation and does not resume one in a terminal",
		Remedy: "use another harness, or describe a program of your own under harnesses in the config"}
}
