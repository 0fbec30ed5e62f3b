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

const permissionLabels = "Allow Deny Deny with a reason…"

// requestPermission has the agent ask for permission and waits for the question in the thread, with its buttons.
func (a *testSession) requestPermission(what string) localslack.Message {
	a.env.t.Helper()
	a.replyAccepted("ask: " + what)
	return a.waitPermissionRequest(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(what))
}

func (a *testSession) waitPermissionRequest(parts ...string) localslack.Message {
	a.env.t.Helper()
	var m localslack.Message
	a.env.waitUntil("the question in the thread", func() bool {
		m = a.waitBotMessage(append([]string{"The agent asks to use *Shell*"}, parts...)...)
		return buttonLabels(m.Blocks) == permissionLabels
	})
	return m
}

// waitDecided waits for the question to have lost its buttons and to say these.
func (a *testSession) waitDecided(ts string, parts ...string) {
	a.env.t.Helper()
	a.env.waitUntil("the question to be closed with "+strings.Join(parts, ", "), func() bool {
		m, _ := a.env.Message(a.ch, ts)
		return buttonLabels(m.Blocks) == "" && containsAll(m.Text, parts...)
	})
}

// pressDecision presses a button of a question.
func (a *testSession) pressDecision(who *localslack.Person, ts, action string) {
	a.env.t.Helper()
	if err := who.Click(a.env.ctx, a.ch, ts, action); err != nil {
		a.env.t.Fatal(err)
	}
}

// dialogResults is how the agent's dialogs ended.
func (a *testSession) dialogResults() []string {
	a.env.t.Helper()
	var all []string
	for _, e := range a.entries(smallagent.TypeDialog) {
		all = append(all, strings.Join([]string{e.Decision, e.How, e.Reason}, "|"))
	}
	return all
}

func (a *testSession) wantDialogResults(want ...string) {
	a.env.t.Helper()
	a.env.waitUntil(fmt.Sprintf("the dialogs to end as %q", want), func() bool { return len(a.dialogResults()) >= len(want) })
	if got := a.dialogResults(); !slices.Equal(got, want) {
		a.env.t.Errorf("the dialogs ended as %q; want %q", got, want)
	}
}

// eventsNamed are the events with that name of the session.
func (a *testSession) eventsNamed(name string) []sessions.Event {
	return slices.DeleteFunc(a.env.events.Events(), func(e sessions.Event) bool { return e.Name != name || e.ID != a.id })
}

