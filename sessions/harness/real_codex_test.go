package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func codexStage(t *testing.T) *stage {
	s := newStage(t)
	a := harnesstest.Codex(t, s.home, s.def.Cwd, s.model)
	s.raise(Codex{Binary: a.Binary, Home: s.home}, a.Env)
	return s
}

func TestRealCodexTakesEveryTextOnce(t *testing.T) {
	t.Parallel()
	s := codexStage(t)
	s.start()
	s.untilState(sessions.ViewReady)
	s.sayAll(sessions.ReceiptAccepted, mixedTexts())
}

func TestRealCodexQueuesWhileItWorks(t *testing.T) {
	t.Parallel()
	s := codexStage(t)
	s.start()
	s.say("[[wait 12000]] think")
	s.untilState(sessions.ViewWorking)
	began := time.Now()
	for _, text := range []string{"queued one", "yes", "yes", "!touch RAN"} {
		if got := s.say(text); got != sessions.ReceiptAccepted {
			t.Errorf("%q: %s", text, got)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the queue took %s: the turn was waited for", took)
	}
	s.until("the queue reaches the model", func() bool { return s.heard(`From "ann": !touch RAN`) == 1 })
	if s.heard("yes") != 2 || s.heard("queued one") != 1 {
		t.Errorf("the model heard %q", s.model.Heard())
	}
}

func TestRealCodexsApprovalIsNeverGivenByAReply(t *testing.T) {
	t.Parallel()
	s := codexStage(t)
	s.start()
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.say("[[run touch " + marker + "]]")
	s.holdsAtDialog(marker)
}

// holdsAtDialog sends a reply to a dialog, which must approve nothing and go in when the dialog is gone.
func (s *stage) holdsAtDialog(marker string) {
	s.Helper()
	s.steady(sessions.ViewDialog)
	_, err := s.core.Submit(s.Context(), sessions.SayRequest{Ref: realRef, Text: "is it done?"})
	var held *sessions.HeldError
	if !errors.As(err, &held) || !strings.Contains(strings.Join(held.Lines, "\n"), "touch") {
		s.Fatalf("a reply at a dialog: %v (lines %q)", err, held)
	}
	s.keysAtDialog(marker)
	if _, err := s.core.Keys(s.Context(), sessions.KeysRequest{Ref: realRef, Actor: "ann", Keys: []string{"escape"}}); err != nil {
		s.Fatal(err)
	}
	s.say("is it done?")
	s.until("the held reply reaches the model", func() bool { return s.heard("is it done?") == 1 })
	if _, err := os.Stat(marker); err == nil {
		s.Fatal("the command ran")
	}
}

func TestRealCodexsConversationIsFoundFollowedAndResumed(t *testing.T) {
	t.Parallel()
	s := codexStage(t)
	given := s.start().Conversation
	s.say("in the first")
	s.until("the record has codex's own id", func() bool { return s.record().Conversation != given })
	first := s.record().Conversation
	s.until("the answer is there", func() bool { return s.heard("in the first") == 1 && s.view().State == sessions.ViewReady })
	s.stop()
	if row := s.start(); row.Outcome != sessions.OutcomeResumed || row.Conversation != first {
		t.Errorf("start: %s %s, want %s resumed", row.Outcome, row.Conversation, first)
	}
	s.say("after the restart")
	s.until("the resumed conversation goes on", func() bool { return s.heard("after the restart") == 1 && s.view().State == sessions.ViewReady })
	if s.heard("in the first") != 1 {
		t.Errorf("the model heard %q", s.model.Heard())
	}
	s.atRest()
	if _, err := s.core.Submit(t.Context(), sessions.SayRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil {
		t.Logf("/clear: %v", err)
	}
	s.say("in the second")
	s.until("the record has the new id", func() bool { return s.record().Conversation != first })
}
