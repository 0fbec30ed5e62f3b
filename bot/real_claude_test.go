package bot_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/binding"
)

// TestRealClaudeAnswersInItsThread is a talk through everything that happens to an agent and a bot in a day.
func TestRealClaudeAnswersInItsThread(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.gets("the first answer")
	k.shell()
	k.clear()
	k.botDown()
	k.killed()
	k.long()
	for _, text := range []string{"the first answer", "after the clear", "while it was down", "after the kill"} {
		k.once(text)
	}
}

// shell has a leading "!" reach the agent as text.
func (k *talk) shell() {
	k.w.t.Helper()
	k.tells("!touch RAN")
	k.w.until("the model to be told", func() bool { return k.heard(`From "Ann": !touch RAN`) == 1 })
	k.rests()
	if _, err := os.Stat(filepath.Join(k.cwd, "RAN")); err == nil {
		k.w.t.Error("a leading ! ran a command")
	}
}

// clear has the agent begin another conversation.
func (k *talk) clear() {
	k.w.t.Helper()
	k.tells("@the-loop raw /clear")
	k.gets("after the clear")
	k.w.until("a conversation without what was before", func() bool { return k.heard("[[say the first answer]]") == 0 })
}

// botDown kills the bot in the middle of a turn, which the thread showed.
func (k *talk) botDown() {
	k.w.t.Helper()
	k.reply("[[wait 8000]] [[say while it was down]]")
	k.showsStatus("is working…")
	k.bot.kill()
	k.w.until("the model to be told", func() bool { return k.heard("[[wait 8000]] [[say while it was down]]") == 1 })
	k.rests()
	k.bot = k.w.spawn()
	k.once("while it was down")
	k.showsStatus("")
}

// killed ends the agent as a power cut does, in the middle of a turn, and resumes it.
func (k *talk) killed() {
	k.w.t.Helper()
	k.tells("[[wait 60000]] never answered")
	k.showsStatus("is working…")
	k.kill()
	k.showsStatus("")
	row, err := k.w.core.Start(k.w.ctx, sessions.StartRequest{Ref: k.ref})
	if err != nil || row.Outcome != sessions.OutcomeResumed {
		k.w.t.Fatalf("start: %s, %v", row.Outcome, err)
	}
	k.rests()
	k.gets("after the kill")
	k.w.until("the conversation to have gone on", func() bool { return k.heard("[[say after the clear]]") == 1 })
}

// long sends the agent 400 kB, and has it answer as much.
func (k *talk) long() {
	k.w.t.Helper()
	text := strings.Repeat("a line of a very long text\n", 15_000) + "[[lines 13000]]"
	receipt, err := k.w.core.Submit(k.w.ctx, sessions.SubmitRequest{Ref: k.ref, Text: text})
	if err != nil || receipt != sessions.ReceiptAccepted {
		k.w.t.Fatalf("%d bytes: %s, %v", len(text), receipt, err)
	}
	k.w.until("the model to be told", func() bool { return k.heard(text) == 1 })
	k.agent.answer("line 000000 of a long answer")
	k.rests()
	k.w.outboxEmpty()
	if n := k.count("of a long answer"); n > 10 {
		k.w.t.Errorf("a long answer is %d messages", n)
	}
	if n := k.count("line 000000 of"); n != 1 {
		k.w.t.Errorf("a long answer begins %d times", n)
	}
}

// TestRealClaudeTakes200RepliesAtRandomMomentsOnceAndInOrder is a burst at an agent that works most of the time.
func TestRealClaudeTakes200RepliesAtRandomMomentsOnceAndInOrder(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var want, replies []string
	for i := range 200 {
		text := fmt.Sprintf("reply %03d", i)
		if r.IntN(4) == 0 {
			text += fmt.Sprintf(" [[wait %d]]", r.IntN(3000))
		}
		if r.IntN(10) == 0 {
			text += strings.Repeat("\nand another line", 1+r.IntN(60))
		}
		want, replies = append(want, commandArgs(text)), append(replies, k.reply(text))
		k.pause(r)
	}
	for ts, e := range k.settled(replies) { // the receipts take their time: Slack takes fifty a minute
		if e.State != binding.StateSettled || e.Outcome == binding.OutcomeFailed {
			t.Errorf("the reply %s is %s %s", ts, e.State, e.Outcome)
		}
	}
	k.w.until("the last reply to reach the model", func() bool { return k.heard(want[len(want)-1]) > 0 })
	var got []string
	for _, h := range k.model.UserTexts() {
		if text := commandArgs(h); strings.HasPrefix(text, "reply ") {
			got = append(got, text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the model was told %d replies: %q", len(got), got)
	}
}

// pause lets some time pass between two replies, mostly little.
func (k *talk) pause(r *rand.Rand) {
	k.w.t.Helper()
	most := 100 * time.Millisecond
	if r.IntN(10) == 0 {
		most = 2 * time.Second
	}
	select {
	case <-time.After(time.Duration(r.Int64N(int64(most)))):
	case <-k.w.ctx.Done():
		k.w.t.Fatal("out of time")
	}
}
