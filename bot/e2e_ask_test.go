package bot_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/bot"
	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/threads"
	"the-loop/threads/chat"
)

const askLabels = "Allow Deny Deny with a reason…"

// asks has the agent ask for permission and waits for the question in the thread, with its buttons.
func (a *agent) asks(what string) localslack.Message {
	a.w.t.Helper()
	a.tells("ask: " + what)
	return a.asked(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(what))
}

func (a *agent) asked(parts ...string) localslack.Message {
	a.w.t.Helper()
	var m localslack.Message
	a.w.until("the question in the thread", func() bool {
		m = a.answer(append([]string{"The agent asks to use *Shell*"}, parts...)...)
		return labels(m.Blocks) == askLabels
	})
	return m
}

// closed waits for the question to have lost its buttons and to say these.
func (a *agent) closed(ts string, parts ...string) {
	a.w.t.Helper()
	a.w.until("the question to be closed with "+strings.Join(parts, ", "), func() bool {
		m, _ := a.w.Message(a.ch, ts)
		return labels(m.Blocks) == "" && contains(m.Text, parts...)
	})
}

// decides presses a button of a question.
func (a *agent) decides(who *localslack.Person, ts, action string) {
	a.w.t.Helper()
	if err := who.Click(a.w.ctx, a.ch, ts, action); err != nil {
		a.w.t.Fatal(err)
	}
}

// dialogs is how the agent's dialogs ended.
func (a *agent) dialogs() []string {
	a.w.t.Helper()
	var all []string
	for _, e := range a.entries(smallagent.TypeDialog) {
		all = append(all, strings.Join([]string{e.Decision, e.How, e.Reason}, "|"))
	}
	return all
}

func (a *agent) wantsDialogs(want ...string) {
	a.w.t.Helper()
	a.w.until(fmt.Sprintf("the dialogs to end as %q", want), func() bool { return len(a.dialogs()) >= len(want) })
	if got := a.dialogs(); !slices.Equal(got, want) {
		a.w.t.Errorf("the dialogs ended as %q; want %q", got, want)
	}
}

// eventsOf are the events with that name of the session.
func (a *agent) eventsOf(name string) []sessions.Event {
	return slices.DeleteFunc(a.w.events.Events(), func(e sessions.Event) bool { return e.Name != name || e.ID != a.id })
}

