package bot_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/threads/binding"
)

// botProcess is a bot in a process of its own, which can be killed.
type botProcess struct {
	env  *env
	cmd  *exec.Cmd
	done chan struct{}
}

// startBotProcess starts a bot in a process of its own.
func (w *env) startBotProcess() *botProcess {
	w.t.Helper()
	data, err := json.Marshal(w.config())
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.botConfig.TmuxDir, configFile)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	c := &botProcess{env: w, cmd: exec.Command(os.Args[0], roleBot, file), done: make(chan struct{})}
	c.cmd.Stderr = w.logs
	c.cmd.WaitDelay = time.Second
	if err := c.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		_ = c.cmd.Wait() // it is killed
	}()
	w.t.Cleanup(c.kill)
	return c
}

// kill ends it as a power cut does.
func (c *botProcess) kill() {
	select {
	case <-c.done:
		return
	default:
	}
	_ = c.cmd.Process.Kill() // it may have ended by now
	<-c.done
}

// sleepRandom waits for some moment within d.
func (w *env) sleepRandom(d time.Duration) {
	w.t.Helper()
	select {
	case <-time.After(rand.N(d)):
	case <-w.ctx.Done():
		w.t.Fatal("out of time")
	}
}

// waitMidDelivery waits until a reply is on its way into the pane, and then for some moment of that; d at most.
func (a *testSession) waitMidDelivery(d time.Duration) {
	a.env.t.Helper()
	late := time.After(d)
	for {
		b, _ := a.binding()
		for _, e := range b.Replies {
			if e.State == binding.StateInflight {
				a.env.sleepRandom(20 * time.Millisecond)
				return
			}
		}
		select {
		case <-time.After(300 * time.Microsecond):
		case <-late:
			return
		case <-a.env.ctx.Done():
			a.env.t.Fatal("out of time")
		}
	}
}

// waitRepliesSettled waits until nothing of the replies is under way: each is settled, or put to somebody.
func (a *testSession) waitRepliesSettled(replies []string) map[string]binding.Entry {
	a.env.t.Helper()
	states := map[string]binding.Entry{}
	a.env.waitUntil("all replies to be settled or asked about", func() bool {
		b, ok := a.binding()
		return ok && !slices.ContainsFunc(replies, func(ts string) bool {
			states[ts] = storedReplyIn(b, ts)
			return states[ts].State != binding.StateSettled && states[ts].State != binding.StateDoubt
		})
	})
	return states
}

// checkReplies fails when a reply arrived twice, out of order, or is lost without a word; it returns how many are in doubt.
func (a *testSession) checkReplies(texts map[string]string) int {
	a.env.t.Helper()
	order := slices.Sorted(mapKeys(texts))
	states := a.waitRepliesSettled(order)
	a.env.waitUntil("what was typed is in the agent's record", func() bool { // without proof, tmux submits it a moment later
		got := a.receivedTexts()
		return !slices.ContainsFunc(order, func(ts string) bool {
			return states[ts].Outcome == binding.OutcomeTyped && !slices.Contains(got, texts[ts])
		})
	})
	got := a.receivedTexts()
	at, doubts := -1, 0
	for _, ts := range order {
		i := slices.Index(got, texts[ts])
		switch {
		case i >= 0 && slices.Contains(got[i+1:], texts[ts]):
			a.env.t.Errorf("%q arrived twice", texts[ts])
		case i >= 0 && i < at:
			a.env.t.Errorf("%q arrived out of order", texts[ts])
		case i < 0 && states[ts].State != binding.StateDoubt:
			a.env.t.Errorf("%q is lost: %+v", texts[ts], states[ts])
		}
		at = max(at, i)
		if states[ts].State == binding.StateDoubt {
			doubts++
		}
	}
	if len(got) > len(texts) {
		a.env.t.Errorf("%d texts arrived of %d", len(got), len(texts))
	}
	a.env.waitUntil("a question for each in doubt", func() bool { return a.countBotMessages("I cannot tell whether the reply") == doubts })
	return doubts
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Killed at any moment, the bot types nothing twice and loses nothing without a word.
func TestABotThatIsKilledAnywhereTypesNothingTwiceAndLosesNothingSilently(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, withoutBot)
	bot := w.startBotProcess()
	a := w.startSession("helper")
	texts := map[string]string{}
	const rounds = 15
	for i := range rounds {
		for j := range 4 {
			text := fmt.Sprintf("round %d, reply %d", i, j)
			texts[a.reply(text)] = text
		}
		if i%3 == 1 {
			w.sleepRandom(300 * time.Millisecond)
		} else {
			a.waitMidDelivery(time.Second)
		}
		bot.kill()
		bot = w.startBotProcess()
		if i%3 == 0 {
			w.sleepRandom(100 * time.Millisecond) // killed while it starts
			bot.kill()
			bot = w.startBotProcess()
		}
	}
	t.Logf("%d replies, %d kills, %d in doubt", len(texts), rounds+rounds/3, a.checkReplies(texts))
	a.reply("the end")
	w.waitUntil("the end", func() bool { return slices.Contains(a.receivedTexts(), "the end") })
}

