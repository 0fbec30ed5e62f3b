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
	"the-loop/sessions/core"
	"the-loop/sessions/envstate"
)

// env writes the env file and has the bot told, as its watcher does.
func (w *world) env(lines ...string) {
	w.t.Helper()
	path := filepath.Join(w.plan.TmuxDir, "env")
	if err := os.WriteFile(path+"~", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		w.t.Fatal(err)
	}
	w.reconcile()
}

// rotations are the bot's messages on a changed env file.
func (w *world) rotations() []localslack.Message {
	var all []localslack.Message
	for _, m := range w.Messages(w.ch) {
		if m.User == w.BotUserID() && m.ThreadTS == "" && m.Subtype == "" && forAll(m.Text) && !strings.HasPrefix(m.Text, "Connected for ") {
			all = append(all, m)
		}
	}
	return all
}

// rotation waits for the nth such message to have all of the parts.
func (w *world) rotation(n int, parts ...string) localslack.Message {
	w.t.Helper()
	var m localslack.Message
	w.until(fmt.Sprintf("message %d on the env file with %q", n, parts), func() bool {
		if all := w.rotations(); len(all) >= n {
			m = all[n-1]
		}
		return contains(m.Text, parts...)
	})
	return m
}

// wantsRotations fails unless there are n such messages.
func (w *world) wantsRotations(n int) {
	w.t.Helper()
	if all := w.rotations(); len(all) != n {
		w.t.Errorf("%d messages on the env file, want %d: %s", len(all), n, w.said())
	}
}

// whispers are what Ann was told alone.
func (w *world) whispers() (texts []string) {
	for _, e := range w.Ephemerals(w.ann.ID) {
		texts = append(texts, e.Text)
	}
	return texts
}

func (w *world) whispered(part string) {
	w.t.Helper()
	w.until("a whisper with "+part, func() bool { return strings.Contains(strings.Join(w.whispers(), "\n"), part) })
}

func (w *world) click(m localslack.Message, by *localslack.Person) {
	w.t.Helper()
	if err := by.ClickStale(w.ctx, w.ch, m, render.ActionRoll); err != nil {
		w.t.Fatal(err)
	}
}

// held is what the session's agent was started with.
func (a *agent) held(name string) string {
	a.w.t.Helper()
	values, ok := envstate.ProcessEnviron(a.w.ctx, a.pane().PID)
	if !ok {
		a.w.t.Fatal("the agent's environment cannot be read")
	}
	return values[name]
}

const staleText = "sessions 2 of 3 running with a stale environment — `the-loop sessions restart --all`\n" +
	"• *one*: `GONE`, `TOKEN`\n• *two*: `GONE`, `TOKEN`\n" +
	"These are names of variables that the sessions do not hold as the env file declares them. The button restarts these sessions in their terminals; their conversations go on."

// R3.2: one message when the env file changed, edited as sessions are restarted, with a button for who is let in.
func TestR3_2_TheChannelIsToldOnceOfStaleSessionsAndAButtonRestartsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	w.env("TOKEN=old", "GONE=x")
	one, two := w.agent("one"), w.agent("two")
	w.env("TOKEN=new")
	three := w.agent("three")
	before := map[*agent]sessions.Pane{one: one.pane(), two: two.pane(), three: three.pane()}
	m := w.rotation(1, "2 of 3")
	if m.Text != staleText || labels(m.Blocks) != "Restart all" {
		t.Errorf("the channel is told %q with %q", m.Text, labels(m.Blocks))
	}
	w.click(m, w.bob)
	w.passed()
	if one.pane() != before[one] {
		t.Error("somebody who is not on the list restarted a session")
	}
	w.click(m, w.ann)
	w.rotation(1, ":white_check_mark: No session runs on a stale environment any more (3 running).",
		"*one* was restarted and holds what the env file declares", "*two* was restarted and holds what the env file declares")
	if last := w.rotations()[0]; labels(last.Blocks) != "" || strings.Contains(last.Text, "three") {
		t.Errorf("%q with %q", last.Text, labels(last.Blocks))
	}
	for _, a := range []*agent{one, two, three} {
		now := a.pane()
		if now.ID != before[a].ID || (now.PID != before[a].PID) != (a != three) || a.held("TOKEN") != "new" || a.held("GONE") != "" {
			t.Errorf("%s: %+v, was %+v", a.ref, now, before[a])
		}
		a.until("ready")
		a.tells("hello " + string(a.ref))
	}
	w.click(m, w.ann) // the button of an old message, as a client may still show it
	w.whispered("No session runs on a stale environment any more, so none was restarted.")
	w.wantsRotations(1)

	w.env("TOKEN=newer") // another change is told anew
	w.rotation(2, "sessions 3 of 3 running with a stale environment")
	w.env("TOKEN=newest")
	w.rotation(3, "sessions 3 of 3 running with a stale environment")
	w.rotation(2, "The env file has changed again since this was said.")
	w.wantsRotations(3)
}

