package harness

import "the-loop/sessions"

// moveKeys and denyKeys are what each agent program here understands in its dialogs and menus in the same way: the first
// move the pointer, the other turns down what is asked. C-c does not everywhere: Claude Code 2.1.197 keeps its dialog open, and
// ends at the second one.
func moveKeys() []string { return []string{sessions.KeyUp, sessions.KeyDown} }

func denyKeys() []string { return []string{sessions.KeyEscape} }
