package tmux

import "the-loop/sessions"

// AttachCommand is the argv that shows the pane's session, by id, so that no other name can be meant. Within our own
// server it switches the client there; elsewhere it attaches, nested in another tmux if need be. An observer gets a
// read-only client. Clients never change the size of a pane: that is fixed when it is made.
func (t *Tmux) AttachCommand(p sessions.Pane, readOnly, inside bool) []string {
	socket := t.socket
	if p.Server.Socket != "" {
		socket = []string{"-S", p.Server.Socket}
	}
	target := p.SessionID
	if target == "" {
		target = "=" + p.SessionName
	}
	argv := append([]string{t.binary, "-u"}, socket...)
	if inside && t.outerSocket != "" && t.outerSocket == socket[1] {
		argv = append(argv, "switch-client", "-t", target)
		if readOnly {
			argv = append(argv, ";", "refresh-client", "-f", "read-only") // switch-client -r would toggle it
		}
		return argv
	}
	argv = append(argv, "-N", "attach-session")
	if readOnly {
		argv = append(argv, "-r")
	}
	return append(argv, "-t", target)
}
