package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/permission"
)

// pendingPermission is one that the real agent asks, and that is attended.
type pendingPermission struct {
	*agentEnv
	sessions.PermissionRequest
	resolved chan error
}

// waitRequests waits for n more questions in the reports.
func (s *agentEnv) waitRequests(offset *sessions.Offset, n int) []*pendingPermission {
	s.Helper()
	var all []*pendingPermission
	s.waitUntil("the question", func() bool {
		batch, err := s.core.ReadReports(s.Context(), sessions.ReportsRequest{Ref: realRef, Offset: *offset})
		if err != nil {
			s.Fatal(err)
		}
		*offset = batch.Next
		for _, a := range batch.PermissionRequests {
			all = append(all, s.waitOpen(a))
		}
		return len(all) >= n
	})
	return all
}

func (s *agentEnv) waitOpen(a sessions.PermissionRequest) *pendingPermission {
	q := &pendingPermission{agentEnv: s, PermissionRequest: a, resolved: make(chan error, 1)}
	open := make(chan struct{})
	go func() {
		q.resolved <- s.core.WaitResolved(s.Context(), sessions.WaitResolvedRequest{Ref: realRef, ID: s.record().ID, Token: a.Token, DialogExcerpt: a.DialogExcerpt(), OnOpen: func() { close(open) }})
	}()
	select {
	case <-open:
	case <-time.After(10 * time.Second):
		s.Fatalf("the question is not open\n%s", s.screen())
	}
	return q
}

func (q *pendingPermission) answer(v sessions.Verdict, reason string) error {
	return q.core.AnswerPermission(q.Context(), sessions.AnswerPermissionRequest{Ref: realRef, ID: q.record().ID, DialogExcerpt: q.DialogExcerpt(),
		PermissionDecision: sessions.PermissionDecision{Token: q.Token, Verdict: v, Reason: reason}})
}

// assertResolved waits until it is heard that the question is over, and then no answer is taken.
func (q *pendingPermission) assertResolved() {
	q.Helper()
	select {
	case err := <-q.resolved:
		if err != nil {
			q.Error(err)
		}
	case <-time.After(20 * time.Second):
		q.Fatalf("the end of the question is not heard\n%s", q.screen())
	}
	if err := q.answer(sessions.VerdictAllow, ""); !errors.Is(err, sessions.ErrPermissionEnded) {
		q.Errorf("an answer after the end: %v", err)
	}
	if q.fileExists(permission.SocketPath(filepath.Join(q.root, "run", "ask"), q.Token)) {
		q.Error("its socket is left behind")
	}
}

func (s *agentEnv) fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestRealClaudesPermissionRequestIsAnsweredThroughItsHook(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	offset, allowed, denied := sessions.Offset(""), filepath.Join(s.def.Cwd, "ALLOWED"), filepath.Join(s.def.Cwd, "DENIED")
	s.submit("[[run touch " + allowed + "]]")
	q := s.waitRequests(&offset, 1)[0]
	if q.Tool != "Bash" || q.Command != "touch "+allowed || q.Explanation != "as asked" || q.Cwd != s.def.Cwd || !q.Decidable {
		t.Errorf("asked %+v", q.PermissionRequest)
	}
	s.waitState(sessions.ViewDialog) // the terminal can be used
	if s.fileExists(allowed) {
		t.Fatal("it did not wait")
	}
	if err := q.answer(sessions.VerdictAllow, ""); err != nil {
		t.Fatal(err)
	}
	q.assertResolved()
	s.waitUntil("the command to run", func() bool { return s.fileExists(allowed) })
	s.waitIdle()
	s.submit("[[run touch " + denied + "]]")
	q = s.waitRequests(&offset, 1)[0]
	s.waitState(sessions.ViewDialog)
	if err := q.answer(sessions.VerdictDeny, "because of the moon"); err != nil {
		t.Fatal(err)
	}
	q.assertResolved()
	s.waitUntil("the reason on the screen", func() bool { return strings.Contains(s.screen(), "because of the moon") })
	s.waitIdle()
	s.submit("and now?")
	s.waitUntil("the next text reaches the model", func() bool { return s.timesReceived("and now?") == 1 })
	if s.fileExists(denied) {
		t.Error("it ran all the same")
	}
}

