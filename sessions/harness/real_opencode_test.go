package harness

import (
	"path/filepath"
	"strings"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func openCodeStage(t *testing.T) *stage {
	s := newStage(t)
	a := harnesstest.OpenCode(t, s.home, s.model)
	s.def.HarnessArgs = a.Args
	s.raise(OpenCode{Binary: a.Binary}, a.Env)
	return s
}

func TestRealOpenCodeTakesEveryTextOnce(t *testing.T) {
	t.Parallel()
	s := openCodeStage(t)
	s.start()
	s.untilState(sessions.ViewReady)
	var texts []string // each is a question to the database, of a second or two
	for i, text := range mixedTexts() {
		if i < 4 || strings.Contains(text, "RAN") || len(text) > 10_000 || i > 17 || text == "exit" {
			texts = append(texts, text)
		}
	}
	s.sayAll(sessions.ReceiptAccepted, texts)
}

func TestRealOpenCodesApprovalIsNeverGivenByAReply(t *testing.T) {
	t.Parallel()
	s := openCodeStage(t)
	s.start()
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.say("[[run touch " + marker + "]]")
	s.holdsAtDialog(marker)
}

func TestRealOpenCodesConversationIsFoundAndResumed(t *testing.T) {
	t.Parallel()
	s := openCodeStage(t)
	s.start()
	s.say("in the first")
	s.until("the record has opencode's own id", func() bool { return strings.HasPrefix(s.record().Conversation, openCodePrefix) })
	first := s.record().Conversation
	s.until("the answer is there", func() bool { return s.heard("in the first") == 1 && s.view().State == sessions.ViewReady })
	s.say("[[wait 20000]] think")
	s.untilState(sessions.ViewWorking)
	for range 2 {
		if got := s.say("queued"); got != sessions.ReceiptAccepted {
			t.Errorf("queued: %s", got)
		}
	}
	s.until("the queue reaches the model", func() bool { return s.heard("queued") == 2 && s.view().State == sessions.ViewReady })
	s.stop()
	if row := s.start(); row.Outcome != sessions.OutcomeResumed || row.Conversation != first {
		t.Errorf("start: %s %s, want %s resumed", row.Outcome, row.Conversation, first)
	}
	s.say("after the restart")
	s.until("the resumed conversation goes on", func() bool { return s.heard("after the restart") == 1 })
	if s.heard("in the first") != 1 {
		t.Errorf("the model heard %q", s.model.Heard())
	}
}
