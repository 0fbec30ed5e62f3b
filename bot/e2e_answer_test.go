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

// answering has final answers posted.
func answering(s *setup) { s.plan = func(p *plan) { p.Answers = relay.AnswersFinal } }

// listenedTo waits until it is stored how far the agent was listened to.
func (a *agent) listenedTo() {
	a.w.t.Helper()
	a.w.until("the place up to which the agent was listened to", func() bool {
		b, _ := a.binding()
		return b.TranscriptOffset != ""
	})
}

// texts are the bot's messages in the thread, without the answer to the prompt that the agent began with.
func (a *agent) texts() []string {
	var all []string
	for _, m := range a.answers() {
		if !strings.Contains(m.Text, "You are the standing session") {
			all = append(all, m.Text)
		}
	}
	return all
}

func (a *agent) wantsTexts(want ...string) {
	a.w.t.Helper()
	got := a.texts()
	if len(got) != len(want) {
		a.w.t.Fatalf("the thread was told %d things, not %d: %.300q", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			a.w.t.Errorf("message %d is %.300q; want %.300q", i, got[i], want[i])
		}
	}
}

func TestWhatTheAgentAnswersArrivesInItsThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.answer("You are the standing session") // what it was started with is answered too
	a.tells("say: # Done\n\n**All** is `well`, <!channel> & see [there](https://example.com/a)")
	m := a.answer("Done")
	if !contains(m.Text, "*Done*", "*All* is `well`", "&lt;!channel&gt; &amp; see", "https://example.com/a") {
		t.Errorf("the answer is %q", m.Text)
	}
	a.keys("say: typed in the terminal", "Enter")
	a.answer("typed in the terminal")
	a.keys("/clear", "Enter")
	a.keys("say: after a clear", "Enter")
	a.answer("after a clear")
	if n := len(a.texts()); n != 3 {
		t.Errorf("the thread was told %d things: %q", n, a.texts())
	}
}

func TestAnswersGoOnAcrossAResumeAndAFreshStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.plan = func(p *plan) { p.Answers, p.Probe = relay.AnswersFinal, time.Second }
	})
	a := w.agent("helper")
	a.tells("say: one")
	a.answer("one")
	if _, err := w.core.Restart(w.ctx, sessions.RestartRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	a.tells("say: two")
	a.answer("two")
	if _, err := w.core.Stop(w.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(smallagent.TranscriptPath(w.plan.Agents, a.conv)); err != nil { // it cannot be resumed
		t.Fatal(err)
	}
	if row, err := w.core.Start(w.ctx, sessions.StartRequest{Ref: a.ref}); err != nil || row.Conversation == a.conv {
		t.Fatalf("%+v, %v", row, err)
	}
	a.tells("say: three")
	a.answer("three")
	w.until("three answers", func() bool { return len(a.texts()) == 3 })
	a.wantsTexts("one", "two", "three")
}

func TestAnswersThatCameWhileTheBotWasDownArePostedInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	a.listenedTo()
	a.tells("slow: 500ms")
	w.stop()
	w.until("the turn's end", func() bool { return len(a.entries(smallagent.TypeAgent)) == 2 })
	for i := range 3 {
		a.keys(fmt.Sprintf("say: while it was down %d", i), "Enter")
		w.until("an answer", func() bool { return len(a.entries(smallagent.TypeAgent)) == 3+i })
	}
	w.start()
	w.until("four answers", func() bool { return len(a.texts()) == 4 })
	got := a.texts()
	if !strings.Contains(got[0], "slow: 500ms") {
		t.Errorf("the first is %q", got[0])
	}
	for i, text := range got[1:] {
		if text != fmt.Sprintf("while it was down %d", i) {
			t.Errorf("out of order: %q", got)
		}
	}
	w.outboxEmpty()
}

// outboxEmpty waits until nothing is left to be posted: texts of agents are on disk only until then.
func (w *world) outboxEmpty() {
	w.t.Helper()
	w.until("an empty outbox", func() bool {
		files, err := os.ReadDir(filepath.Join(w.plan.Root, "outbox"))
		return err == nil && len(files) == 0
	})
}

// Answers during kills of the bot: each is posted once, in order.
func TestABotThatIsKilledAnywherePostsEachAnswerOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unattended, bulk, func(s *setup) {
		s.plan = func(p *plan) { p.Answers = relay.AnswersFinal }
	})
	child := w.spawn()
	a := w.agent("helper")
	a.listenedTo()
	const rounds = 8
	for i := range rounds {
		a.keys(fmt.Sprintf("say: answer %02d", i), "Enter")
		w.until("the turn's end", func() bool { return len(a.entries(smallagent.TypeAgent)) == i+2 })
		w.after(300 * time.Millisecond)
		child.kill()
		child = w.spawn()
	}
	w.until("the last answer", func() bool { return a.count(fmt.Sprintf("answer %02d", rounds-1)) > 0 })
	w.outboxEmpty()
	want := make([]string, rounds)
	for i := range want {
		want[i] = fmt.Sprintf("answer %02d", i)
	}
	a.wantsTexts(want...)
}

func TestALongAnswerIsSplitWithinSlacksLimitsAndItsRestNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, answering)
	a := w.agent("helper")
	var b strings.Builder
	b.WriteString("say: The log:\n\n```\n")
	for i := 0; b.Len() < 40<<10; i++ {
		fmt.Fprintf(&b, "line %04d of the log, <with> some & marks\n", i)
	}
	b.WriteString("```\n")
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: b.String()}); err != nil {
		t.Fatal(err)
	}
	whole := a.file("answer.md")
	if want := strings.TrimPrefix(strings.TrimSpace(b.String()), "say: "); strings.TrimSpace(whole) != want {
		t.Errorf("the whole has %d bytes; want %d", len(whole), len(want))
	}
	texts := slices.DeleteFunc(a.texts(), func(text string) bool { return strings.Contains(text, "This was the beginning of") })
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

func TestNothingIsPostedOfTheAgentWhereRepliesAreOffAndNothingOldWhenTheyAreOnAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.tells("say: unheard")
	w.until("the answer", func() bool { return len(a.entries(smallagent.TypeAgent)) == 2 })
	w.change(func(p *plan) { p.Answers = relay.AnswersAll })
	a.listenedTo()
	a.tells("say: heard")
	a.answer("heard")
	a.wantsTexts("heard")
}

func TestAValueOfTheEnvironmentIsNotInAnAnswerAlsoWhereItIsCut(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2-hunter2"
	w := newWorld(t, answering, func(s *setup) {
		s.options = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, secret, "[hidden]") }
		}
	})
	a := w.agent("helper")
	text := "say: " + strings.Repeat("x"+secret, 700)
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: text}); err != nil {
		t.Fatal(err)
	}
	w.until("several messages", func() bool { return len(a.texts()) > 1 })
	for _, m := range a.texts() {
		if strings.Contains(m, "hunter") || !strings.Contains(m, "hidden") {
			t.Errorf("posted %.200q", m)
		}
	}
}