func TestAPermissionRequestIsAllowedByAButton(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	m := a.requestPermission("deploy <!channel> & `more`")
	if strings.Contains(m.Text, "<!channel>") || !strings.Contains(m.Text, "deploy &lt;!channel&gt; &amp; `more`") || !strings.Contains(m.Text, w.botConfig.TmuxDir) {
		t.Errorf("it is asked as %q", m.Text)
	}
	a.waitState(smallagent.StateAsking) // the terminal can be used all the while
	a.pressDecision(w.ann, m.TS, chat.ActionAllow)
	a.waitDecided(m.TS, "The agent asks to use", "Allowed by <@"+w.ann.ID+">")
	a.waitEphemeral("Allowed by <@" + w.ann.ID + ">")
	a.wantDialogResults("approved|hook|")
	a.waitState(smallagent.StateReady)
	a.wantReceived("ask: deploy <!channel> & `more`") // and no key was pressed
	if asked, decided := a.eventsNamed(threads.EventPermissionRequested), a.eventsNamed(threads.EventPermissionDecided); len(asked) != 1 || len(decided) != 1 ||
		decided[0].Fields["user"] != w.ann.ID || decided[0].Fields["verdict"] != sessions.VerdictAllow || decided[0].Fields["ask"] != asked[0].Fields["ask"] {
		t.Errorf("events %+v, %+v", asked, decided)
	}
	for _, e := range w.events.Events() {
		if strings.Contains(fmt.Sprint(e.Fields), "deploy") {
			t.Errorf("the event log has what was asked: %+v", e)
		}
	}
	if left, err := os.ReadDir(filepath.Join(w.botConfig.Root, "run", "ask")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAPermissionRequestIsDeniedByAButtonOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	w.changeConfig(func(p *botConfig) { p.Users = append(p.Users, w.bob.ID) })
	m := a.requestPermission("deploy")
	a.pressDecision(w.ann, m.TS, chat.ActionDeny)
	a.waitDecided(m.TS, "Denied by <@"+w.ann.ID+">")
	a.wantDialogResults("denied|hook|The operator denied this.")
	value := buttonValue(m.Blocks)
	for _, who := range []*localslack.Person{w.ann, w.bob} {
		before := len(w.Ephemerals(who.ID))
		w.pressRemovedButton(who, a, m, chat.ActionAllow, value)
		w.waitUntil("the answer to a second click", func() bool {
			all := w.Ephemerals(who.ID)
			return len(all) > before && containsAll(all[len(all)-1].Text, "Already decided", "Denied by <@"+w.ann.ID+">")
		})
	}
	a.wantDialogResults("denied|hook|The operator denied this.")
	w.startAndConnect()
	before := len(w.Ephemerals(w.bob.ID))
	w.pressRemovedButton(w.bob, a, m, chat.ActionAllow, value)
	w.waitUntil("the answer after a restart", func() bool {
		all := w.Ephemerals(w.bob.ID)
		return len(all) > before && containsAll(all[len(all)-1].Text, "Already decided", "Denied by <@"+w.ann.ID+">")
	})
}

func TestAPermissionRequestIsDeniedWithAReason(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	m := a.requestPermission("deploy")
	a.pressDecision(w.ann, m.TS, chat.ActionReason)
	view := a.waitForm(w.ann)
	a.waitState(smallagent.StateAsking)
	if wrong, err := w.ann.Submit(w.ctx, view.ID, map[string]string{"reason": "not before \"noon\" & <never>"}); err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	a.waitDecided(m.TS, "Denied, with a reason, by <@"+w.ann.ID+">")
	a.wantDialogResults("denied|hook|not before \"noon\" & <never>")
}

// waitForm waits for the modal that opens for a member.
func (a *testSession) waitForm(who *localslack.Person) localslack.View {
	a.env.t.Helper()
	var view localslack.View
	a.env.waitUntil("the form", func() bool {
		open := a.env.Views(who.ID)
		if len(open) > 0 {
			view = open[len(open)-1]
		}
		return len(open) > 0
	})
	return view
}

func TestAQuestionIsAnsweredByAButtonOrInAForm(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("choose: Which <!here>? | *Red* | Blue, or so")
	m := a.waitBotMessage("The agent has a question", "Which &lt;!here&gt;?", "2. Blue, or so: the option Blue, or so")
	if got := buttonLabels(m.Blocks); got != "*Red* Blue, or so Other… Decline" {
		t.Errorf("it has the buttons %q", got)
	}
	a.waitState(smallagent.StateAsking)
	a.pressDecision(w.ann, m.TS, chat.ActionChoose+"2")
	a.waitDecided(m.TS, "Answered `Blue, or so` by <@"+w.ann.ID+">")
	a.wantDialogResults("chosen|hook|Blue, or so")
	w.pressRemovedButton(w.ann, a, m, chat.ActionChoose+"1", buttonValue(m.Blocks))
	a.waitEphemeral("Already decided", "Answered `Blue, or so`")

	a.replyAccepted("choose: And now? | A | B")
	m = a.waitBotMessage("The agent has a question", "And now?")
	a.pressDecision(w.ann, m.TS, chat.ActionAnswer)
	view := a.waitForm(w.ann)
	for _, values := range []map[string]string{{}, {"question0": "0", "words0": "both"}} {
		if wrong, err := w.ann.Submit(w.ctx, view.ID, values); err != nil || wrong["question0"] == "" {
			t.Errorf("%v is taken: %v, %v", values, wrong, err)
		}
	}
	if wrong, err := w.ann.Submit(w.ctx, view.ID, map[string]string{"words0": "neither, \"wait\" <a bit>"}); err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	a.waitDecided(m.TS, "Answered in their own words by <@"+w.ann.ID+">")
	a.wantDialogResults("chosen|hook|Blue, or so", `chosen|hook|neither, "wait" <a bit>`)

	a.replyAccepted("choose: The last one? | A | B")
	m = a.waitBotMessage("The agent has a question", "The last one?")
	a.pressDecision(w.bob, m.TS, chat.ActionChoose+"1") // he is not on the list
	a.pressDecision(w.ann, m.TS, chat.ActionDeny)
	a.waitDecided(m.TS, "Declined by <@"+w.ann.ID+">")
	a.waitState(smallagent.StateReady)
}

func TestAPlanIsApprovedOrSentBack(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	for _, c := range []struct {
		action, outcome, result string
	}{
		{chat.ActionAllow, "Plan approved by <@" + w.ann.ID + ">", "approved|hook|default"},
		{chat.ActionApproveEdits, "Plan approved, with edits accepted unasked, by <@" + w.ann.ID + ">", "approved|hook|acceptEdits"},
		{chat.ActionReason, "Plan sent back, with a reason, by <@" + w.ann.ID + ">", "denied|hook|think again"},
	} {
		before := a.dialogResults()
		a.replyAccepted("plan: # For " + c.action + "\n1. *Do* it <!here>")
		m := a.waitBotMessage("The agent has a plan", "# For "+c.action, "1. *Do* it &lt;!here&gt;")
		if got := buttonLabels(m.Blocks); got != "Approve Approve, accept edits Keep planning…" {
			t.Errorf("it has the buttons %q", got)
		}
		a.pressDecision(w.ann, m.TS, c.action)
		if c.action == chat.ActionReason {
			if wrong, err := w.ann.Submit(w.ctx, a.waitForm(w.ann).ID, map[string]string{"reason": "think again"}); err != nil || len(wrong) > 0 {
				t.Fatal(wrong, err)
			}
		}
		a.waitDecided(m.TS, c.outcome)
		a.wantDialogResults(append(before, c.result)...)
		a.waitState(smallagent.StateReady)
	}
}

func TestNobodyElseDecidesAPermissionRequest(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	m := a.requestPermission("deploy")
	for i, action := range []string{chat.ActionAllow, chat.ActionDeny, chat.ActionReason} {
		a.pressDecision(w.bob, m.TS, action)
		w.waitUntil("the drop in the event log", func() bool {
			return len(slices.DeleteFunc(w.events.Events(), func(e sessions.Event) bool {
				return e.Name != threads.EventDropped || e.Fields["reason"] != "unauthorized-actor" || e.Fields["user"] != w.bob.ID
			})) == i+1
		})
	}
	w.changeConfig(func(p *botConfig) { p.Users = nil }) // it counts who is on the list now
	a.pressDecision(w.ann, m.TS, chat.ActionAllow)
	w.waitDropped(m.TS, "unauthorized-actor")
	w.waitProcessed()
	a.waitState(smallagent.StateAsking)
	if len(a.dialogResults()) > 0 || len(w.Ephemerals(w.bob.ID)) > 0 || len(w.Views(w.bob.ID)) > 0 {
		t.Errorf("somebody else decided, or was answered: %v %v", a.dialogResults(), w.Ephemerals(w.bob.ID))
	}
	if m, _ := w.Message(a.ch, m.TS); buttonLabels(m.Blocks) != permissionLabels {
		t.Errorf("the question shows %q", m.Text)
	}
}

func TestAPermissionRequestAnsweredInTheTerminalLosesItsButtons(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	m := a.requestPermission("deploy")
	a.sendKeys("1")
	a.waitDecided(m.TS, "Answered in the terminal")
	w.pressRemovedButton(w.ann, a, m, chat.ActionDeny, buttonValue(m.Blocks))
	a.waitEphemeral("Already decided", "Answered in the terminal")
	w.pressRemovedButton(w.ann, a, m, chat.ActionReason, buttonValue(m.Blocks))
	w.waitUntil("an answer in place of the form", func() bool { return len(w.Ephemerals(w.ann.ID)) == 2 })
	a.wantDialogResults("approved||")
	if n := len(a.eventsNamed(threads.EventPermissionEnded)); n != 1 {
		t.Errorf("%d events say that it is over", n)
	}
}

// TestAHookThatIsLeftWaitingDoesNotKeepTheButtons has an agent that goes on with an answer of the terminal's and leaves its
// hook alone, as Claude Code does. Only the screen tells.
func TestAHookThatIsLeftWaitingDoesNotKeepTheButtons(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper", "--leave-hook")
	read := func(what string) localslack.Message {
		began, m := time.Now(), a.requestPermission(what)
		w.waitUntil("a person to have read it", func() bool { return time.Since(began) > time.Second })
		return m
	}
	m := read("deploy")
	a.sendKeys("1")
	a.waitDecided(m.TS, "Answered in the terminal")
	m = read("once more")
	a.sendKeys("2")
	a.waitState(smallagent.StateReady)
	w.pressRemovedButton(w.ann, a, m, chat.ActionAllow, buttonValue(m.Blocks)) // it comes while the buttons may still be there
	a.waitDecided(m.TS, "Answered in the terminal")
	w.waitUntil("a true answer to the click", func() bool {
		all := w.Ephemerals(w.ann.ID)
		return len(all) > 0 && containsAll(all[len(all)-1].Text, "Answered in the terminal")
	})
	a.wantDialogResults("approved||", "denied||")
	if left, err := os.ReadDir(filepath.Join(w.botConfig.Root, "run", "ask")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestThePermissionRequestOfAKilledAgentLosesItsButtons(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	m := a.requestPermission("deploy")
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.waitDecided(m.TS, "not asked any more")
	if left, err := os.ReadDir(filepath.Join(w.botConfig.Root, "run", "ask")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAPermissionRequestSurvivesARestartOfTheBot(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	m := a.requestPermission("deploy")
	w.startAndConnect()
	if n := a.countBotMessages("The agent asks"); n != 1 {
		t.Fatalf("it stands %d times in the thread", n)
	}
	a.pressDecision(w.ann, m.TS, chat.ActionAllow)
	a.waitDecided(m.TS, "Allowed by <@"+w.ann.ID+">")
	a.wantDialogResults("approved|hook|")
	second := a.requestPermission("again")
	w.stopBot()
	a.sendKeys("2")
	a.waitState(smallagent.StateReady)
	w.startBot()
	a.waitDecided(second.TS, "Answered in the terminal")
}

func TestAPermissionRequestMadeWhileTheBotWasDownIsPostedLater(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	w.stopBot()
	a.submitDirectly("ask: answered meanwhile")
	a.waitState(smallagent.StateAsking)
	a.sendKeys("1")
	a.waitState(smallagent.StateReady)
	a.submitDirectly("ask: deploy")
	a.waitState(smallagent.StateAsking)
	w.startAndConnect()
	m := a.waitPermissionRequest("deploy")
	a.pressDecision(w.ann, m.TS, chat.ActionAllow)
	a.wantDialogResults("approved||", "approved|hook|")
	if n := a.countBotMessages("answered meanwhile"); n != 0 {
		t.Errorf("what was answered before is asked %d times", n)
	}
}

// submitDirectly types a text into the session without Slack.
func (a *testSession) submitDirectly(text string) {
	a.env.t.Helper()
	if _, err := a.env.core.Submit(a.env.ctx, sessions.SubmitRequest{Ref: a.ref, Text: text}); err != nil {
		a.env.t.Fatal(err)
	}
}

func TestRepliesDuringAPermissionRequestDecideNothingAndAreTypedInOrderAfterwards(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	m := a.requestPermission("deploy")
	var all []string
	for _, text := range []string{"yes", "1", "y"} {
		all = append(all, a.reply(text))
	}
	a.waitReceipt(all[0], receiptHeld)
	a.waitBotMessage("Held", "Decide it with the buttons above")
	a.waitState(smallagent.StateAsking)
	if len(a.dialogResults()) > 0 {
		t.Fatalf("a reply decided: %v", a.dialogResults())
	}
	a.pressDecision(w.ann, m.TS, chat.ActionDeny)
	for _, ts := range all {
		a.waitReceipt(ts, receiptAccepted)
	}
	a.wantReceived("ask: deploy", "yes", "1", "y")
	a.wantDialogResults("denied|hook|The operator denied this.")
}

func TestAPermissionRequestThatYesDoesNotAnswerHasNoButtons(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("choose: tabs or spaces?")
	m := a.waitBotMessage("The agent asks: *AskUserQuestion*", "tabs or spaces?", "Answer it in the terminal")
	if got := buttonLabels(m.Blocks); got != "" {
		t.Errorf("it has the buttons %q", got)
	}
	ts := a.reply("tabs")
	a.waitReceipt(ts, receiptHeld)
	a.sendKeys("2")
	a.waitDecided(m.TS, "Answered in the terminal")
	a.waitReceipt(ts, receiptAccepted)
}

// withFastReminders has an agent wait soon for long; not too soon: a hook under the race detector takes a second to end.
func withFastReminders(s *envOptions) {
	s.botOptions = func(o *bot.Options) { o.RemindAfter, o.ScreenInterval = 3*time.Second, 50*time.Millisecond }
}

func TestAnAgentThatWaitsLongSaysSoOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFastReminders)
	a := w.startSession("helper")
	m := a.requestPermission("deploy")
	said := "<@" + w.ann.ID + "> The agent waits for an answer"
	a.waitBotMessage(said, "See the question above")
	w.startAndConnect()
	a.pressDecision(w.ann, m.TS, chat.ActionAllow)
	a.waitDecided(m.TS, "Allowed by")
	a.waitState(smallagent.StateReady)
	if n := a.countBotMessages(said); n != 1 {
		t.Errorf("said %d times, also after a restart; %s", n, w.channelText())
	}
	a.requestPermission("again")
	w.waitUntil("the next wait", func() bool { return a.countBotMessages(said) == 2 })
}

func TestADialogWithoutAHookIsFoundOnTheScreen(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withFastReminders, func(s *envOptions) { s.config = func(p *botConfig) { p.Deaf = true } })
	a := w.startSession("helper")
	a.replyAccepted("ask: deploy the _thing_")
	said := "The agent seems to wait for an answer"
	m := a.waitBotMessage("<@"+w.ann.ID+"> "+said, "Answer it in the terminal", "Allow deploy the _thing_?", "1. Yes")
	if buttonLabels(m.Blocks) != "" {
		t.Error("it has buttons")
	}
	ts := a.reply("hello?")
	a.waitReceipt(ts, receiptHeld)
	a.waitBotMessage("Held", "Answer it in the terminal", "Allow deploy the _thing_?")
	w.startAndConnect()
	a.sendKeys("1")
	a.waitReceipt(ts, receiptAccepted)
	if n := a.countBotMessages(said); n != 1 {
		t.Errorf("said %d times, also after a restart", n)
	}
	a.replyAccepted("ask: again")
	w.waitUntil("the next wait", func() bool { return a.countBotMessages(said) == 2 })
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

// pressRemovedButton presses a button that is not there any more, as one does whose Slack has not heard of that yet.
func (w *env) pressRemovedButton(who *localslack.Person, a *testSession, m localslack.Message, action, value string) {
	w.t.Helper()
	payload := map[string]any{"type": "block_actions", "user": map[string]any{"id": who.ID, "team_id": who.TeamID},
		"channel": map[string]any{"id": a.ch}, "container": map[string]any{"type": "message", "message_ts": m.TS, "channel_id": a.ch, "thread_ts": a.root},
		"actions": []any{map[string]any{"type": "button", "action_id": action, "value": value}}}
	frame, err := json.Marshal(map[string]any{"type": "interactive", "envelope_id": "late-" + rand.Text(), "payload": payload})
	if err != nil || !w.InjectFrame(frame) {
		w.t.Fatal("the click cannot be sent", err)
	}
}

// TestNoValueOfTheEnvironmentIsInAPermissionRequest has an agent that puts one into a command: it is neither posted nor stored with
// the thread.
func TestNoValueOfTheEnvironmentIsInAPermissionRequest(t *testing.T) {
	t.Parallel()
	const value = "s3cret-value-of-the-environment"
	w := newEnv(t, func(s *envOptions) {
		s.botOptions = func(o *bot.Options) {
			o.Scrub = func(text string) string { return strings.ReplaceAll(text, value, "[TOKEN]") }
		}
	})
	a := w.startSession("helper")
	a.submitDirectly("ask: curl -H " + value)
	m := a.waitPermissionRequest("curl -H [TOKEN]")
	stored, err := os.ReadFile(filepath.Join(w.botConfig.Root, "threads", a.id+".json"))
	if err != nil || strings.Contains(m.Text+string(m.Blocks)+string(stored), value) {
		t.Errorf("posted %q, stored %s, %v", m.Text, stored, err)
	}
	a.pressDecision(w.ann, m.TS, chat.ActionDeny)
	a.waitDecided(m.TS, "Denied by")
	if m, _ := w.Message(a.ch, m.TS); strings.Contains(m.Text+string(m.Blocks), value) {
		t.Errorf("the message shows %q", m.Text)
	}
}
