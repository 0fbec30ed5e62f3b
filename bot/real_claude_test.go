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
	k := newClaudeSession(t)
	k.replyAndWaitAnswer("the first answer")
	k.checkShellPrefix()
	k.checkClear()
	k.checkBotKilled()
	k.checkAgentKilled()
	k.checkLongTexts()
	for _, text := range []string{"the first answer", "after the clear", "while it was down", "after the kill"} {
		k.wantAnswerOnce(text)
	}
}

// checkShellPrefix has a leading "!" reach the agent as text.
func (k *realSession) checkShellPrefix() {
	k.env.t.Helper()
	k.replyAccepted("!touch RAN")
	k.env.waitUntil("the model to be told", func() bool { return k.modelReceived(`From "Ann": !touch RAN`) == 1 })
	k.waitIdle()
	if _, err := os.Stat(filepath.Join(k.cwd, "RAN")); err == nil {
		k.env.t.Error("a leading ! ran a command")
	}
}

// checkClear has the agent begin another conversation.
func (k *realSession) checkClear() {
	k.env.t.Helper()
	k.replyAccepted("@the-loop raw /clear")
	k.replyAndWaitAnswer("after the clear")
	k.env.waitUntil("a conversation without what was before", func() bool { return k.modelReceived("[[say the first answer]]") == 0 })
}

// checkBotKilled kills the bot in the middle of a turn, which the thread showed.
func (k *realSession) checkBotKilled() {
	k.env.t.Helper()
	k.reply("[[wait 8000]] [[say while it was down]]")
	k.waitStatus("is working…")
	k.botProcess.kill()
	k.env.waitUntil("the model to be told", func() bool { return k.modelReceived("[[wait 8000]] [[say while it was down]]") == 1 })
	k.waitIdle()
	k.botProcess = k.env.startBotProcess()
	k.wantAnswerOnce("while it was down")
	k.waitStatus("")
}

// checkAgentKilled ends the agent as a power cut does, in the middle of a turn, and resumes it.
func (k *realSession) checkAgentKilled() {
	k.env.t.Helper()
	k.replyAccepted("[[wait 60000]] never answered")
	k.waitStatus("is working…")
	k.killProcess()
	k.waitStatus("")
	row, err := k.env.core.Start(k.env.ctx, sessions.StartRequest{Ref: k.ref})
	if err != nil || row.Outcome != sessions.OutcomeResumed {
		k.env.t.Fatalf("start: %s, %v", row.Outcome, err)
	}
	k.waitIdle()
	k.replyAndWaitAnswer("after the kill")
	k.env.waitUntil("the conversation to have gone on", func() bool { return k.modelReceived("[[say after the clear]]") == 1 })
}

// checkLongTexts sends the agent 400 kB, and has it answer as much.
func (k *realSession) checkLongTexts() {
	k.env.t.Helper()
	text := strings.Repeat("a line of a very long text\n", 15_000) + "[[lines 13000]]"
	receipt, err := k.env.core.Submit(k.env.ctx, sessions.SubmitRequest{Ref: k.ref, Text: text})
	if err != nil || receipt != sessions.ReceiptAccepted {
		k.env.t.Fatalf("%d bytes: %s, %v", len(text), receipt, err)
	}
	k.env.waitUntil("the model to be told", func() bool { return k.modelReceived(text) == 1 })
	k.testSession.waitBotMessage("line 000000 of a long answer")
	k.waitIdle()
	k.env.waitOutboxEmpty()
	if n := k.countBotMessages("of a long answer"); n > 10 {
		k.env.t.Errorf("a long answer is %d messages", n)
	}
	if n := k.countBotMessages("line 000000 of"); n != 1 {
		k.env.t.Errorf("a long answer begins %d times", n)
	}
}

// TestRealClaudeTakes200RepliesAtRandomMomentsOnceAndInOrder is a burst at an agent that works most of the time.
func TestRealClaudeTakes200RepliesAtRandomMomentsOnceAndInOrder(t *testing.T) {
	t.Parallel()
	k := newClaudeSession(t)
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
		want, replies = append(want, normalizeSpace(text)), append(replies, k.reply(text))
		k.sleepRandom(r)
	}
	for ts, e := range k.waitRepliesSettled(replies) { // the receipts take their time: Slack takes fifty a minute
		if e.State != binding.StateSettled || e.Outcome == binding.OutcomeFailed {
			t.Errorf("the reply %s is %s %s", ts, e.State, e.Outcome)
		}
	}
	k.env.waitUntil("the last reply to reach the model", func() bool { return k.modelReceived(want[len(want)-1]) > 0 })
	var got []string
	for _, h := range k.model.UserTexts() {
		if text := normalizeSpace(h); strings.HasPrefix(text, "reply ") {
			got = append(got, text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the model was told %d replies: %q", len(got), got)
	}
}

// sleepRandom lets some time pass between two replies, mostly little.
func (k *realSession) sleepRandom(r *rand.Rand) {
	k.env.t.Helper()
	most := 100 * time.Millisecond
	if r.IntN(10) == 0 {
		most = 2 * time.Second
	}
	select {
	case <-time.After(time.Duration(r.Int64N(int64(most)))):
	case <-k.env.ctx.Done():
		k.env.t.Fatal("out of time")
	}
}
