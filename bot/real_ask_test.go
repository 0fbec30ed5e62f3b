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

// TestRealClaudesPermissionIsGivenAndRefusedByButtons has each way to answer, with a reply that waits meanwhile.
func TestRealClaudesPermissionIsGivenAndRefusedByButtons(t *testing.T) {
	t.Parallel()
	k := newTalk(t, func(s *setup) { s.patience = 100 * time.Second })
	t.Cleanup(func() {
		if t.Failed() {
			p, err := k.w.core.Peek(context.Background(), sessions.PeekRequest{Ref: k.ref})
			t.Logf("the pane shows\n%s\n%v", p.Text, err)
		}
	})
	ran := func(name string) bool { _, err := os.Stat(filepath.Join(k.cwd, name)); return err == nil }
	m := k.runs("touch ALLOWED")
	ts := k.reply("[[say what was held]]")
	k.receipt(ts, held)
	k.decides(k.w.ann, m.TS, chat.ActionAllow)
	k.closed(m.TS, "Allowed by <@"+k.w.ann.ID+">")
	k.receipt(ts, accepted)
	k.once("what was held")
	if !ran("ALLOWED") {
		t.Error("what was allowed did not run")
	}
	m = k.runs("touch DENIED")
	k.decides(k.w.ann, m.TS, chat.ActionDeny)
	k.closed(m.TS, "Denied by <@"+k.w.ann.ID+">")
	m = k.runs("touch REASON")
	k.decides(k.w.ann, m.TS, chat.ActionReason)
	k.w.until("the form", func() bool { return len(k.w.Views(k.w.ann.ID)) == 1 })
	if wrong, err := k.w.ann.Submit(k.w.ctx, k.w.Views(k.w.ann.ID)[0].ID, map[string]string{"reason": "wait for noon"}); err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	k.closed(m.TS, "Denied, with a reason, by <@"+k.w.ann.ID+">")
	k.rests()
	peeked, err := k.w.core.Peek(k.w.ctx, sessions.PeekRequest{Ref: k.ref})
	if err != nil || !contains(peeked.Text, "wait for noon") {
		t.Errorf("the agent does not show the reason: %s, %v", peeked.Text, err)
	}
	m = k.runs("touch TERMINAL")
	began := time.Now()
	k.w.until("a person to have read it", func() bool { return time.Since(began) > 2*time.Second })
	k.keys("1")
	k.closed(m.TS, "Answered in the terminal")
	k.rests()
	if ran("DENIED") || ran("REASON") || !ran("TERMINAL") {
		t.Errorf("ran: denied %v, denied with a reason %v, allowed in the terminal %v", ran("DENIED"), ran("REASON"), ran("TERMINAL"))
	}
}

// runs has the agent ask whether it may run a command, and waits for the question.
func (k *talk) runs(command string) localslack.Message {
	k.w.t.Helper()
	k.rests()
	k.tells("[[run " + command + "]]")
	var m localslack.Message
	k.w.until("the question", func() bool {
		m = k.answer("The agent asks to use *Bash*", command)
		return labels(m.Blocks) == askLabels
	})
	return m
}