func TestAQuestionIsAllowedByAButton(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	m := a.asks("deploy <!channel> & `more`")
	if strings.Contains(m.Text, "<!channel>") || !strings.Contains(m.Text, "deploy &lt;!channel&gt; &amp; `more`") || !strings.Contains(m.Text, w.plan.TmuxDir) {
		t.Errorf("it is asked as %q", m.Text)
	}
	a.until(smallagent.StateAsking) // the terminal can be used all the while
	a.decides(w.ann, m.TS, chat.ActionAllow)
	a.closed(m.TS, "The agent asks to use", "Allowed by <@"+w.ann.ID+">")
	a.whispered("Allowed by <@" + w.ann.ID + ">")
	a.wantsDialogs("approved|hook|")
	a.until(smallagent.StateReady)
	a.wants("ask: deploy <!channel> & `more`") // and no key was pressed
	if asked, decided := a.eventsOf(threads.EventPermissionRequested), a.eventsOf(threads.EventPermissionDecided); len(asked) != 1 || len(decided) != 1 ||
		decided[0].Fields["user"] != w.ann.ID || decided[0].Fields["verdict"] != sessions.VerdictAllow || decided[0].Fields["ask"] != asked[0].Fields["ask"] {
		t.Errorf("events %+v, %+v", asked, decided)
	}
	for _, e := range w.events.Events() {
		if strings.Contains(fmt.Sprint(e.Fields), "deploy") {
			t.Errorf("the event log has what was asked: %+v", e)
		}
	}
	if left, err := os.ReadDir(filepath.Join(w.plan.Root, "run", "ask")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAQuestionIsDeniedByAButtonOnceAndForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	w.change(func(p *plan) { p.Users = append(p.Users, w.bob.ID) })
	m := a.asks("deploy")
	a.decides(w.ann, m.TS, chat.ActionDeny)
	a.closed(m.TS, "Denied by <@"+w.ann.ID+">")
	a.wantsDialogs("denied|hook|The operator denied this.")
	value := buttonValue(m.Blocks)
	for _, who := range []*localslack.Person{w.ann, w.bob} {
		before := len(w.Ephemerals(who.ID))
		w.press(who, a, m, chat.ActionAllow, value)
		w.until("the answer to a second click", func() bool {
			all := w.Ephemerals(who.ID)
			return len(all) > before && contains(all[len(all)-1].Text, "Already decided", "Denied by <@"+w.ann.ID+">")
		})
	}
	a.wantsDialogs("denied|hook|The operator denied this.")
	w.back()
	before := len(w.Ephemerals(w.bob.ID))
	w.press(w.bob, a, m, chat.ActionAllow, value)
	w.until("the answer after a restart", func() bool {
		all := w.Ephemerals(w.bob.ID)
		return len(all) > before && contains(all[len(all)-1].Text, "Already decided", "Denied by <@"+w.ann.ID+">")
	})
}

func TestAQuestionIsDeniedWithAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	m := a.asks("deploy")
	a.decides(w.ann, m.TS, chat.ActionReason)
	var view localslack.View
	w.until("the form", func() bool {
		open := w.Views(w.ann.ID)
		if len(open) > 0 {
			view = open[len(open)-1]
		}
		return len(open) > 0
	})
	a.until(smallagent.StateAsking)
	if wrong, err := w.ann.Submit(w.ctx, view.ID, map[string]string{"reason": "not before \"noon\" & <never>"}); err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	a.closed(m.TS, "Denied, with a reason, by <@"+w.ann.ID+">")
	a.wantsDialogs("denied|hook|not before \"noon\" & <never>")
}

func TestNobodyElseDecidesAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	m := a.asks("deploy")
	for i, action := range []string{chat.ActionAllow, chat.ActionDeny, chat.ActionReason} {
		a.decides(w.bob, m.TS, action)
		w.until("the drop in the event log", func() bool {
			return len(slices.DeleteFunc(w.events.Events(), func(e sessions.Event) bool {
				return e.Name != threads.EventDropped || e.Fields["reason"] != "unauthorized-actor" || e.Fields["user"] != w.bob.ID
			})) == i+1
		})
	}
	w.change(func(p *plan) { p.Users = nil }) // it counts who is on the list now
	a.decides(w.ann, m.TS, chat.ActionAllow)
	w.dropped(m.TS, "unauthorized-actor")
	w.passed()
	a.until(smallagent.StateAsking)
	if len(a.dialogs()) > 0 || len(w.Ephemerals(w.bob.ID)) > 0 || len(w.Views(w.bob.ID)) > 0 {
		t.Errorf("somebody else decided, or was answered: %v %v", a.dialogs(), w.Ephemerals(w.bob.ID))
	}
	if m, _ := w.Message(a.ch, m.TS); labels(m.Blocks) != askLabels {
		t.Errorf("the question shows %q", m.Text)
	}
}

func TestAQuestionThatIsAnsweredInTheTerminalLosesItsButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	m := a.asks("deploy")
	a.keys("1")
	a.closed(m.TS, "Answered in the terminal")
	w.press(w.ann, a, m, chat.ActionDeny, buttonValue(m.Blocks))
	a.whispered("Already decided", "Answered in the terminal")
	w.press(w.ann, a, m, chat.ActionReason, buttonValue(m.Blocks))
	w.until("an answer in place of the form", func() bool { return len(w.Ephemerals(w.ann.ID)) == 2 })
	a.wantsDialogs("approved||")
	if n := len(a.eventsOf(threads.EventPermissionEnded)); n != 1 {
		t.Errorf("%d events say that it is over", n)
	}
}

