// Package tmux drives tmux for the core: it implements [sessions.Terminal] with one tmux client per call and keeps no
// connection open (a control-mode client that falls behind takes tmux 3.3a to 3.6a down, tmux/tmux#5499).
//
// The server is our own: its own socket, a configuration file of our own and a clean environment. Panes are found by
// their mark, the pane option @the-loop-id, which a split does not inherit and a respawn keeps; names are never targets,
// because tmux matches prefixes of them.
//
// Whatever is typed goes through one invocation that loads a buffer from standard input, checks inside the server that
// the pane is ours, alive and takes input, and only then pastes. The text is complete in the kernel before the client
// starts, so a process that dies in between leaves all of it or nothing. The server asks a client for its standard
// input before it runs what follows; a client that died with all of it unread has therefore typed nothing, and this is
// how a certain failure is told from a doubtful one (see [Tmux.Paste]).
//
// What was met on tmux 3.3a and is kept in mind throughout:
//
//   - paste-buffer into a dead pane kills the server (tmux/tmux#3830), and so does new-session when window-size is
//     manual globally; it is set on each window instead.
//   - paste-buffer into a pane whose input is off (select-pane -d) drops the text and reports success.
//   - set-buffer in a client's argv is run by a stopped server once it goes on, though the client is long dead;
//     load-buffer from standard input is not.
//   - the server's message log keeps every command with its values, readable by show-messages from any pane; the log is
//     switched off.
//   - a #[ in new-session -c cannot be escaped; the client's own working folder can hold it.
//   - new-session with a single argument runs it through a shell.
//
// tmux 3.7 turns control bytes in pastes into visible text unless paste-buffer has -S, which older ones do not know. The
// server itself is asked, by a format that came with the same release.
//
// tmux makes its server a session of its own (setsid), so no signal to our process group reaches it. A service manager
// that ends a whole control group still ends the server and every agent in it (gastownhall/gascity#1174): under systemd
// give the service KillMode=process. Starting the server in a scope of its own (systemd-run --user --scope) may come.
package tmux