// The status line in Slack, to the letter: in the status that the channel is told, and in a thread.
func TestR3_2_StatusHasTheLineOnlyWhileSessionsAreStale(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.env("TOKEN=old")
	a := l.make("one")
	if told := l.status(); strings.Contains(told, "stale") {
		t.Errorf("%q", told)
	}
	l.env("TOKEN=new")
	const line = "\nsessions 1 of 1 running with a stale environment — `the-loop sessions restart --all`"
	if told := l.status(); !strings.HasPrefix(told, "Connected for ") || !strings.HasSuffix(told, line) {
		t.Errorf("%q", told)
	}
	a.reply("@the-loop status")
	got := a.answer("*one*", "stale")
	if !strings.HasSuffix(got.Text, "\nIt does not hold as the env file declares them: `TOKEN`"+line) {
		t.Errorf("%q", got.Text)
	}
}

func TestR2_TheSlashCommandAndTheMentionRestartEverySession(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.env("TOKEN=old")
	one, two := l.make("one"), l.make("two")
	l.says("stop two", "stopped")
	l.env("TOKEN=new")
	pane := one.pane()
	l.says("restart --all --dry-run", ":white_circle: *one* would be restarted: `TOKEN`", ":white_circle: *two* skipped · it is not running")
	l.says("restart --dry-run one", "--dry-run goes with --all")
	l.says("restart --all one", "either a name or --all")
	if one.pane() != pane {
		t.Error("a dry run restarted a session")
	}
	l.says("restart —all", ":large_green_circle: *one* was restarted and holds what the env file declares", ":white_circle: *two* skipped · it is not running")
	if now := one.pane(); now.ID != pane.ID || now.PID == pane.PID || one.held("TOKEN") != "new" {
		t.Errorf("%+v, was %+v", now, pane)
	}
	l.env("TOKEN=newer")
	pane = one.pane()
	l.says("restart one", "*one* running", "resumed")
	if now := one.pane(); now.ID != pane.ID || now.PID == pane.PID || one.held("TOKEN") != "newer" {
		t.Errorf("%+v, was %+v", now, pane)
	}
	one.until("ready")
	one.reply("@the-loop restart --all --dry-run")
	one.answer("*one* would be restarted")
	one.reply("@the-loop restart --all")
	one.answer("*one* was restarted and holds what the env file declares")
	one.until("ready")
	one.tells("hello")
	if err := os.Remove(filepath.Join(l.plan.TmuxDir, "env")); err != nil {
		t.Fatal(err)
	}
	l.says("restart --all", "env.file is not set")
	_ = two
}

// A bot that comes back knows its message: the button works, and the same change is not told again.
func TestTheMessageOnAChangedEnvFileOutlivesTheBot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	w.env("TOKEN=old")
	one := w.agent("one")
	w.env("TOKEN=new")
	m := w.rotation(1, "1 of 1")
	w.back()
	w.reconcile()
	two := w.agent("two") // something else happens, and is looked at
	w.rotation(1, "1 of 2")
	w.click(m, w.ann)
	w.rotation(1, "any more (2 running)")
	if one.held("TOKEN") != "new" || two.held("TOKEN") != "new" {
		t.Error("a session was not restarted")
	}
	w.wantsRotations(1)
}

// A message that may have been posted is looked for, and not posted twice.
func TestAnAnswerThatIsLostDoesNotHaveTheChannelToldTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	w.env("TOKEN=old")
	w.agent("one")
	w.Faults().InjectAPI("chat.postMessage", 1, localslack.CutAfter())
	w.env("TOKEN=new")
	w.rotation(1, "1 of 1")
	w.back()
	w.env("TOKEN=old") // it edits the very message
	w.rotation(1, "any more (1 running)")
	w.wantsRotations(1)
}

func TestAMessageThatSomebodyDeletedIsNotPostedAgainForTheSameChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	w.env("TOKEN=old")
	one := w.agent("one")
	w.env("TOKEN=new")
	m := w.rotation(1, "1 of 1")
	if err := w.DeleteMessage(w.ch, m.TS); err != nil {
		t.Fatal(err)
	}
	w.agent("two")
	if _, err := w.core.RollingRestart(w.ctx, sessions.RollingRestartRequest{All: true}); err != nil {
		t.Fatal(err)
	}
	w.until("the message to be forgotten", func() bool { return w.rotationState()["message"] == nil })
	w.wantsRotations(0)
	_ = one
}

