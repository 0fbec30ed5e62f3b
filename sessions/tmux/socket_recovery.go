package tmux

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

// recoverSocket looks for our server when its socket is missing, and has it make the socket again (SIGUSR1). It reports whether
// there was one. Without /proc none is found.
func (t *Tmux) recoverSocket(ctx context.Context) bool {
	all, err := t.processes.List(ctx)
	if err != nil {
		t.log.WarnContext(ctx, "cannot look for a tmux server without its socket", "error", err)
		return false
	}
	for _, p := range all {
		if isTmuxServer(p) && t.isOurServer(t.processes.Argv(p.PID)) {
			if t.awaitSocket(ctx) {
				return true
			}
			t.log.WarnContext(ctx, "the socket of the tmux server was removed; it is made again", "pid", p.PID)
			if err := t.processes.Signal(ctx, p, syscall.SIGUSR1); err == nil {
				t.awaitServer(ctx)
			}
			return true
		}
	}
	return false
}

// serverStartTimeout is how long a server that was just started may take until its socket is there.
const serverStartTimeout = 500 * time.Millisecond

// awaitSocket reports whether the socket is there after all. A server that somebody started since we looked must get no signal:
// it may not handle it yet and die, and one that does drops the clients that it has not accepted.
func (t *Tmux) awaitSocket(ctx context.Context) bool {
	over := time.Now().Add(serverStartTimeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		_, err := t.run(ctx, call{args: []string{"list-sessions", "-F", "."}})
		if !errors.Is(err, errNoSocket) {
			return true
		}
		if time.Now().After(over) || sleep(ctx, wait) != nil {
			return false
		}
	}
}

// isOurServer reports the argv of a server that one of our clients started: a server keeps its client's.
func (t *Tmux) isOurServer(words []string) bool {
	has := func(flag, value string) bool {
		at := slices.Index(words, flag)
		return at >= 0 && at+1 < len(words) && words[at+1] == value
	}
	return has(t.socket[0], t.socket[1]) && has("-f", t.configPath())
}

// awaitServer waits until the socket is back, or for one time-out.
func (t *Tmux) awaitServer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	for wait := time.Millisecond; sleep(ctx, wait) == nil; wait = min(2*wait, 50*time.Millisecond) {
		if _, err := t.run(ctx, call{args: []string{"list-sessions", "-F", "."}}); err == nil {
			return
		}
	}
}
