package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
	"the-loop/sessions/harness/permission"
)

// hookEnv is a hook that waits, with its agent's end of it.
type hookEnv struct {
	*testing.T
	Reader
	agentOutput *os.File // the agent reads the answer from it
	parent      atomic.Int64
	ended       chan error
	stop        context.CancelFunc
}

const hookSession = "s1"

// newHookEnv starts a hook with that payload below a folder, and waits until it is reported.
func newHookEnv(t *testing.T, root, payload string) (*hookEnv, sessions.PermissionRequest) {
	t.Helper()
	return newHookEnvWatching(t, root, payload, nil)
}

func newHookEnvWatching(t *testing.T, root, payload string, watch func(json.RawMessage) func() bool) (*hookEnv, sessions.PermissionRequest) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a := &hookEnv{T: t, Reader: Reader{Dir: filepath.Join(root, "reports"), PermissionDir: filepath.Join(root, "run", "ask")}, agentOutput: r, ended: make(chan error, 1)}
	t.Cleanup(func() { _ = r.Close() })
	ctx, stop := context.WithCancel(t.Context())
	a.stop = stop
	path, err := Path(a.Dir, hookSession)
	if err != nil {
		t.Fatal(err)
	}
	hook := Hook{ReportFile: path, PermissionDir: a.PermissionDir, Out: w, ParentPID: func() int { return int(a.parent.Load()) }, WatchTool: watch}
	go func() {
		err := hook.Run(ctx, strings.NewReader(payload), time.Now())
		_ = w.Close()
		a.ended <- err
	}()
	t.Cleanup(func() {
		stop()
		select {
		case <-a.ended:
		case <-time.After(10 * time.Second):
			t.Error("the hook did not end")
		}
	})
	return a, a.waitRequest()
}

// waitRequest waits for the permission request in the reports.
func (a *hookEnv) waitRequest() sessions.PermissionRequest {
	a.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		batch, err := a.ReadReports(a.Context(), hookSession, "", time.Time{})
		if err != nil {
			a.Fatal(err)
		}
		if len(batch.PermissionRequests) > 0 {
			return batch.PermissionRequests[len(batch.PermissionRequests)-1]
		}
		a.pause()
	}
	a.Fatal("nothing is asked")
	return sessions.PermissionRequest{}
}

func (a *hookEnv) pause() {
	select {
	case <-a.Context().Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// waitResolved attends until the ask is open, and returns what tells of its end.
func (a *hookEnv) waitResolved(token string) <-chan error {
	a.Helper()
	open, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- a.WaitResolved(a.Context(), hookSession, token, func() { close(open) }) }()
	select {
	case <-open:
	case err := <-over:
		a.Fatal("it is over at once", err)
	case <-time.After(10 * time.Second):
		a.Fatal("it is not heard that the ask is open")
	}
	return over
}

func (a *hookEnv) assertResolved(over <-chan error) {
	a.Helper()
	select {
	case err := <-over:
		if err != nil {
			a.Error(err)
		}
	case <-time.After(10 * time.Second):
		a.Fatal("the end of the ask is not heard")
	}
}

// hookOutput returns what the agent read from the hook until its end.
func (a *hookEnv) hookOutput() string {
	a.Helper()
	all, err := bufio.NewReader(a.agentOutput).ReadString(0)
	if err == nil {
		a.Fatalf("it printed %q", all)
	}
	return all
}

const permissionInput = `{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"touch X","description":"why","timeout":5},"cwd":"/c"}`

func TestPermissionHookIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[sessions.Verdict]string{
		sessions.VerdictAllow:     `{"hookSpecificOutput":{"decision":{"behavior":"allow"},"hookEventName":"PermissionRequest"}}`,
		sessions.VerdictDeny:      `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"not \"now\""},"hookEventName":"PermissionRequest"}}`,
		sessions.VerdictUndecided: "",
	} {
		t.Run(string(verdict), func(t *testing.T) {
			t.Parallel()
			a, ask := newHookEnv(t, t.TempDir(), permissionInput)
			if diff := cmp.Diff(sessions.PermissionRequest{Token: ask.Token, At: ask.At, Tool: "Bash", Command: "touch X", Explanation: "why", Cwd: "/c", Decidable: true, Input: "{\n  \"timeout\": 5\n}"}, ask); diff != "" {
				t.Error(diff)
			}
			over := a.waitResolved(ask.Token)
			answer := sessions.PermissionDecision{Token: ask.Token, Verdict: verdict, Reason: `not "now"`}
			if err := a.AnswerPermission(t.Context(), hookSession, answer); err != nil {
				t.Fatal(err)
			}
			if err := a.AnswerPermission(t.Context(), hookSession, answer); !errors.Is(err, sessions.ErrPermissionEnded) {
				t.Errorf("a second answer: %v", err)
			}
			a.assertResolved(over)
			if got := a.hookOutput(); got != want {
				t.Errorf("the agent heard %q", got)
			}
			batch, err := a.ReadReports(t.Context(), hookSession, "", time.Time{})
			wants := 1
			if verdict == sessions.VerdictUndecided {
				wants = 0
			}
			if err != nil || len(batch.Answered) != wants || wants > 0 && (batch.Answered[0].Token != ask.Token || batch.Answered[0].Allow != (verdict == sessions.VerdictAllow)) {
				t.Errorf("noted %+v, %v", batch, err)
			}
			a.assertNoSockets()
		})
	}
}

