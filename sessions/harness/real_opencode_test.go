package harness

import (
	"path/filepath"
	"strings"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/opencode"
)

func newOpenCodeAgentEnv(t *testing.T) *agentEnv {
	s := newAgentEnv(t)
	a := harnesstest.OpenCode(t, s.home, s.model)
	s.def.HarnessArgs = a.Args
	s.newCore(opencode.Harness{Binary: a.Binary}, a.Env)
	return s
}

func TestRealOpenCodeAcceptsEveryTextOnce(t *testing.T) {
	t.Parallel()
	s := newOpenCodeAgentEnv(t)
	s.start()
	s.waitState(sessions.ViewReady)
	var texts []string // each is a question to the database, of a second or two
	for i, text := range mixedTexts() {
		if i < 4 || strings.Contains(text, "RAN") || len(text) > 10_000 || i > 17 || text == "exit" {
			texts = append(texts, text)
		}
	}
	s.submitAll(sessions.ReceiptAccepted, texts)
}

func TestRealOpenCodesApprovalIsNeverGivenByAReply(t *testing.T) {
	t.Parallel()
	s := newOpenCodeAgentEnv(t)
	s.start()
	marker := filepath.Join(s.def.Cwd, "APPROVED")
	s.submit("[[run touch " + marker + "]]")
	s.testHoldAtDialog(marker)
}

func TestRealOpenCodesConversationIsFoundAndResumed(t *testing.T) {
	t.Parallel()
	s := newOpenCodeAgentEnv(t)
	s.start()
	s.submit("in the first")
	s.waitUntil("the record has opencode's own id", func() bool { return strings.HasPrefix(s.record().Conversation, "ses_") })
	first := s.record().Conversation
	s.waitUntil("the answer is there", func() bool { return s.timesReceived("in the first") == 1 && s.view().State == sessions.ViewReady })
	s.submit("[[wait 20000]] think")
	s.waitState(sessions.ViewWorking)
	for range 2 {
		if got := s.submit("queued"); got != sessions.ReceiptAccepted {
			t.Errorf("queued: %s", got)
		}
	}
	s.waitUntil("the queue reaches the model", func() bool { return s.timesReceived("queued") == 2 && s.view().State == sessions.ViewReady })
	s.stop()
	if row := s.start(); row.Outcome != sessions.OutcomeResumed || row.Conversation != first {
		t.Errorf("start: %s %s, want %s resumed", row.Outcome, row.Conversation, first)
	}
	s.submit("after the restart")
	s.waitUntil("the resumed conversation goes on", func() bool { return s.timesReceived("after the restart") == 1 })
	if s.timesReceived("in the first") != 1 {
		t.Errorf("the model heard %q", s.model.UserTexts())
	}
}