func (w *world) rotationState() map[string]any {
	w.t.Helper()
	var s map[string]any
	data, err := os.ReadFile(filepath.Join(w.plan.Root, "rotation.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// What the command line restarts is shown too, and a channel that others can read is told nothing.
func TestTheMessageFollowsWhatOthersRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	w.env("TOKEN=old")
	w.agent("one")
	w.agent("two")
	w.env("TOKEN=new")
	w.rotation(1, "2 of 2")
	for i, want := range []string{"1 of 2", "any more (2 running)"} {
		refs := []sessions.Ref{sessions.StandingRef([]string{"one", "two"}[i])}
		if out, err := w.core.RollingRestart(w.ctx, sessions.RollingRestartRequest{Refs: refs}); err != nil || out.Rows[0].Outcome != sessions.OutcomeVerified {
			t.Fatalf("%+v, %v", out, err)
		}
		w.reconcile()
		w.rotation(1, want)
	}
	w.wantsRotations(1)
}

// One restart runs at a time, whoever asks for it, and a second one is told so.
func TestASecondClickIsToldThatARestartIsUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk, func(s *setup) { s.plan = func(p *plan) { p.Probe = 3 * time.Second } })
	w.env("TOKEN=old")
	one := w.agent("one")
	w.env("TOKEN=new")
	m := w.rotation(1, "1 of 1")
	pane := one.pane()
	w.click(m, w.ann)
	w.rotation(1, "<@"+w.ann.ID+"> has the stale ones restarted: 0 of 1 done.")
	w.click(m, w.ann)
	w.whispered("The sessions are already being restarted, as <@" + w.ann.ID + "> asked.")
	w.rotation(1, "any more (1 running)")
	restarts := 0
	for _, e := range w.events.Events() {
		if e.Name == core.EventRestarted {
			restarts++
		}
	}
	if now := one.pane(); restarts != 1 || now.ID != pane.ID {
		t.Errorf("restarted %d times, pane %+v was %+v", restarts, now, pane)
	}
}

// Killed at any moment of a restart, the next bot finishes it in the same conversations, and tells of it in the same message.
func TestARestartThatTheBotDiesInIsFinishedByTheNextOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a bot in a process of its own is killed several times")
	}
	w := newWorld(t, bulk, unattended, func(s *setup) {
		s.patience = 3 * time.Minute
		s.plan = func(p *plan) { p.Probe = 300 * time.Millisecond }
	})
	w.env("TOKEN=v0")
	c := w.spawn()
	one, two := w.agent("one"), w.agent("two")
	panes := map[*agent]string{one: one.pane().ID, two: two.pane().ID}
	for i := 1; i <= 4; i++ {
		token := fmt.Sprint("v", i)
		w.env("TOKEN=" + token)
		m := w.rotation(i, "2 of 2")
		w.click(m, w.ann)
		w.until("the click to be heard", func() bool { s := w.rotationState(); return s["run"] != nil || s["last"] != nil })
		w.after(400 * time.Millisecond)
		c.kill()
		c = w.spawn()
		w.rotation(i, "any more (2 running)")
		for a, pane := range panes {
			if now := a.pane(); now.ID != pane || now.Dead || a.held("TOKEN") != token {
				t.Fatalf("%s: %+v in %s with %s", a.ref, now, pane, a.held("TOKEN"))
			}
			a.until("ready")
		}
	}
	one.tells("still there?")
	one.wants("still there?")
	w.wantsRotations(4)
}

// No value of the env file is in anything that Slack is told or that is written down.
func TestR_NoValueIsInWhatSlackIsToldOrInTheState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	old, fresh := "canary-OLD-7f3a91", "canary-NEW-b52c08"
	w.env("TOKEN=" + old)
	one := w.agent("one")
	w.env("TOKEN="+fresh, fresh+" is no assignment")
	m := w.rotation(1, "1 of 1")
	w.click(m, w.ann)
	w.rotation(1, "any more (1 running)")
	for _, text := range []string{"@the-loop status", "@the-loop restart --all --dry-run", "@the-loop restart --all", "@the-loop restart"} {
		answers := len(one.answers())
		one.reply(text)
		w.until("an answer to "+text, func() bool { return len(one.answers()) > answers })
	}
	if one.held("TOKEN") != fresh {
		t.Fatal("the agent does not hold the value that is looked for")
	}
	everything := map[string]string{"the bot's log": w.logs.String(), "the events": w.eventLines(), "the channel": w.said(), "the whispers": strings.Join(w.whispers(), "\n")}
	for i, r := range w.Requests() {
		everything[fmt.Sprint("request ", i)] = fmt.Sprintf("%+v", r)
	}
	err := filepath.WalkDir(w.plan.Root, func(path string, d fs.DirEntry, err error) error {
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
func TestASharedChannelIsToldNothingOfTheEnvFile(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.env("TOKEN=old")
	l.make("one")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	l.env("TOKEN=new")
	l.until("the refusal", func() bool { return strings.Contains(l.logs.String(), "is shared with another organisation") })
	l.says("status", "sessions 1 of 1 running with a stale environment") // for who asked
	l.wantsRotations(0)
}
