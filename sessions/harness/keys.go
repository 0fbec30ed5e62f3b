package harness

import "the-loop/sessions"

// moveKeys and denyKeys are what each agent program here understands in its dialogs and menus in the same way: the first
// move the pointer, the others turn down what is asked.
func moveKeys() []string { return []string{sessions.KeyUp, sessions.KeyDown} }

func denyKeys() []string { return []string{sessions.KeyEscape, sessions.KeyCtrlC} }
