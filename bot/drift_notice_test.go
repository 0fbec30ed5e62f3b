package bot_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// writeEnvFile writes the env file and has the bot told, as its watcher does.
func (w *env) writeEnvFile(lines ...string) {
	w.t.Helper()
	path := filepath.Join(w.botConfig.TmuxDir, "env")
	if err := os.WriteFile(path+"~", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		w.t.Fatal(err)
	}
	w.reconcileNow()
}

// driftMessages are the bot's messages on a changed env file.
func (w *env) driftMessages() []localslack.Message {
	var all []localslack.Message
	for _, m := range w.Messages(w.ch) {
		if m.User == w.BotUserID() && m.ThreadTS == "" && m.Subtype == "" && isForChannel(m.Text) && !strings.HasPrefix(m.Text, "Connected for ") {
			all = append(all, m)
		}
	}
	return all
}

// waitDriftMessage waits for the nth such message to have all of the parts.
func (w *env) waitDriftMessage(n int, parts ...string) localslack.Message {
	w.t.Helper()
	var m localslack.Message
	w.waitUntil(fmt.Sprintf("message %d on the env file with %q", n, parts), func() bool {
		if all := w.driftMessages(); len(all) >= n {
			m = all[n-1]
		}
		return containsAll(m.Text, parts...)
	})
	return m
}

// wantDriftMessages fails unless there are n such messages.
func (w *env) wantDriftMessages(n int) {
	w.t.Helper()
	if all := w.driftMessages(); len(all) != n {
		w.t.Errorf("%d messages on the env file, want %d: %s", len(all), n, w.channelText())
	}
}

// ephemeralTexts are what Ann was told alone.
func (w *env) ephemeralTexts() (texts []string) {
	for _, e := range w.Ephemerals(w.ann.ID) {
		texts = append(texts, e.Text)
	}
	return texts
}

func (w *env) waitEphemeralText(part string) {
	w.t.Helper()
	w.waitUntil("a whisper with "+part, func() bool { return strings.Contains(strings.Join(w.ephemeralTexts(), "\n"), part) })
}

func (w *env) pressRestartAll(m localslack.Message, by *localslack.Person) {
	w.t.Helper()
	if err := by.ClickStale(w.ctx, w.ch, m, render.ActionRestartAll); err != nil {
		w.t.Fatal(err)
	}
}

// startedWith is what the session's agent was started with.
func (a *testSession) startedWith(name string) string {
	a.env.t.Helper()
	values, ok := envstate.ProcessEnviron(a.env.ctx, a.pane().PID)
	if !ok {
		a.env.t.Fatal("the agent's environment cannot be read")
	}
	return values[name]
}

const staleText = "sessions 2 of 3 running with a stale environment — `the-loop sessions restart --all`\n" +
	"• *one*: `GONE`, `TOKEN`\n• *two*: `GONE`, `TOKEN`\n" +
	"These are names of variables that the sessions do not hold as the env file declares them. The button restarts these sessions in their terminals; their conversations go on."

