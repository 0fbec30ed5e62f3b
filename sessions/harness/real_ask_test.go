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
)

// question is one that the real agent asks, and that is attended.
type question struct {
	*stage
	sessions.Ask
	over chan error
}

// asked waits for n more questions in the reports.
func (s *stage) asked(place *string, n int) []*question {
	s.Helper()
	var all []*question
	s.until("the question", func() bool {
		noted, err := s.core.ReadReports(s.Context(), sessions.NotedRequest{Ref: realRef, Place: *place})
		if err != nil {
			s.Fatal(err)
		}
		*place = noted.Next
		for _, a := range noted.Asks {
			all = append(all, s.attend(a))
		}
		return len(all) >= n
	})
	return all
}

func (s *stage) attend(a sessions.Ask) *question {
	q := &question{stage: s, Ask: a, over: make(chan error, 1)}
	open := make(chan struct{})
	go func() {
		q.over <- s.core.WaitResolved(s.Context(), sessions.AttendRequest{Ref: realRef, ID: s.record().ID, Token: a.Token, Mark: a.Mark(), Open: func() { close(open) }})
	}()
	select {
	case <-open:
	case <-time.After(10 * time.Second):
		s.Fatalf("the question is not open\n%s", s.screen())
	}
	return q
}

func (q *question) answer(v sessions.Verdict, reason string) error {
	return q.core.AnswerPermission(q.Context(), sessions.AnswerRequest{Ref: realRef, ID: q.record().ID, Mark: q.Mark(),
		Answer: sessions.Answer{Token: q.Token, Verdict: v, Reason: reason}})
}

// ends waits until it is heard that the question is over, and then no answer is taken.
func (q *question) ends() {
	q.Helper()
	select {
	case err := <-q.over:
		if err != nil {
			q.Error(err)
		}
	case <-time.After(20 * time.Second):
		q.Fatalf("the end of the question is not heard\n%s", q.screen())
	}
	if err := q.answer(sessions.VerdictAllow, ""); !errors.Is(err, sessions.ErrAskOver) {
		q.Errorf("an answer after the end: %v", err)
	}
	if q.exists(askSocket(filepath.Join(q.root, "run", "ask"), q.Token)) {
		q.Error("its socket is left behind")
	}
}

func (s *stage) exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestRealClaudesQuestionIsAnsweredThroughItsHook(t *testing.T) {
	t.Parallel()
	s := claudeStage(t)
	s.start()
	place, allowed, denied := "", filepath.Join(s.def.Cwd, "ALLOWED"), filepath.Join(s.def.Cwd, "DENIED")
	s.say("[[run touch " + allowed + "]]")
	q := s.asked(&place, 1)[0]
	if q.Tool != "Bash" || q.Command != "touch "+allowed || q.Why != "as asked" || q.Cwd != s.def.Cwd || !q.Permit {
		t.Errorf("asked %+v", q.Ask)
	}
	s.untilState(sessions.ViewDialog) // the terminal can be used
	if s.exists(allowed) {
		t.Fatal("it did not wait")
	}
	if err := q.answer(sessions.VerdictAllow, ""); err != nil {
		t.Fatal(err)
	}
	q.ends()
	s.until("the command to run", func() bool { return s.exists(allowed) })
	s.atRest()
	s.say("[[run touch " + denied + "]]")
	q = s.asked(&place, 1)[0]
	s.untilState(sessions.ViewDialog)
	if err := q.answer(sessions.VerdictDeny, "because of the moon"); err != nil {
		t.Fatal(err)
	}
	q.ends()
	s.until("the reason on the screen", func() bool { return strings.Contains(s.screen(), "because of the moon") })
	s.atRest()
	s.say("and now?")
	s.until("the next text reaches the model", func() bool { return s.heard("and now?") == 1 })
	if s.exists(denied) {
		t.Error("it ran all the same")
	}
}

// TestRealClaudesQuestionIsOverWhenTheTerminalAnswersIt has a yes, with which Claude Code leaves the hook waiting, a no, an
// Escape, and the end of the agent.
func TestRealClaudesQuestionIsOverWhenTheTerminalAnswersIt(t *testing.T) {
	t.Parallel()
	s := claudeStage(t)
	s.start()
	place := ""
	ask := func(command string) *question {
		t.Helper()
		s.atRest()
		s.say("something else") // what follows an interruption goes with it to the model
		s.atRest()
		s.say("[[run " + command + "]]")
		q, began := s.asked(&place, 1)[0], time.Now()
		s.until("a person to have read it", func() bool { return s.view().State == sessions.ViewDialog && time.Since(began) > 2*time.Second })
		return q
	}
	ran := filepath.Join(s.def.Cwd, "RAN")
	q := ask("sleep 8; touch " + ran) // its end comes after that of the question
	s.press("1")
	q.ends()
	if s.exists(ran) {
		t.Error("the question was over only when the command was")
	}
	s.until("the command to have run", func() bool { return s.exists(ran) })
	for _, key := range []string{"3", "Escape"} {
		q = ask("touch " + filepath.Join(s.def.Cwd, "NEVER"))
		s.press(key)
		q.ends()
	}
	q = ask("touch " + filepath.Join(s.def.Cwd, "NEVER"))
	panes, err := s.term.Panes(t.Context())
	if err != nil || len(panes) != 1 {
		t.Fatal(panes, err)
	}
	if err := syscall.Kill(panes[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	q.ends()
	if s.exists(filepath.Join(s.def.Cwd, "NEVER")) {
		t.Error("what was denied ran")
	}
}

// TestRealClaudesQuestionsOfToolsAtOnce has two that are asked at once, and shown one after the other.
func TestRealClaudesQuestionsOfToolsAtOnce(t *testing.T) {
	t.Parallel()
	s := claudeStage(t)
	s.start()
	s.atRest()
	place := ""
	s.say(`[[call WebFetch {"url":"http://127.0.0.1:1/first","prompt":"x"}]] [[call WebFetch {"url":"http://127.0.0.1:1/second","prompt":"x"}]]`)
	qs := s.asked(&place, 2)
	s.untilState(sessions.ViewDialog)
	for _, q := range qs {
		if q.Tool != "WebFetch" || !strings.Contains(q.Input, "127.0.0.1:1") {
			t.Errorf("asked %+v", q.Ask)
		}
		if err := q.answer(sessions.VerdictDeny, "no"); err != nil {
			t.Errorf("each has its own answer: %v", err)
		}
	}
	for _, q := range qs {
		q.ends()
	}
	s.atRest()
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
			s := claudeStage(t)
			if tool == "ExitPlanMode" {
				s.def.HarnessArgs = []string{"--permission-mode", "plan"}
				s.raise(s.harness, s.env)
			}
			s.start()
			s.atRest()
			place := ""
			s.say("[[call " + tool + " " + input + "]]")
			q := s.asked(&place, 1)[0]
			if q.Tool != tool || q.Permit || q.Input == "" {
				t.Errorf("asked %+v", q.Ask)
			}
			s.untilState(sessions.ViewDialog)
			s.press("Escape")
			q.ends()
		})
	}
}
