package bot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/bot"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/threads/relay"
)

// withFinalAnswers has final answers posted.
func withFinalAnswers(s *envOptions) {
	s.config = func(p *botConfig) { p.Answers = relay.AnswersFinal }
}

// waitOffsetStored waits until it is stored how far the agent was listened to.
func (a *testSession) waitOffsetStored() {
	a.env.t.Helper()
	a.env.waitUntil("the place up to which the agent was listened to", func() bool {
		b, _ := a.binding()
		return b.TranscriptOffset != ""
	})
}

// answerTexts are the bot's messages in the thread, without the answer to the prompt that the agent began with.
func (a *testSession) answerTexts() []string {
	var all []string
	for _, m := range a.botMessages() {
		if !strings.Contains(m.Text, "You are the standing session") {
			all = append(all, m.Text)
		}
	}
	return all
}

func (a *testSession) wantAnswerTexts(want ...string) {
	a.env.t.Helper()
	got := a.answerTexts()
	if len(got) != len(want) {
		a.env.t.Fatalf("the thread was told %d things, not %d: %.300q", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			a.env.t.Errorf("message %d is %.300q; want %.300q", i, got[i], want[i])
		}
	}
}

func TestWhatTheAgentAnswersArrivesInItsThread(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitBotMessage("You are the standing session") // what it was started with is answered too
	a.replyAccepted("say: # Done\n\n**All** is `well`, <!channel> & see [there](https://example.com/a)")
	m := a.waitBotMessage("Done")
	if !containsAll(m.Text, "*Done*", "*All* is `well`", "&lt;!channel&gt; &amp; see", "https://example.com/a") {
		t.Errorf("the answer is %q", m.Text)
	}
	a.sendKeys("say: typed in the terminal", "Enter")
	a.waitBotMessage("typed in the terminal")
	a.sendKeys("/clear", "Enter")
	a.sendKeys("say: after a clear", "Enter")
	a.waitBotMessage("after a clear")
	if n := len(a.answerTexts()); n != 3 {
		t.Errorf("the thread was told %d things: %q", n, a.answerTexts())
	}
}

func TestAnswersGoOnAcrossAResumeAndAFreshStart(t *testing.T) {
	t.Parallel()
	w := newEnv(t, func(s *envOptions) {
		s.config = func(p *botConfig) { p.Answers, p.Probe = relay.AnswersFinal, time.Second }
	})
	a := w.startSession("helper")
	a.replyAccepted("say: one")
	a.waitBotMessage("one")
	if _, err := w.core.Restart(w.ctx, sessions.RestartRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	a.replyAccepted("say: two")
	a.waitBotMessage("two")
	if _, err := w.core.Stop(w.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(smallagent.TranscriptPath(w.botConfig.Agents, a.conv)); err != nil { // it cannot be resumed
		t.Fatal(err)
	}
	if row, err := w.core.Start(w.ctx, sessions.StartRequest{Ref: a.ref}); err != nil || row.Conversation == a.conv {
		t.Fatalf("%+v, %v", row, err)
	}
	a.replyAccepted("say: three")
	a.waitBotMessage("three")
	w.waitUntil("three answers", func() bool { return len(a.answerTexts()) == 3 })
	a.wantAnswerTexts("one", "two", "three")
}

func TestAnswersThatCameWhileTheBotWasDownArePostedInOrder(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	a.waitOffsetStored()
	a.replyAccepted("slow: 500ms")
	w.stopBot()
	w.waitUntil("the turn's end", func() bool { return len(a.entries(smallagent.TypeAgent)) == 2 })
	for i := range 3 {
		a.sendKeys(fmt.Sprintf("say: while it was down %d", i), "Enter")
		w.waitUntil("an answer", func() bool { return len(a.entries(smallagent.TypeAgent)) == 3+i })
	}
	w.startBot()
	w.waitUntil("four answers", func() bool { return len(a.answerTexts()) == 4 })
	got := a.answerTexts()
	if !strings.Contains(got[0], "slow: 500ms") {
		t.Errorf("the first is %q", got[0])
	}
	for i, text := range got[1:] {
		if text != fmt.Sprintf("while it was down %d", i) {
			t.Errorf("out of order: %q", got)
		}
	}
	w.waitOutboxEmpty()
}

// waitOutboxEmpty waits until nothing is left to be posted: texts of agents are on disk only until then.
func (w *env) waitOutboxEmpty() {
	w.t.Helper()
	w.waitUntil("an empty outbox", func() bool {
		files, err := os.ReadDir(filepath.Join(w.botConfig.Root, "outbox"))
		return err == nil && len(files) == 0
	})
}

// Answers during kills of the bot: each is posted once, in order.
func TestABotThatIsKilledAnywherePostsEachAnswerOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutBot, withoutRateLimits, func(s *envOptions) {
		s.config = func(p *botConfig) { p.Answers = relay.AnswersFinal }
	})
	child := w.startBotProcess()
	a := w.startSession("helper")
	a.waitOffsetStored()
	const rounds = 8
	for i := range rounds {
		a.sendKeys(fmt.Sprintf("say: answer %02d", i), "Enter")
		w.waitUntil("the turn's end", func() bool { return len(a.entries(smallagent.TypeAgent)) == i+2 })
		w.sleepRandom(300 * time.Millisecond)
		child.kill()
		child = w.startBotProcess()
	}
	w.waitUntil("the last answer", func() bool { return a.countBotMessages(fmt.Sprintf("answer %02d", rounds-1)) > 0 })
	w.waitOutboxEmpty()
	want := make([]string, rounds)
	for i := range want {
		want[i] = fmt.Sprintf("answer %02d", i)
	}
	a.wantAnswerTexts(want...)
}