// R3.2: one message when the env file changed, edited as sessions are restarted, with a button for who is let in.
func TestR3_2_OneMessageNamesStaleSessionsAndItsButtonRestartsThem(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	w.writeEnvFile("TOKEN=old", "GONE=x")
	one, two := w.startSession("one"), w.startSession("two")
	w.writeEnvFile("TOKEN=new")
	three := w.startSession("three")
	before := map[*testSession]sessions.Pane{one: one.pane(), two: two.pane(), three: three.pane()}
	m := w.waitDriftMessage(1, "2 of 3")
	if m.Text != staleText || buttonLabels(m.Blocks) != "Restart all" {
		t.Errorf("the channel is told %q with %q", m.Text, buttonLabels(m.Blocks))
	}
	w.pressRestartAll(m, w.bob)
	w.waitProcessed()
	if one.pane() != before[one] {
		t.Error("somebody who is not on the list restarted a session")
	}
	w.pressRestartAll(m, w.ann)
	w.waitDriftMessage(1, ":white_check_mark: No session runs on a stale environment any more (3 running).",
		"*one* was restarted and holds what the env file declares", "*two* was restarted and holds what the env file declares")
	if last := w.driftMessages()[0]; buttonLabels(last.Blocks) != "" || strings.Contains(last.Text, "three") {
		t.Errorf("%q with %q", last.Text, buttonLabels(last.Blocks))
	}
	for _, a := range []*testSession{one, two, three} {
		now := a.pane()
		if now.ID != before[a].ID || (now.PID != before[a].PID) != (a != three) || a.startedWith("TOKEN") != "new" || a.startedWith("GONE") != "" {
			t.Errorf("%s: %+v, was %+v", a.ref, now, before[a])
		}
		a.waitState("ready")
		a.replyAccepted("hello " + string(a.ref))
	}
	w.pressRestartAll(m, w.ann) // the button of an old message, as a client may still show it
	w.waitEphemeralText("No session runs on a stale environment any more, so none was restarted.")
	w.wantDriftMessages(1)

	w.writeEnvFile("TOKEN=newer") // another change is told anew
	w.waitDriftMessage(2, "sessions 3 of 3 running with a stale environment")
	w.writeEnvFile("TOKEN=newest")
	w.waitDriftMessage(3, "sessions 3 of 3 running with a stale environment")
	w.waitDriftMessage(2, "The env file has changed again since this was said.")
	w.wantDriftMessages(3)
}

// The status line in Slack, to the letter: in the status that the channel is told, and in a thread.
func TestR3_2_StatusHasTheLineOnlyWhileSessionsAreStale(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	l.writeEnvFile("TOKEN=old")
	a := l.createSession("one")
	if told := l.statusAnswer(); strings.Contains(told, "stale") {
		t.Errorf("%q", told)
	}
	l.writeEnvFile("TOKEN=new")
	const line = "\nsessions 1 of 1 running with a stale environment — `the-loop sessions restart --all`"
	if told := l.statusAnswer(); !strings.HasPrefix(told, "Connected for ") || !strings.HasSuffix(told, line) {
		t.Errorf("%q", told)
	}
	a.reply("@the-loop status")
	got := a.waitBotMessage("*one*", "stale")
	if !strings.HasSuffix(got.Text, "\nIt does not hold as the env file declares them: `TOKEN`"+line) {
		t.Errorf("%q", got.Text)
	}
}

func TestR2_TheSlashCommandAndTheMentionRestartEverySession(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	l.writeEnvFile("TOKEN=old")
	one, two := l.createSession("one"), l.createSession("two")
	l.wantSlashAnswer("stop two", "stopped")
	l.writeEnvFile("TOKEN=new")
	pane := one.pane()
	l.wantSlashAnswer("restart --all --dry-run", ":white_circle: *one* would be restarted: `TOKEN`", ":white_circle: *two* skipped · it is not running")
	l.wantSlashAnswer("restart --dry-run one", "--dry-run goes with --all")
	l.wantSlashAnswer("restart --all one", "either a name or --all")
	if one.pane() != pane {
		t.Error("a dry run restarted a session")
	}
	l.wantSlashAnswer("restart —all", ":large_green_circle: *one* was restarted and holds what the env file declares", ":white_circle: *two* skipped · it is not running")
	if now := one.pane(); now.ID != pane.ID || now.PID == pane.PID || one.startedWith("TOKEN") != "new" {
		t.Errorf("%+v, was %+v", now, pane)
	}
	l.writeEnvFile("TOKEN=newer")
	pane = one.pane()
	l.wantSlashAnswer("restart one", "*one* running", "resumed")
	if now := one.pane(); now.ID != pane.ID || now.PID == pane.PID || one.startedWith("TOKEN") != "newer" {
		t.Errorf("%+v, was %+v", now, pane)
	}
	one.waitState("ready")
	one.reply("@the-loop restart --all --dry-run")
	one.waitBotMessage("*one* would be restarted")
	one.reply("@the-loop restart --all")
	one.waitBotMessage("*one* was restarted and holds what the env file declares")
	one.waitState("ready")
	one.replyAccepted("hello")
	if err := os.Remove(filepath.Join(l.botConfig.TmuxDir, "env")); err != nil {
		t.Fatal(err)
	}
	l.wantSlashAnswer("restart --all", "env.file is not set")
	_ = two
}