// TestAHookThatIsLeftWaitingDoesNotKeepTheButtons has an agent that goes on with an answer of the terminal's and leaves its
// hook alone, as Claude Code does. Only the screen tells.
func TestAHookThatIsLeftWaitingDoesNotKeepTheButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper", "--leave-hook")
	read := func(what string) localslack.Message {
		began, m := time.Now(), a.asks(what)
		w.until("a person to have read it", func() bool { return time.Since(began) > time.Second })
		return m
	}
	m := read("deploy")
	a.keys("1")
	a.closed(m.TS, "Answered in the terminal")
	m = read("once more")
	a.keys("2")
	a.until(smallagent.StateReady)
	w.press(w.ann, a, m, chat.ActionAllow, buttonValue(m.Blocks)) // it comes while the buttons may still be there
	a.closed(m.TS, "Answered in the terminal")
	w.until("a true answer to the click", func() bool {
		all := w.Ephemerals(w.ann.ID)
		return len(all) > 0 && contains(all[len(all)-1].Text, "Answered in the terminal")
	})
	a.wantsDialogs("approved||", "denied||")
	if left, err := os.ReadDir(filepath.Join(w.plan.Root, "run", "ask")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheQuestionOfAKilledAgentLosesItsButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	m := a.asks("deploy")
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.closed(m.TS, "not asked any more")
	if left, err := os.ReadDir(filepath.Join(w.plan.Root, "run", "ask")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAQuestionOutlivesTheBot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	m := a.asks("deploy")
	w.back()
	if n := a.count("The agent asks"); n != 1 {
		t.Fatalf("it stands %d times in the thread", n)
	}
	a.decides(w.ann, m.TS, chat.ActionAllow)
	a.closed(m.TS, "Allowed by <@"+w.ann.ID+">")
	a.wantsDialogs("approved|hook|")
	second := a.asks("again")
	w.stop()
	a.keys("2")
	a.until(smallagent.StateReady)
	w.start()
	a.closed(second.TS, "Answered in the terminal")
}

func TestAQuestionThatWasAskedWhileTheBotWasDownIsPostedWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	w.stop()
	a.say("ask: answered meanwhile")
	a.until(smallagent.StateAsking)
	a.keys("1")
	a.until(smallagent.StateReady)
	a.say("ask: deploy")
	a.until(smallagent.StateAsking)
	w.start()
	m := a.asked("deploy")
	a.decides(w.ann, m.TS, chat.ActionAllow)
	a.wantsDialogs("approved||", "approved|hook|")
	if n := a.count("answered meanwhile"); n != 0 {
		t.Errorf("what was answered before is asked %d times", n)
	}
}

// say types a text into the session without Slack.
func (a *agent) say(text string) {
	a.w.t.Helper()
	if _, err := a.w.core.Submit(a.w.ctx, sessions.SubmitRequest{Ref: a.ref, Text: text}); err != nil {
		a.w.t.Fatal(err)
	}
}

func TestRepliesDuringAQuestionDecideNothingAndGoInInOrderAfterwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	m := a.asks("deploy")
	var all []string
	for _, text := range []string{"yes", "1", "y"} {
		all = append(all, a.reply(text))
	}
	a.receipt(all[0], held)
	a.answer("Held", "Decide it with the buttons above")
	a.until(smallagent.StateAsking)
	if len(a.dialogs()) > 0 {
		t.Fatalf("a reply decided: %v", a.dialogs())
	}
	a.decides(w.ann, m.TS, chat.ActionDeny)
	for _, ts := range all {
		a.receipt(ts, accepted)
	}
	a.wants("ask: deploy", "yes", "1", "y")
	a.wantsDialogs("denied|hook|The operator denied this.")
}

func TestAQuestionThatYesDoesNotAnswerHasNoButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	a.tells("choose: tabs or spaces?")
	m := a.answer("The agent asks: *AskUserQuestion*", "tabs or spaces?", "Answer it in the terminal")
	if got := labels(m.Blocks); got != "" {
		t.Errorf("it has the buttons %q", got)
	}
	ts := a.reply("tabs")
	a.receipt(ts, held)
	a.keys("2")
	a.closed(m.TS, "Answered in the terminal")
	a.receipt(ts, accepted)
}