func TestALongAnswerIsSplitWithinSlacksLimitsAndItsRestNamed(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFinalAnswers)
	a := w.startSession("helper")
	var b strings.Builder
	b.WriteString("say: The log:\n\n```\n")
	for i := 0; b.Len() < 40<<10; i++ {
		fmt.Fprintf(&b, "line %04d of the log, <with> some & marks\n", i)
	}
	b.WriteString("```\n")
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: b.String()}); err != nil {
		t.Fatal(err)
	}
	whole := a.waitPostedFile("answer.md")
	if want := strings.TrimPrefix(strings.TrimSpace(b.String()), "say: "); strings.TrimSpace(whole) != want {
		t.Errorf("the whole has %d bytes; want %d", len(whole), len(want))
	}
	texts := slices.DeleteFunc(a.answerTexts(), func(text string) bool { return strings.Contains(text, "This was the beginning of") })
	if len(texts) != 5 {
		t.Fatalf("the thread was told %d things", len(texts))
	}
	at := 0
	for i, text := range texts {
		if len(text) > 4000 || strings.Count(text, "```")%2 != 0 {
			t.Errorf("message %d has %d bytes, and %d fences", i, len(text), strings.Count(text, "```"))
		}
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "line ") {
				if want := fmt.Sprintf("line %04d of the log, &lt;with&gt; some &amp; marks", at); line != want {
					t.Fatalf("message %d: %q; want %q", i, line, want)
				}
				at++
			}
		}
	}
	if at < 200 {
		t.Errorf("only %d lines arrived", at)
	}
}

func TestNothingOfTheAgentIsPostedWhileRepliesAreOffAndNothingOldAfterwards(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("say: unheard")
	w.waitUntil("the answer", func() bool { return len(a.entries(smallagent.TypeAgent)) == 2 })
	w.changeConfig(func(p *botConfig) { p.Answers = relay.AnswersAll })
	a.waitOffsetStored()
	a.replyAccepted("say: heard")
	a.waitBotMessage("heard")
	a.wantAnswerTexts("heard")
}

func TestNoValueOfTheEnvironmentIsInAnAnswerThatIsCut(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2-hunter2"
	w := newEnv(t, withFinalAnswers, func(s *envOptions) {
		s.botOptions = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[hidden]") }
		}
	})
	a := w.startSession("helper")
	text := "say: " + strings.Repeat("x"+secret, 700)
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: text}); err != nil {
		t.Fatal(err)
	}
	w.waitUntil("several messages", func() bool { return len(a.answerTexts()) > 1 })
	for _, m := range a.answerTexts() {
		if strings.Contains(m, "hunter") || !strings.Contains(m, "hidden") {
			t.Errorf("posted %.200q", m)
		}
	}
}
