package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/codex"
	"the-loop/sessions/harness/harnesstest"
)

func newCodexAgentEnv(t *testing.T) *agentEnv {
	s := newAgentEnv(t)
	a := harnesstest.Codex(t, s.home, s.def.Cwd, s.model)
	s.newCore(codex.Harness{Binary: a.Binary, Home: s.home}, a.Env)
	return s
}

func TestRealCodexAcceptsEveryTextOnce(t *testing.T) {
	t.Parallel()
	s := newCodexAgentEnv(t)
	s.start()
	s.waitState(sessions.ViewReady)
	s.submitAll(sessions.ReceiptAccepted, mixedTexts())
}

func TestRealCodexQueuesWhileItWorks(t *testing.T) {
	t.Parallel()
	s := newCodexAgentEnv(t)
	s.start()
	s.submit("[[wait 12000]] think")
	s.waitState(sessions.ViewWorking)
	began := time.Now()
	for _, text := range []string{"queued one", "yes", "yes", "!touch RAN"} {
		if got := s.submit(text); got != sessions.ReceiptAccepted {
			t.Errorf("%q: %s", text, got)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the queue took %s: the turn was waited for", took)
	}
	s.waitUntil("the queue reaches the model", func() bool { return s.timesReceived(`From "ann": !touch RAN`) == 1 })
	if s.timesReceived("yes") != 2 || s.timesReceived("queued one") != 1 {
		t.Errorf("the model heard %q", s.model.UserTexts())
	}
}

func TestRealCodexsApprovalIsNeverGivenByAReply(t *testing.T) {
	t.Parallel()
	s := newCodexAgentEnv(t)
	s.start()
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.submit("[[run touch " + marker + "]]")
	s.testHoldAtDialog(marker)
}

// testHoldAtDialog sends a reply to a dialog, which must approve nothing and go in when the dialog is gone.
func (s *agentEnv) testHoldAtDialog(marker string) {
	s.Helper()
	s.waitSteady(sessions.ViewDialog)
	_, err := s.core.Submit(s.Context(), sessions.SubmitRequest{Ref: realRef, Text: "is it done?"})
	var held *sessions.HeldError
	if !errors.As(err, &held) || !strings.Contains(strings.Join(held.Lines, "\n"), "touch") {
		s.Fatalf("a reply at a dialog: %v (lines %q)", err, held)
	}
	s.testKeysAtDialog(marker)
	if _, err := s.core.Keys(s.Context(), sessions.KeysRequest{Ref: realRef, Actor: "ann", Keys: []string{"escape"}}); err != nil {
		s.Fatal(err)
	}
	s.submit("is it done?")
	s.waitUntil("the held reply reaches the model", func() bool { return s.timesReceived("is it done?") == 1 })
	if _, err := os.Stat(marker); err == nil {
		s.Fatal("the command ran")
	}
}

func TestRealCodexsConversationIsFoundFollowedAndResumed(t *testing.T) {
	t.Parallel()
	s := newCodexAgentEnv(t)
	given := s.start().Conversation
	s.submit("in the first")
	s.waitUntil("the record has codex's own id", func() bool { return s.record().Conversation != given })
	first := s.record().Conversation
	s.waitUntil("the answer is there", func() bool { return s.timesReceived("in the first") == 1 && s.view().State == sessions.ViewReady })
	s.stop()
	if row := s.start(); row.Outcome != sessions.OutcomeResumed || row.Conversation != first {
		t.Errorf("start: %s %s, want %s resumed", row.Outcome, row.Conversation, first)
	}
	s.submit("after the restart")
	s.waitUntil("the resumed conversation goes on", func() bool { return s.timesReceived("after the restart") == 1 && s.view().State == sessions.ViewReady })
	if s.timesReceived("in the first") != 1 {
		t.Errorf("the model heard %q", s.model.UserTexts())
	}
	s.waitIdle()
	if _, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil {
		t.Logf("/clear: %v", err)
	}
	s.submit("in the second")
	s.waitUntil("the record has the new id", func() bool { return s.record().Conversation != first })
}
