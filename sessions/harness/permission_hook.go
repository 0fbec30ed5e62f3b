package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
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

// hookIOTimeout is how long a connection may take for what it has to say at once, and hookPollInterval how often it is seen whether the
// agent still waits.
const (
	hookIOTimeout    = 5 * time.Second
	hookPollInterval = 200 * time.Millisecond
)

// maxSocketPath is the longest path of a Unix socket (unix(7): 108 bytes, macOS 104).
const maxSocketPath = 103

// permissionSocket is the socket of an ask. Its name tells nobody the token.
func permissionSocket(dir, token string) string {
	sum := sha256.Sum256([]byte(token))
	return filepath.Join(dir, hex.EncodeToString(sum[:8]))
}

// shortSocketPath is a name of a path that a socket may have: through a descriptor of its folder where it is too long, which
// works on Linux. The folder is to be closed when the socket was made or dialled.
func shortSocketPath(path string) (name string, dir io.Closer, err error) {
	if len(path) <= maxSocketPath {
		return path, io.NopCloser(nil), nil
	}
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), filepath.Base(path)), f, nil
}

// hookMessage is what goes over the socket, a JSON object a line. Whoever connects says the token and hears that the ask is open,
// and by the end of the connection that it is over. A verdict may follow; it is acknowledged.
type hookMessage struct {
	Token    string           `json:"token,omitempty"`
	Verdict  sessions.Verdict `json:"verdict,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Open     bool             `json:"open,omitempty"`
	Accepted bool             `json:"taken,omitempty"`
}

// ask reports a question, with a token that cannot be guessed, and waits at a socket of its own for the one answer. Until
// somebody answers, the agent's own dialog stays usable, and the hook ends without a word when nobody waits for it any more.
func (h Hook) requestPermission(ctx context.Context, r Report) error {
	w := &permissionWaiter{hook: h, token: rand.Text(), decided: make(chan struct{}), toolUse: newToolUseWatcher(r.Payload)}
	if err := w.listen(); err != nil {
		return errors.Join(err, AppendReport(h.ReportFile, r)) // it is reported, but cannot be answered
	}
	defer w.close()
	r.Token = w.token
	if err := AppendReport(h.ReportFile, r); err != nil {
		return err // nobody will know of it
	}
	w.conns.Go(w.accept)
	w.removeStaleSockets()
	return w.wait(ctx)
}

// isReaderGone reports that nobody reads any more what is written to the file. Of one that is no pipe or socket it cannot be told.
func isReaderGone(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// permissionWaiter is one hook that waits. Its goroutines end when the listener and the connections are closed.
type permissionWaiter struct {
	hook     Hook
	token    string
	listener net.Listener
	conns    sync.WaitGroup
	decided  chan struct{} // closed when it was answered
	toolUse  *toolUseWatcher

	mu        sync.Mutex // guards the fields that follow
	answered  bool
	openConns []net.Conn
}

func (w *permissionWaiter) listen() error {
	if err := os.MkdirAll(w.hook.PermissionDir, 0o700); err != nil {
		return fmt.Errorf("make the folder for questions: %w", err)
	}
	name, dir, err := shortSocketPath(permissionSocket(w.hook.PermissionDir, w.token))
	if err != nil {
		return fmt.Errorf("open the folder for questions: %w", err)
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		_ = dir.Close()
		return fmt.Errorf("wait for an answer: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its name may be one through a descriptor
	w.listener = l
	return errors.Join(os.Chmod(name, 0o600), dir.Close())
}

// staleSocketAge is how old a socket is whose hook was killed, at the least: one that is just being made is not reached either.
const staleSocketAge = time.Minute

// removeStaleSockets removes the sockets that killed hooks left.
func (w *permissionWaiter) removeStaleSockets() {
	all, err := os.ReadDir(w.hook.PermissionDir)
	if err != nil {
		return // the next hook does it
	}
	for _, e := range all {
		info, err := e.Info()
		if err != nil || info.Mode().Type() != os.ModeSocket || time.Since(info.ModTime()) < staleSocketAge {
			continue
		}
		if c, err := dialHookSocket(context.Background(), filepath.Join(w.hook.PermissionDir, e.Name())); err == nil {
			_ = c.Close()
		}
	}
}

func (w *permissionWaiter) close() {
	_ = os.Remove(permissionSocket(w.hook.PermissionDir, w.token))
	_ = w.listener.Close()
	w.mu.Lock()
	for _, c := range w.openConns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.conns.Wait()
}

func (w *permissionWaiter) wait(ctx context.Context) error {
	parent := w.hook.ParentPID()
	tick := time.NewTicker(hookPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-w.decided:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if w.hook.ParentPID() != parent || isReaderGone(w.hook.Out) || w.toolUse.isDone() {
				return errAgentGone
			}
		}
	}
}

// errAgentGone says that the agent ended, or does not wait any more.
var errAgentGone = errors.New("nobody waits for the answer")

func (w *permissionWaiter) accept() {
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

// serve lets a connection in that knows the token, and takes an answer from it if one comes. One that only attends is held
// until it, or the hook, ends.
func (w *permissionWaiter) serve(c net.Conn) {
	in, out := json.NewDecoder(io.LimitReader(c, maxHookInput)), json.NewEncoder(c)
	var l hookMessage
	if c.SetDeadline(time.Now().Add(hookIOTimeout)) != nil || in.Decode(&l) != nil ||
		subtle.ConstantTimeCompare([]byte(l.Token), []byte(w.token)) != 1 {
		return
	}
	if w.isAnswered() || out.Encode(hookMessage{Open: true}) != nil || c.SetDeadline(time.Time{}) != nil || in.Decode(&l) != nil {
		return
	}
	taken := w.acceptDecision(l)
	_ = out.Encode(hookMessage{Accepted: taken}) // who does not hear it finds the report
	if taken {
		close(w.decided)
	}
}

func (w *permissionWaiter) isAnswered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered
}

// take hands the first answer to the agent.
func (w *permissionWaiter) acceptDecision(in hookMessage) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered || in.Verdict != sessions.VerdictUndecided && !w.printDecision(in) {
		return false
	}
	w.answered = true
	return true
}

// say prints what the agent reads, and reports that it was answered.
func (w *permissionWaiter) printDecision(in hookMessage) bool {
	if isReaderGone(w.hook.Out) {
		return false
	}
	line, err := encodeDecision(in)
	if err != nil {
		return false
	}
	if _, err := w.hook.Out.Write(line); err != nil {
		return false
	}
	note, _ := json.Marshal(answeredPayload{Allow: in.Verdict == sessions.VerdictAllow}) // a bool always encodes
	// It is proof for a bot that ends before it hears of it; without, that bot tells that it does not know.
	_ = AppendReport(w.hook.ReportFile, Report{At: time.Now(), Event: EventPermissionAnswered, Token: w.token, Payload: note})
	return true
}

// encodeDecision is the answer as Claude Code reads it from a hook (2.1.197).
func encodeDecision(in hookMessage) ([]byte, error) {
	decision := map[string]string{"behavior": "allow"}
	switch in.Verdict {
	case sessions.VerdictAllow:
	case sessions.VerdictDeny:
		decision["behavior"], decision["message"] = "deny", cmp.Or(in.Reason, "The operator denied this.")
	default:
		return nil, fmt.Errorf("%q is no answer", in.Verdict)
	}
	return json.Marshal(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": EventPermissionRequest, "decision": decision}})
}