// patient has an agent wait soon for long; not too soon: a hook under the race detector takes a second to end.
func patient(s *setup) {
	s.options = func(o *bot.Options) { o.RemindAfter, o.ScreenInterval = 3*time.Second, 50*time.Millisecond }
}

func TestAnAgentThatWaitsLongSaysSoOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, patient)
	a := w.agent("helper")
	m := a.asks("deploy")
	said := "<@" + w.ann.ID + "> The agent waits for an answer"
	a.answer(said, "See the question above")
	w.back()
	a.decides(w.ann, m.TS, chat.ActionAllow)
	a.closed(m.TS, "Allowed by")
	a.until(smallagent.StateReady)
	if n := a.count(said); n != 1 {
		t.Errorf("said %d times, also after a restart; %s", n, w.said())
	}
	a.asks("again")
	w.until("the next wait", func() bool { return a.count(said) == 2 })
}

func TestADialogThatNoHookTellsOfIsSeenOnTheScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, patient, func(s *setup) { s.plan = func(p *plan) { p.Deaf = true } })
	a := w.agent("helper")
	a.tells("ask: deploy the _thing_")
	said := "The agent seems to wait for an answer"
	m := a.answer("<@"+w.ann.ID+"> "+said, "Answer it in the terminal", "Allow deploy the _thing_?", "1. Yes")
	if labels(m.Blocks) != "" {
		t.Error("it has buttons")
	}
	ts := a.reply("hello?")
	a.receipt(ts, held)
	a.answer("Held", "Answer it in the terminal", "Allow deploy the _thing_?")
	w.back()
	a.keys("1")
	a.receipt(ts, accepted)
	if n := a.count(said); n != 1 {
		t.Errorf("said %d times, also after a restart", n)
	}
	a.tells("ask: again")
	w.until("the next wait", func() bool { return a.count(said) == 2 })
}

// buttonValue is what the buttons of a question hold.
func buttonValue(blocks json.RawMessage) string {
	var list []struct {
		Elements []struct{ Value string }
	}
	if json.Unmarshal(blocks, &list) != nil {
		return ""
	}
	for _, b := range list {
		for _, e := range b.Elements {
			if e.Value != "" {
				return e.Value
			}
		}
	}
	return ""
}

// press presses a button that is not there any more, as one does whose Slack has not heard of that yet.
func (w *world) press(who *localslack.Person, a *agent, m localslack.Message, action, value string) {
	w.t.Helper()
	payload := map[string]any{"type": "block_actions", "user": map[string]any{"id": who.ID, "team_id": who.TeamID},
		"channel": map[string]any{"id": a.ch}, "container": map[string]any{"type": "message", "message_ts": m.TS, "channel_id": a.ch, "thread_ts": a.root},
		"actions": []any{map[string]any{"type": "button", "action_id": action, "value": value}}}
	frame, err := json.Marshal(map[string]any{"type": "interactive", "envelope_id": "late-" + rand.Text(), "payload": payload})
	if err != nil || !w.InjectFrame(frame) {
		w.t.Fatal("the click cannot be sent", err)
	}
}

// TestNoValueOfTheEnvironmentIsInAQuestion has an agent that puts one into a command: it is neither posted nor stored with
// the thread.
func TestNoValueOfTheEnvironmentIsInAQuestion(t *testing.T) {
	t.Parallel()
	const value = "s3cret-value-of-the-environment"
	w := newWorld(t, func(s *setup) {
		s.options = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, value, "[TOKEN]") }
		}
	})
	a := w.agent("helper")
	a.say("ask: curl -H " + value)
	m := a.asked("curl -H [TOKEN]")
	stored, err := os.ReadFile(filepath.Join(w.plan.Root, "threads", a.id+".json"))
	if err != nil || strings.Contains(m.Text+string(m.Blocks)+string(stored), value) {
		t.Errorf("posted %q, stored %s, %v", m.Text, stored, err)
	}
	a.decides(w.ann, m.TS, chat.ActionDeny)
	a.closed(m.TS, "Denied by")
	if m, _ := w.Message(a.ch, m.TS); strings.Contains(m.Text+string(m.Blocks), value) {
		t.Errorf("the message shows %q", m.Text)
	}
}
