package harness

import (
	"path/filepath"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/gemini"
	"the-loop/sessions/harness/harnesstest"
)

func newGeminiAgentEnv(t *testing.T) *agentEnv {
	s := newAgentEnv(t)
	a := harnesstest.Gemini(t, s.home, s.model)
	s.newCore(gemini.Harness{Binary: a.Binary, Home: s.home}, a.Env)
	return s
}

func TestRealGeminiAcceptsEveryTextOnce(t *testing.T) {
	t.Parallel()
	s := newGeminiAgentEnv(t)
	s.start()
	s.waitState(sessions.ViewReady)
	s.submitAll(sessions.ReceiptAccepted, mixedTexts())
}

func TestRealGeminisApprovalIsNeverGivenByAReply(t *testing.T) {
	t.Parallel()
	s := newGeminiAgentEnv(t)
	s.start()
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.submit("[[run touch " + marker + "]]")
	s.testHoldAtDialog(marker)
}

func TestRealGeminisConversationIsFollowedAndResumed(t *testing.T) {
	t.Parallel()
	s := newGeminiAgentEnv(t)
	first := s.start().Conversation
	s.submit("in the first")
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
	if receipt, err := s.core.Submit(t.Context(), sessions.SubmitRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil || receipt != sessions.ReceiptAccepted {
		t.Errorf("/clear: %s, %v\n%s", receipt, err, s.screen())
	}
	s.submit("in the second")
	s.waitUntil("the record has the new id", func() bool { return s.record().Conversation != first })
}
