package harness

import (
	"path/filepath"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func geminiStage(t *testing.T) *stage {
	s := newStage(t)
	a := harnesstest.Gemini(t, s.home, s.model)
	s.raise(Gemini{Binary: a.Binary, Home: s.home}, a.Env)
	return s
}

func TestRealGeminiTakesEveryTextOnce(t *testing.T) {
	t.Parallel()
	s := geminiStage(t)
	s.start()
	s.untilState(sessions.ViewReady)
	s.sayAll(sessions.ReceiptAccepted, mixedTexts())
}

func TestRealGeminisApprovalIsNeverGivenByAReply(t *testing.T) {
	t.Parallel()
	s := geminiStage(t)
	s.start()
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.say("[[run touch " + marker + "]]")
	s.holdsAtDialog(marker)
}

func TestRealGeminisConversationIsFollowedAndResumed(t *testing.T) {
	t.Parallel()
	s := geminiStage(t)
	first := s.start().Conversation
	s.say("in the first")
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
	if receipt, err := s.core.Submit(t.Context(), sessions.SayRequest{Ref: realRef, Text: "/clear", Raw: true}); err != nil || receipt != sessions.ReceiptAccepted {
		t.Errorf("/clear: %s, %v\n%s", receipt, err, s.screen())
	}
	s.say("in the second")
	s.until("the record has the new id", func() bool { return s.record().Conversation != first })
}
