package harness

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
)

// said reads on from a place until the real agent has said as many texts.
func (s *stage) said(q *sessions.ToldRequest, n int) []string {
	s.Helper()
	var all []string
	s.until("the agent's texts", func() bool {
		told, err := s.core.Told(s.Context(), *q)
		if err != nil {
			s.Fatal(err)
		}
		q.Place = told.Next
		all = append(all, heard(told)...)
		return len(all) >= n
	})
	return all
}

func TestRealClaudesAnswersAreReadAlsoAfterAClearARestartAndAKill(t *testing.T) {
	t.Parallel()
	s := claudeStage(t)
	q := &sessions.ToldRequest{Ref: realRef, Since: time.Now()}
	s.start()
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("to the first prompt: %q", got)
	}
	s.say("[[run echo hi]] go")
	if got := s.said(q, 2); len(got) != 2 || got[0][:2] != "S " || got[1][:2] != "F " {
		t.Errorf("around a tool: %q", got)
	}
	s.say("[[fail 400]]")
	if got := s.said(q, 1); !slices.Equal(got, []string{"E API Error: 400 as asked"}) {
		t.Errorf("an error: %q", got)
	}
	s.atRest()
	if _, err := s.core.Say(t.Context(), sessions.SayRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil {
		t.Fatal(err)
	}
	s.say("after the clear")
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after /clear: %q", got)
	}
	s.stop()
	s.start()
	s.say("after the restart")
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after the restart: %q", got)
	}
	panes, err := s.term.Panes(t.Context())
	if err != nil || len(panes) != 1 {
		t.Fatal(panes, err)
	}
	s.say("[[wait 60000]]")
	s.untilState(sessions.ViewWorking)
	if err := syscall.Kill(panes[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until("it is dead", func() bool {
		panes, err := s.term.Panes(t.Context())
		return err == nil && len(panes) == 1 && panes[0].Dead
	})
	s.start()
	s.say("after the kill")
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after the kill: %q", got)
	}
}

func TestRealCodexsAnswersAreReadAlsoAfterANewConversationAndARestart(t *testing.T) {
	t.Parallel()
	s := codexStage(t)
	q := &sessions.ToldRequest{Ref: realRef, Since: time.Now()}
	s.start()
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("to the first prompt: %q", got)
	}
	s.say("hello there")
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("a text: %q", got)
	}
	s.say("[[fail 400]]")
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "E " {
		t.Errorf("an error: %q", got)
	}
	s.atRest()
	if _, err := s.core.Say(t.Context(), sessions.SayRequest{Ref: realRef, Text: "/new", Raw: true}); err != nil {
		t.Fatal(err)
	}
	s.untilState(sessions.ViewReady)
	s.say("in the new one")
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after /new: %q", got)
	}
	s.stop()
	s.start()
	s.say("after the restart")
	if got := s.said(q, 1); len(got) != 1 || got[0][:2] != "F " {
		t.Errorf("after the restart: %q", got)
	}
}
