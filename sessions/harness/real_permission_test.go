package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// toolResults are the contents of the results of a tool in the transcripts of this home.
func (s *agentEnv) toolResults() string {
	s.Helper()
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(s.home, ".claude", "projects", "*", "*.jsonl")) // the pattern is well-formed
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, `"tool_result"`) {
				all.WriteString(line)
			}
		}
	}
	return all.String()
}

func TestRealClaudesQuestionsAreAnsweredThroughItsHook(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.start()
	s.waitIdle()
	offset := sessions.Offset("")
	s.submit(`[[call AskUserQuestion {"questions":[` +
		`{"question":"Which colour?","header":"Colour","multiSelect":true,"options":[{"label":"Red","description":"r"},{"label":"Blue, or so","description":"b"}]},` +
		`{"question":"How large?","header":"Size","multiSelect":false,"options":[{"label":"L","description":"large"},{"label":"M","description":"medium"}]}]}]]`)
	q := s.waitRequests(&offset, 1)[0]
	want := []sessions.Question{
		{Text: "Which colour?", Header: "Colour", Multiple: true, Options: []sessions.QuestionOption{{Label: "Red", Description: "r"}, {Label: "Blue, or so", Description: "b"}}},
		{Text: "How large?", Header: "Size", Options: []sessions.QuestionOption{{Label: "L", Description: "large"}, {Label: "M", Description: "medium"}}}}
	if diff := cmp.Diff(want, q.Questions); diff != "" || !q.Decidable {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	s.waitState(sessions.ViewDialog) // the terminal can be used
	if err := s.core.AnswerPermission(t.Context(), sessions.AnswerPermissionRequest{Ref: realRef, ID: s.record().ID, PermissionDecision: sessions.PermissionDecision{
		Token: q.Token, Verdict: sessions.VerdictAllow, Answers: []string{"Red, Blue, or so", "as it \"comes\""}}}); err != nil {
		t.Fatal(err)
	}
	q.assertResolved()
	s.waitUntil("the answers in the transcript", func() bool {
		got := s.toolResults()
		return strings.Contains(got, `\"Which colour?\"=\"Red, Blue, or so\"`) && strings.Contains(got, `as it \"comes\"`)
	})
	s.waitIdle()
	s.submit(`[[call AskUserQuestion {"questions":[{"question":"Which?","header":"C","multiSelect":false,"options":[{"label":"A","description":"a"},{"label":"B","description":"b"}]}]}]]`)
	q = s.waitRequests(&offset, 1)[0]
	s.leave(q)
}

// leave turns a question down in the terminal.
func (s *agentEnv) leave(q *pendingPermission) {
	s.Helper()
	s.waitState(sessions.ViewDialog)
	s.sendKeys("Escape")
	q.assertResolved()
	s.waitIdle()
}

// TestRealClaudesPlanIsDecidedThroughItsHook has a plan that is sent back with words, then one that is approved with edits.
func TestRealClaudesPlanIsDecidedThroughItsHook(t *testing.T) {
	t.Parallel()
	s := newClaudeAgentEnv(t)
	s.def.HarnessArgs = []string{"--permission-mode", "plan"}
	s.newCore(s.harness, s.env)
	s.start()
	s.waitIdle()
	s.submit("hello")
	s.waitIdle()
	offset := sessions.Offset("")
	plan := func(text string) *pendingPermission {
		t.Helper()
		if file := s.model.PlanFile(); file != "" { // newer versions read the plan from there
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.submit(`[[call ExitPlanMode {"plan":"` + text + `"}]]`)
		q := s.waitRequests(&offset, 1)[0]
		if q.Plan != text || !q.Decidable {
			t.Errorf("asked %+v", q.PermissionRequest)
		}
		s.waitState(sessions.ViewDialog)
		return q
	}
	s.leave(plan("0. Leave it"))
	s.submit("something else") // what follows an interruption goes with it to the model
	s.waitIdle()
	q := plan("1. Do it")
	if err := q.answer(sessions.VerdictDeny, "use the other door"); err != nil {
		t.Fatal(err)
	}
	q.assertResolved()
	s.waitUntil("the words in the transcript", func() bool { return strings.Contains(s.toolResults(), "use the other door") })
	s.waitIdle()
	q = plan("2. Do it better")
	if err := s.core.AnswerPermission(t.Context(), sessions.AnswerPermissionRequest{Ref: realRef, ID: s.record().ID,
		PermissionDecision: sessions.PermissionDecision{Token: q.Token, Verdict: sessions.VerdictAllow, AcceptEdits: true}}); err != nil {
		t.Fatal(err)
	}
	q.assertResolved()
	s.waitUntil("the mode on the screen", func() bool { return strings.Contains(s.screen(), "accept edits on") })
	s.waitIdle()
}
