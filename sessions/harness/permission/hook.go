package permission

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"the-loop/sessions"
)

const (
	ioTimeout    = 5 * time.Second        // for what a client has to send at once
	pollInterval = 200 * time.Millisecond // between two checks whether the agent still waits
	maxMessage   = 16 << 20
)

// Hook is an agent's hook that waits for the decision about one permission request.
type Hook struct {
	Dir       string          // the folder of the sockets
	Out       *os.File        // where the agent reads the decision
	ParentPID func() int      // of the process that started the hook; when it changes, that process has ended
	Payload   json.RawMessage // what the agent told the hook of the request
	IsMoot    func() bool     // reports whether the agent went on without the decision; nil: that is not known

	// OnDecided is called when the agent was given a decision. The token is that of the request.
	OnDecided func(token string, allow bool)
}

// Wait listens for a decision and hands it to the agent. It first calls report with the token of the request; when that fails,
// nobody knows of the request and Wait fails too. It ends when the request is decided, when nobody waits for the decision any
// more, or when ctx ends. The agent's own dialog stays usable meanwhile.
func (h Hook) Wait(ctx context.Context, report func(token string) error) error {
	w := &waiter{hook: h, token: rand.Text(), decided: make(chan struct{})}
	if err := w.listen(); err != nil {
		return errors.Join(err, report("")) // without a token it cannot be decided
	}
	defer w.close()
	if err := report(w.token); err != nil {
		return err
	}
	w.conns.Go(w.accept)
	w.removeStaleSockets()
	return w.wait(ctx)
}

// isReaderGone reports whether nobody reads any more what is written to the file. It is false for a file that is no pipe or socket.
func isReaderGone(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// waiter is a hook while it waits. Its goroutines end when the listener and the connections are closed.
type waiter struct {
	hook     Hook
	token    string
	listener net.Listener
	conns    sync.WaitGroup
	decided  chan struct{} // closed when it was answered

	mu        sync.Mutex // guards the fields that follow
	answered  bool
	openConns []net.Conn
}

func (w *waiter) listen() error {
	if err := os.MkdirAll(w.hook.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of permission requests: %w", err)
	}
	name, dir, err := shortSocketPath(SocketPath(w.hook.Dir, w.token))
	if err != nil {
		return fmt.Errorf("open the folder of permission requests: %w", err)
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		_ = dir.Close()
		return fmt.Errorf("listen for a decision: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its name may be one through a descriptor
	w.listener = l
	return errors.Join(os.Chmod(name, 0o600), dir.Close())
}

// staleSocketAge is the least age of a killed hook's socket: one that is just being made does not answer either.
const staleSocketAge = time.Minute

// removeStaleSockets removes the sockets of killed hooks.
func (w *waiter) removeStaleSockets() {
	all, err := os.ReadDir(w.hook.Dir)
	if err != nil {
		return // the next hook does it
	}
	for _, e := range all {
		info, err := e.Info()
		if err != nil || info.Mode().Type() != os.ModeSocket || time.Since(info.ModTime()) < staleSocketAge {
			continue
		}
		if c, err := dial(context.Background(), filepath.Join(w.hook.Dir, e.Name())); err == nil {
			_ = c.Close()
		}
	}
}

func (w *waiter) close() {
	_ = os.Remove(SocketPath(w.hook.Dir, w.token))
	_ = w.listener.Close()
	w.mu.Lock()
	for _, c := range w.openConns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.conns.Wait()
}

func (w *waiter) wait(ctx context.Context) error {
	parent := w.hook.ParentPID()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-w.decided:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if w.hook.ParentPID() != parent || isReaderGone(w.hook.Out) || w.hook.IsMoot != nil && w.hook.IsMoot() {
				return errAgentGone
			}
		}
	}
}

// errAgentGone says that the agent ended, or does not wait any more.
var errAgentGone = errors.New("nobody waits for the decision")

func (w *waiter) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.openConns = append(w.openConns, c)
		w.mu.Unlock()
		w.conns.Go(func() {
			defer func() { _ = c.Close() }()
			w.serve(c)
		})
	}
}

// serve accepts a client that knows the token, and its decision if one comes. A client that only waits is held until it or the
// hook ends.
func (w *waiter) serve(c net.Conn) {
	in, out := json.NewDecoder(io.LimitReader(c, maxMessage)), json.NewEncoder(c)
	var m message
	if c.SetDeadline(time.Now().Add(ioTimeout)) != nil || in.Decode(&m) != nil ||
		subtle.ConstantTimeCompare([]byte(m.Token), []byte(w.token)) != 1 {
		return
	}
	if w.isAnswered() || out.Encode(message{Open: true}) != nil || c.SetDeadline(time.Time{}) != nil || in.Decode(&m) != nil {
		return
	}
	accepted := w.acceptDecision(m)
	_ = out.Encode(message{Accepted: accepted}) // a client that is gone finds the report
	if accepted {
		close(w.decided)
	}
}

func (w *waiter) isAnswered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered
}

// acceptDecision hands the first decision to the agent.
func (w *waiter) acceptDecision(m message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered || m.Verdict != sessions.VerdictUndecided && !w.printDecision(m) {
		return false
	}
	w.answered = true
	return true
}

// printDecision prints what the agent reads.
func (w *waiter) printDecision(m message) bool {
	if isReaderGone(w.hook.Out) {
		return false
	}
	line, err := encodeDecision(m, w.hook.Payload)
	if err != nil {
		return false
	}
	if _, err := w.hook.Out.Write(line); err != nil {
		return false
	}
	w.hook.OnDecided(w.token, m.Verdict == sessions.VerdictAllow)
	return true
}

// encodeDecision returns the decision as an agent reads it from its hook.
func encodeDecision(m message, request json.RawMessage) ([]byte, error) {
	decision := map[string]any{"behavior": "allow"}
	switch m.Verdict {
	case sessions.VerdictAllow:
		if err := addAnswers(decision, m, request); err != nil {
			return nil, err
		}
	case sessions.VerdictDeny:
		decision["behavior"], decision["message"] = "deny", cmp.Or(m.Reason, "The operator denied this.")
	default:
		return nil, fmt.Errorf("%q is no decision", m.Verdict)
	}
	return json.Marshal(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": Event, "decision": decision}})
}