// A harness without proof: what was on its way at the kill is in doubt, and all else as with one.
func TestABotThatIsKilledWithAHarnessWithoutProof(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, withoutBot)
	var bot *botProcess
	a := w.startTemplateSession("tool", 0, func() { bot = w.startBotProcess() })
	texts := map[string]string{}
	for i := range 10 {
		for j := range 3 {
			text := fmt.Sprintf("round %d, reply %d", i, j)
			texts[a.reply(text)] = text
		}
		a.waitMidDelivery(time.Second)
		bot.kill()
		bot = w.startBotProcess()
	}
	t.Logf("%d replies, %d in doubt", len(texts), a.checkReplies(texts))
}

// Two equal replies are two, also when the bot is killed between them.
func TestEqualRepliesStayTwoWhenTheBotIsKilled(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, withoutBot)
	bot := w.startBotProcess()
	a := w.startSession("helper")
	var ts []string
	for range 6 {
		ts = append(ts, a.reply("yes"), a.reply("yes"))
		a.waitMidDelivery(time.Second)
		bot.kill()
		bot = w.startBotProcess()
	}
	doubts := 0
	for _, e := range a.waitRepliesSettled(ts) {
		if e.State == binding.StateDoubt {
			doubts++
		}
	}
	if n := len(a.receivedTexts()); n > len(ts) || n < len(ts)-doubts {
		t.Errorf("%d equal replies arrived %d times, and %d are in doubt", len(ts), n, doubts)
	}
}

// A crash between the post and the binding makes no second announcement and loses no reply.
func TestAnnouncingSurvivesAKillAnywhere(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, withoutBot)
	d := w.definition("helper")
	a := w.startDefined(d)
	said := map[string]bool{}
	texts := map[string]string{}
	for i := range 12 {
		bot := w.startBotProcess()
		w.sleepRandom(150 * time.Millisecond)
		bot.kill()
		for _, m := range w.Messages(w.ch) {
			if m.User == w.BotUserID() && m.ThreadTS == "" && !said[m.TS] {
				said[m.TS] = true
				a.root = m.TS
			}
		}
		if a.root != "" {
			text := fmt.Sprint("reply ", i)
			texts[a.reply(text)] = text
		}
	}
	w.startBotProcess()
	a.waitAnnounced()
	if len(texts) == 0 {
		text := "reply at last"
		texts[a.reply(text)] = text
	}
	a.checkReplies(texts)
	roots := 0
	for _, m := range w.Messages(w.ch) {
		if m.User == w.BotUserID() && m.ThreadTS == "" || m.User == w.BotUserID() && m.ThreadTS == m.TS {
			roots++
		}
	}
	if roots != 1 || len(said) > 1 {
		t.Errorf("%d announcements: %s", roots, w.channelText())
	}
}

// Slack took the announcement, and its answer was lost.
func TestAnAnnouncementWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]localslack.APIFault{"cut": localslack.CutAfter(), "internal error": localslack.Error("internal_error")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.Faults().InjectAPI("chat.postMessage", 1, fault)
			a := w.startDefined(w.definition("helper"))
			w.waitUntil("the try", func() bool { return len(w.RequestsOf("chat.postMessage")) > 0 })
			w.startAndConnect()
			a.waitAnnounced()
			a.waitReady()
			a.replyAccepted("hello")
			roots := slices.DeleteFunc(w.Messages(w.ch), func(m localslack.Message) bool { return m.User != w.BotUserID() || m.IsReply() })
			if len(roots) != 1 {
				t.Errorf("%d announcements: %s", len(roots), w.channelText())
			}
		})
	}
}

// What the bot has to say is said once, though it is killed while it says it.
func TestARefusalIsPostedOnceThoughTheBotIsKilled(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, withoutBot)
	bot := w.startBotProcess()
	a := w.startSession("helper")
	if _, err := w.core.Stop(w.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	const replies = 8
	for range replies {
		a.reply("anybody?")
		w.sleepRandom(80 * time.Millisecond)
		bot.kill()
		bot = w.startBotProcess()
	}
	w.waitUntil("an answer to each", func() bool { return a.countBotMessages("Not delivered")+a.countBotMessages("I cannot tell") >= replies })
	a.env.restartSession(a)
	a.replyAccepted("the end")
	if n := a.countBotMessages("Not delivered"); n != replies {
		t.Errorf("%d replies were refused %d times: %s", replies, n, w.channelText())
	}
	if got := strings.Join(a.receivedTexts(), ", "); got != "the end" {
		t.Errorf("the agent got %s", got)
	}
}