func (a *hookEnv) assertNoSockets() {
	a.Helper()
	if left, err := os.ReadDir(a.PermissionDir); err != nil || len(left) > 0 {
		a.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPermissionHookRequiresItsToken(t *testing.T) {
	t.Parallel()
	a, ask := newHookEnv(t, t.TempDir(), permissionInput)
	path := permission.SocketPath(a.PermissionDir, ask.Token)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if info, err := os.Stat(a.PermissionDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	if strings.Contains(path, ask.Token) || len(ask.Token) < 26 {
		t.Errorf("the socket %s, the token %s", path, ask.Token)
	}
	for _, say := range []string{`{"verdict":"allow"}`, `{"token":"` + strings.Repeat("A", len(ask.Token)) + `","verdict":"allow"}`, "x"} {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(say + "\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
			t.Errorf("%s is answered: %s", say, line)
		}
		_ = c.Close()
	}
	if err := a.AnswerPermission(t.Context(), hookSession, sessions.PermissionDecision{Token: ask.Token, Verdict: "perhaps"}); !errors.Is(err, sessions.ErrPermissionEnded) {
		t.Errorf("no verdict: %v", err)
	}
	if err := a.AnswerPermission(t.Context(), hookSession, sessions.PermissionDecision{Token: ask.Token, Verdict: sessions.VerdictDeny}); err != nil {
		t.Errorf("the right one, after all that: %v", err)
	}
	if got := a.hookOutput(); !strings.Contains(got, `"deny"`) || strings.Contains(got, `"message":""`) {
		t.Errorf("the agent heard %q", got)
	}
}

// TestPermissionHookEndsWithItsAgent has the three ways in which an agent gives a hook up.
func TestPermissionHookEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(a *hookEnv){
		"a signal":        func(a *hookEnv) { a.stop() },
		"killed":          func(a *hookEnv) { _ = a.agentOutput.Close() },
		"its shell ended": func(a *hookEnv) { a.parent.Store(1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, ask := newHookEnv(t, t.TempDir(), permissionInput)
			over := a.waitResolved(ask.Token)
			leave(a)
			a.assertResolved(over)
			if err := a.AnswerPermission(t.Context(), hookSession, sessions.PermissionDecision{Token: ask.Token, Verdict: sessions.VerdictAllow}); !errors.Is(err, sessions.ErrPermissionEnded) {
				t.Errorf("an answer after it: %v", err)
			}
			if err := a.WaitResolved(t.Context(), hookSession, ask.Token, func() { t.Error("it is open") }); err != nil {
				t.Error(err)
			}
			a.assertNoSockets()
		})
	}
}

// TestPermissionHookEndsWhenItsToolWasUsed has an agent that goes on with a yes from the terminal and leaves the hook alone.
func TestPermissionHookEndsWhenItsToolWasUsed(t *testing.T) {
	t.Parallel()
	var used atomic.Bool
	watched := make(chan string, 1)
	a, ask := newHookEnvWatching(t, t.TempDir(), permissionInput, func(request json.RawMessage) func() bool {
		watched <- string(request)
		return used.Load
	})
	over := a.waitResolved(ask.Token)
	if got := <-watched; got != permissionInput {
		t.Errorf("watches %s", got)
	}
	used.Store(true)
	a.assertResolved(over)
	if got := a.hookOutput(); got != "" {
		t.Errorf("it printed %q", got)
	}
}

func TestDecisionThatNobodyReadsIsNotAccepted(t *testing.T) {
	t.Parallel()
	a, ask := newHookEnv(t, t.TempDir(), permissionInput)
	if err := a.agentOutput.Close(); err != nil {
		t.Fatal(err)
	}
	err := a.AnswerPermission(t.Context(), hookSession, sessions.PermissionDecision{Token: ask.Token, Verdict: sessions.VerdictAllow})
	if !errors.Is(err, sessions.ErrPermissionEnded) {
		t.Errorf("Answer: %v", err)
	}
}

func TestPermissionSocketsWorkInLongPaths(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	a, ask := newHookEnv(t, root, permissionInput)
	over := a.waitResolved(ask.Token)
	if err := a.AnswerPermission(t.Context(), hookSession, sessions.PermissionDecision{Token: ask.Token, Verdict: sessions.VerdictAllow}); err != nil {
		t.Fatal(err)
	}
	a.assertResolved(over)
	a.assertNoSockets()
}

func TestTheSocketOfAKilledHookIsRemoved(t *testing.T) {
	t.Parallel()
	r := Reader{PermissionDir: t.TempDir()}
	l, err := net.Listen("unix", permission.SocketPath(r.PermissionDir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitResolved(t.Context(), hookSession, "token", func() { t.Error("it is open") }); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(r.PermissionDir); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// TestHookRemovesSocketsOfKilledHooks leaves alone what is young, what another hook waits at, and what is no socket.
func TestHookRemovesSocketsOfKilledHooks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "run", "ask")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Minute)
	made := func(name string, at time.Time, alive bool) {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		if t.Cleanup(func() { _ = l.Close() }); !alive {
			_ = l.Close()
		}
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	made("old", old, false)
	made("young", time.Now(), false)
	made("waits", old, true)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "file"), old, old); err != nil {
		t.Fatal(err)
	}
	a, ask := newHookEnv(t, root, permissionInput)
	a.waitResolved(ask.Token)
	for deadline := time.Now().Add(10 * time.Second); ; a.pause() {
		_, err := os.Stat(filepath.Join(dir, "old"))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the old socket stays")
		}
	}
	for _, name := range []string{"young", "waits", "file"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestReportsAreReadFromAnOffset(t *testing.T) {
	t.Parallel()
	r := Reader{Dir: t.TempDir()}
	path, err := Path(r.Dir, hookSession)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, report := range []Report{{At: old, Event: EventPermissionRequest, Token: "1", Payload: json.RawMessage(permissionInput)}, {At: old, Event: "Other"}} {
		if err := Append(path, report); err != nil {
			t.Fatal(err)
		}
	}
	if err := Append(path, Report{At: old, Event: EventPermissionRequest, Payload: json.RawMessage(permissionInput)}); err != nil {
		t.Fatal(err) // without a token nobody can decide it
	}
	batch, err := r.ReadReports(t.Context(), hookSession, "", time.Now())
	if err != nil || len(batch.PermissionRequests) != 1 || cmp.Diff([]string{path}, batch.WatchFiles) != "" {
		t.Errorf("what was asked before, and may be open: %+v, %v", batch, err)
	}
	if batch, err = r.ReadReports(t.Context(), hookSession, batch.Next, time.Time{}); err != nil || len(batch.PermissionRequests) != 0 {
		t.Errorf("read twice: %+v, %v", batch, err)
	}
	for _, offset := range []sessions.Offset{"x", "-1"} {
		if _, err := r.ReadReports(t.Context(), hookSession, offset, time.Time{}); err == nil {
			t.Errorf("Noted from %q: no error", offset)
		}
	}
}