// A bot that comes back knows its message: the button works, and the same change is not told again.
func TestTheDriftNoticeSurvivesARestartOfTheBot(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	w.writeEnvFile("TOKEN=old")
	one := w.startSession("one")
	w.writeEnvFile("TOKEN=new")
	m := w.waitDriftMessage(1, "1 of 1")
	w.startAndConnect()
	w.reconcileNow()
	two := w.startSession("two") // something else happens, and is looked at
	w.waitDriftMessage(1, "1 of 2")
	w.pressRestartAll(m, w.ann)
	w.waitDriftMessage(1, "any more (2 running)")
	if one.startedWith("TOKEN") != "new" || two.startedWith("TOKEN") != "new" {
		t.Error("a session was not restarted")
	}
	w.wantDriftMessages(1)
}

// A message that may have been posted is looked for, and not posted twice.
func TestTheDriftNoticeIsNotPostedTwiceAfterALostResponse(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	w.writeEnvFile("TOKEN=old")
	w.startSession("one")
	w.Faults().InjectAPI("chat.postMessage", 1, localslack.CutAfter())
	w.writeEnvFile("TOKEN=new")
	w.waitDriftMessage(1, "1 of 1")
	w.startAndConnect()
	w.writeEnvFile("TOKEN=old") // it edits the very message
	w.waitDriftMessage(1, "any more (1 running)")
	w.wantDriftMessages(1)
}

func TestADeletedDriftNoticeIsNotPostedAgainForTheSameChange(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	w.writeEnvFile("TOKEN=old")
	one := w.startSession("one")
	w.writeEnvFile("TOKEN=new")
	m := w.waitDriftMessage(1, "1 of 1")
	if err := w.DeleteMessage(w.ch, m.TS); err != nil {
		t.Fatal(err)
	}
	w.startSession("two")
	if _, err := w.core.RollingRestart(w.ctx, sessions.RollingRestartRequest{All: true}); err != nil {
		t.Fatal(err)
	}
	w.waitUntil("the message to be forgotten", func() bool { return w.driftState()["message"] == nil })
	w.wantDriftMessages(0)
	_ = one
}

