package bot_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// TestRealClaudesPermissionRequestsAreDecidedByButtons has each way to answer, with a reply that waits meanwhile.
func TestRealClaudesPermissionRequestsAreDecidedByButtons(t *testing.T) {
	t.Parallel()
	k := newClaudeSession(t, func(s *envOptions) { s.patience = 100 * time.Second })
	t.Cleanup(func() {
		if t.Failed() {
			p, err := k.env.core.Peek(context.Background(), sessions.PeekRequest{Ref: k.ref})
			t.Logf("the pane shows\n%s\n%v", p.Text, err)
		}
	})
	ran := func(name string) bool { _, err := os.Stat(filepath.Join(k.cwd, name)); return err == nil }
	m := k.requestCommand("touch ALLOWED")
	ts := k.reply("[[say what was held]]")
	k.waitReceipt(ts, receiptHeld)
	k.pressDecision(k.env.ann, m.TS, chat.ActionAllow)
	k.waitDecided(m.TS, "Allowed by <@"+k.env.ann.ID+">")
	k.waitReceipt(ts, receiptAccepted)
	k.wantAnswerOnce("what was held")
	if !ran("ALLOWED") {
		t.Error("what was allowed did not run")
	}
	m = k.requestCommand("touch DENIED")
	k.pressDecision(k.env.ann, m.TS, chat.ActionDeny)
	k.waitDecided(m.TS, "Denied by <@"+k.env.ann.ID+">")
	m = k.requestCommand("touch REASON")
	k.pressDecision(k.env.ann, m.TS, chat.ActionReason)
	k.env.waitUntil("the form", func() bool { return len(k.env.Views(k.env.ann.ID)) == 1 })
	if wrong, err := k.env.ann.Submit(k.env.ctx, k.env.Views(k.env.ann.ID)[0].ID, map[string]string{"reason": "wait for noon"}); err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	k.waitDecided(m.TS, "Denied, with a reason, by <@"+k.env.ann.ID+">")
	k.waitIdle()
	peeked, err := k.env.core.Peek(k.env.ctx, sessions.PeekRequest{Ref: k.ref})
	if err != nil || !containsAll(peeked.Text, "wait for noon") {
		t.Errorf("the agent does not show the reason: %s, %v", peeked.Text, err)
	}
	m = k.requestCommand("touch TERMINAL")
	began := time.Now()
	k.env.waitUntil("a person to have read it", func() bool { return time.Since(began) > 2*time.Second })
	k.sendKeys("1")
	k.waitDecided(m.TS, "Answered in the terminal")
	k.waitIdle()
	if ran("DENIED") || ran("REASON") || !ran("TERMINAL") {
		t.Errorf("ran: denied %v, denied with a reason %v, allowed in the terminal %v", ran("DENIED"), ran("REASON"), ran("TERMINAL"))
	}
}

// requestCommand has the agent ask whether it may run a command, and waits for the question.
func (k *realSession) requestCommand(command string) localslack.Message {
	k.env.t.Helper()
	k.waitIdle()
	k.replyAccepted("[[run " + command + "]]")
	var m localslack.Message
	k.env.waitUntil("the question", func() bool {
		m = k.waitBotMessage("The agent asks to use *Bash*", command)
		return buttonLabels(m.Blocks) == permissionLabels
	})
	return m
}