// TestRealClaudesPermissionRequestEndsWhenTheTerminalAnswersIt has a yes, with which Claude Code leaves the hook waiting, a no, an
// Escape, and the end of the agent.
func TestRealClaudesPermissionRequestEndsWhenTheTerminalAnswersIt(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	offset := sessions.Offset("")
	ask := func(command string) *pendingPermission {
		t.Helper()
		s.waitIdle()
		s.submit("something else") // what follows an interruption goes with it to the model
		s.waitIdle()
		s.submit("[[run " + command + "]]")
		q, began := s.waitRequests(&offset, 1)[0], time.Now()
		s.waitUntil("a person to have read it", func() bool { return s.view().State == sessions.ViewDialog && time.Since(began) > 2*time.Second })
		return q
	}
	ran := filepath.Join(s.def.Cwd, "RAN")
	q := ask("sleep 8; touch " + ran) // its end comes after that of the question
	s.sendKeys("1")
	q.assertResolved()
	if s.fileExists(ran) {
		t.Error("the question was over only when the command was")
	}
	s.waitUntil("the command to have run", func() bool { return s.fileExists(ran) })
	for _, key := range []string{"3", "Escape"} {
		q = ask("touch " + filepath.Join(s.def.Cwd, "NEVER"))
		s.sendKeys(key)
		q.assertResolved()
	}
	q = ask("touch " + filepath.Join(s.def.Cwd, "NEVER"))
	panes, err := s.term.Panes(t.Context())
	if err != nil || len(panes) != 1 {
		t.Fatal(panes, err)
	}
	if err := syscall.Kill(panes[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	q.assertResolved()
	if s.fileExists(filepath.Join(s.def.Cwd, "NEVER")) {
		t.Error("what was denied ran")
	}
}

// TestRealClaudesPermissionRequestsOfToolsAtOnce has two that are asked at once, and shown one after the other.
func TestRealClaudesPermissionRequestsOfToolsAtOnce(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	s.waitIdle()
	offset := sessions.Offset("")
	s.submit(`[[call WebFetch {"url":"http://127.0.0.1:1/first","prompt":"x"}]] [[call WebFetch {"url":"http://127.0.0.1:1/second","prompt":"x"}]]`)
	qs := s.waitRequests(&offset, 2)
	s.waitState(sessions.ViewDialog)
	for _, q := range qs {
		if q.Tool != "WebFetch" || !strings.Contains(q.Input, "127.0.0.1:1") {
			t.Errorf("asked %+v", q.PermissionRequest)
		}
		if err := q.answer(sessions.VerdictDeny, "no"); err != nil {
			t.Errorf("each has its own answer: %v", err)
		}
	}
	for _, q := range qs {
		q.assertResolved()
	}
	s.waitIdle()
}

// TestRealClaudesChoicesAreNoPermissions has what is not answered by yes or no.
func TestRealClaudesChoicesAreNoPermissions(t *testing.T) {
	t.Parallel()
	for tool, input := range map[string]string{
		"AskUserQuestion": `{"questions":[{"question":"Which colour?","header":"Colour","multiSelect":false,"options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]}]}`,
		"ExitPlanMode":    `{"plan":"1. Do it"}`,
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			s := newClaudeAgentEnv(t)
			if tool == "ExitPlanMode" {
				s.def.HarnessArgs = []string{"--permission-mode", "plan"}
				s.newCore(s.harness, s.env)
			}
			s.start()
			s.waitIdle()
			offset := sessions.Offset("")
			s.submit("[[call " + tool + " " + input + "]]")
			q := s.waitRequests(&offset, 1)[0]
			if q.Tool != tool || q.Decidable || q.Input == "" {
				t.Errorf("asked %+v", q.PermissionRequest)
			}
			s.waitState(sessions.ViewDialog)
			s.sendKeys("Escape")
			q.assertResolved()
		})
	}
}