func (w *env) driftState() map[string]any {
	w.t.Helper()
	var s map[string]any
	data, err := os.ReadFile(filepath.Join(w.botConfig.Root, "rotation.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// What the command line restarts is shown too, and a channel that others can read is told nothing.
func TestTheDriftNoticeShowsWhatOthersRestart(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	w.writeEnvFile("TOKEN=old")
	w.startSession("one")
	w.startSession("two")
	w.writeEnvFile("TOKEN=new")
	w.waitDriftMessage(1, "2 of 2")
	for i, want := range []string{"1 of 2", "any more (2 running)"} {
		refs := []sessions.Ref{sessions.StandingRef([]string{"one", "two"}[i])}
		if out, err := w.core.RollingRestart(w.ctx, sessions.RollingRestartRequest{Refs: refs}); err != nil || out.Rows[0].Outcome != sessions.OutcomeVerified {
			t.Fatalf("%+v, %v", out, err)
		}
		w.reconcileNow()
		w.waitDriftMessage(1, want)
	}
	w.wantDriftMessages(1)
}

// One restart runs at a time, whoever asks for it, and a second one is told so.
func TestASecondClickIsAnsweredThatARestartIsUnderWay(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits, func(s *envOptions) { s.config = func(p *botConfig) { p.Probe = 3 * time.Second } })
	w.writeEnvFile("TOKEN=old")
	one := w.startSession("one")
	w.writeEnvFile("TOKEN=new")
	m := w.waitDriftMessage(1, "1 of 1")
	pane := one.pane()
	w.pressRestartAll(m, w.ann)
	w.waitDriftMessage(1, "<@"+w.ann.ID+"> has the stale ones restarted: 0 of 1 done.")
	w.pressRestartAll(m, w.ann)
	w.waitEphemeralText("The sessions are already being restarted, as <@" + w.ann.ID + "> asked.")
	w.waitDriftMessage(1, "any more (1 running)")
	restarts := 0
	for _, e := range w.events.Events() {
		if e.Name == sessions.EventRestarted {
			restarts++
		}
	}
	if now := one.pane(); restarts != 1 || now.ID != pane.ID {
		t.Errorf("restarted %d times, pane %+v was %+v", restarts, now, pane)
	}
}

// Killed at any moment of a restart, the next bot finishes it in the same conversations, and tells of it in the same message.
func TestAnInterruptedRollingRestartIsFinishedByTheNextBot(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a bot in a process of its own is killed several times")
	}
	w := newEnv(t, withoutRateLimits, withoutBot, func(s *envOptions) {
		s.patience = 3 * time.Minute
		s.config = func(p *botConfig) { p.Probe = 300 * time.Millisecond }
	})
	w.writeEnvFile("TOKEN=v0")
	c := w.startBotProcess()
	one, two := w.startSession("one"), w.startSession("two")
	panes := map[*testSession]string{one: one.pane().ID, two: two.pane().ID}
	for i := 1; i <= 4; i++ {
		token := fmt.Sprint("v", i)
		w.writeEnvFile("TOKEN=" + token)
		m := w.waitDriftMessage(i, "2 of 2")
		w.pressRestartAll(m, w.ann)
		w.waitUntil("the click to be heard", func() bool { s := w.driftState(); return s["run"] != nil || s["last"] != nil })
		w.sleepRandom(400 * time.Millisecond)
		c.kill()
		c = w.startBotProcess()
		w.waitDriftMessage(i, "any more (2 running)")
		for a, pane := range panes {
			if now := a.pane(); now.ID != pane || now.Dead || a.startedWith("TOKEN") != token {
				t.Fatalf("%s: %+v in %s with %s", a.ref, now, pane, a.startedWith("TOKEN"))
			}
			a.waitState("ready")
		}
	}
	one.replyAccepted("still there?")
	one.wantReceived("still there?")
	w.wantDriftMessages(4)
}

// No value of the env file is in anything that Slack is told or that is written down.
func TestR_NoValueIsPostedOrStored(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	old, fresh := "canary-OLD-7f3a91", "canary-NEW-b52c08"
	w.writeEnvFile("TOKEN=" + old)
	one := w.startSession("one")
	w.writeEnvFile("TOKEN="+fresh, fresh+" is no assignment")
	m := w.waitDriftMessage(1, "1 of 1")
	w.pressRestartAll(m, w.ann)
	w.waitDriftMessage(1, "any more (1 running)")
	for _, text := range []string{"@the-loop status", "@the-loop restart --all --dry-run", "@the-loop restart --all", "@the-loop restart"} {
		answers := len(one.botMessages())
		one.reply(text)
		w.waitUntil("an answer to "+text, func() bool { return len(one.botMessages()) > answers })
	}
	if one.startedWith("TOKEN") != fresh {
		t.Fatal("the agent does not hold the value that is looked for")
	}
	everything := map[string]string{"the bot's log": w.logs.String(), "the events": w.eventLines(), "the channel": w.channelText(), "the whispers": strings.Join(w.ephemeralTexts(), "\n")}
	for i, r := range w.Requests() {
		everything[fmt.Sprint("request ", i)] = fmt.Sprintf("%+v", r)
	}
	err := filepath.WalkDir(w.botConfig.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		everything[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sums := []string{envstate.Fingerprint(old), envstate.Fingerprint(fresh)}
	for where, text := range everything {
		for _, bad := range append(sums, old, fresh) {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %s", where, bad)
			}
		}
	}
}

// What the sessions are called is nobody else's business: a channel that another organisation can read is told nothing.
func TestASharedChannelGetsNoDriftNotice(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	l.writeEnvFile("TOKEN=old")
	l.createSession("one")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	l.writeEnvFile("TOKEN=new")
	l.waitUntil("the refusal", func() bool { return strings.Contains(l.logs.String(), "is shared with another organisation") })
	l.wantSlashAnswer("status", "sessions 1 of 1 running with a stale environment") // for who asked
	l.wantDriftMessages(0)
}
