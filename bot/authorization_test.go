package bot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/threads"
)

// NousResearch/hermes-agent#36848, PostHog/posthog#43263, openclaw/openclaw#13161: a way in that is not judged. Every way
// in is tried by everybody who is not let in: nothing changes, nothing is answered, and each try is in the event log.
func TestEveryEntryPointRefusesTheUnauthorized(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(l *botEnv) *localslack.Person{
		"the list is empty": func(l *botEnv) *localslack.Person {
			l.changeConfig(func(p *botConfig) { p.Users = nil })
			return l.ann
		},
		"somebody who is not listed": func(l *botEnv) *localslack.Person { return l.bob },
		"a stranger with a listed id": func(l *botEnv) *localslack.Person {
			l.ShareChannel(l.ch, "T0ELSEWHERE")
			return l.authorizeAndInvite(l.AddUser("eve", localslack.Stranger("T0ELSEWHERE")))
		},
		"a bot that is listed": func(l *botEnv) *localslack.Person { return l.authorizeAndInvite(l.AddUser("robot", localslack.Bot())) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newBotEnv(t, func(s *botEnvOptions) { s.config = func(p *botConfig) { p.AllowShared = true } })
			a := l.createSession("safe")
			views := l.openForms(a)
			who := make(l)
			tryEveryEntryPoint(l, a, who, views)
		})
	}
}

// authorizeAndInvite puts somebody on the list and into the channel.
func (l *botEnv) authorizeAndInvite(p *localslack.Person) *localslack.Person {
	l.Invite(l.ch, p.ID)
	l.changeConfig(func(c *botConfig) { c.Users = append(c.Users, p.ID) })
	return p
}

// openForms opens the forms as Ann, so that they are there to be submitted.
func (l *botEnv) openForms(*testSession) map[string]localslack.View {
	l.t.Helper()
	l.runCommand("create")
	create := l.waitModal("Announce it in")
	return map[string]localslack.View{"create": create}
}

func tryEveryEntryPoint(l *botEnv, a *testSession, who *localslack.Person, views map[string]localslack.View) {
	t := l.t
	t.Helper()
	before, answered, events := l.row("safe"), len(l.Ephemerals(who.ID)), len(l.events.Events())
	messages := len(l.Messages(l.ch))
	home, hadHome := l.Home(who.ID)
	tries := map[string]func() error{
		"home": func() error { return who.OpenHome(l.ctx) },
	}
	for _, text := range []string{"", "help", "list", "status", "create evil", "create", "delete safe", "start safe", "stop safe", "restart safe", "say safe hi", "peek safe", "peek safe --share"} {
		tries["/the-loop "+text] = func() error { _, err := who.Slash(l.ctx, l.ch, "/the-loop", text); return err }
	}
	for _, action := range []string{"session_peek", "session_restart", "session_stop"} {
		tries[action] = func() error { return who.Click(l.ctx, l.ch, a.root, action) }
	}
	tries["shortcut"] = func() error { return who.Shortcut(l.ctx, l.ch, a.root, "session_menu") }
	if who == l.ann { // only who opened a form can submit it
		tries["form"] = func() error {
			_, err := who.Submit(l.ctx, views["create"].ID, map[string]string{"name": "evil"})
			return err
		}
	}
	for name, try := range tries {
		if err := try(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	dropped := func() int {
		n := 0
		for _, e := range l.events.Events()[events:] {
			if e.Name == threads.EventDropped && e.Fields["reason"] == threads.ReasonUnauthorized && e.Fields["user"] == who.ID && e.Fields["act"] != nil {
				n++
			}
		}
		return n
	}
	l.waitUntil(fmt.Sprintf("%d drops", len(tries)), func() bool { return dropped() >= len(tries) })
	l.waitProcessed()
	if got := l.row("safe"); got.Changed != before.Changed || !got.Running || l.row("evil").Ref != "" {
		t.Errorf("something changed: %+v", got)
	}
	if n := len(l.Ephemerals(who.ID)); n != answered {
		t.Errorf("%d answers: %+v", n-answered, l.Ephemerals(who.ID)[answered:])
	}
	if n := len(l.Messages(l.ch)); n != messages+1 { // what passed() wrote
		t.Errorf("%d messages were posted", n-messages-1)
	}
	after, hasHome := l.Home(who.ID)
	switch member := who.TeamID == l.TeamID() && !who.IsBot(); {
	case member && (!hasHome || !strings.Contains(string(after.Blocks), "operator's list") || strings.Contains(string(after.Blocks), "safe")):
		t.Errorf("the Home tab of a member shows %s", after.Blocks)
	case !member && (hasHome != hadHome || string(after.Blocks) != string(home.Blocks)):
		t.Errorf("the Home tab of a stranger shows %s", after.Blocks)
	}
	if len(a.receivedTexts()) != 0 {
		t.Errorf("the agent was told %q", a.receivedTexts())
	}
}

// Whoever is taken off the list loses what is open.
func TestAUserTakenOffTheListCannotUseOpenForms(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	l.createSession("safe")
	if err := l.ann.OpenHome(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.waitUntil("the Home tab", func() bool { v, _ := l.Home(l.ann.ID); return strings.Contains(string(v.Blocks), "*safe* running") })
	l.runCommand("delete safe")
	v := l.waitModal("Delete *safe*?")
	l.changeConfig(func(p *botConfig) { p.Users = []string{l.bob.ID} })
	if wrong := l.submitModal(v, nil); len(wrong) != 0 {
		t.Errorf("answered %v", wrong)
	}
	l.waitUntil("the drop", func() bool {
		return slices.ContainsFunc(l.events.Events(), func(e sessions.Event) bool { return e.Fields["act"] == "session_delete" })
	})
	l.waitUntil("the Home tab to close", func() bool { v, _ := l.Home(l.ann.ID); return !strings.Contains(string(v.Blocks), "safe") })
	if !l.row("safe").Running {
		t.Error("deleted")
	}
}

func TestTheHomeTabShowsTheSessionsAndIsKeptUpToDate(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("one")
	if err := l.ann.OpenHome(l.ctx); err != nil {
		t.Fatal(err)
	}
	home := func(parts ...string) localslack.View {
		t.Helper()
		var v localslack.View
		l.waitUntil("a Home tab with "+strings.Join(parts, ", "), func() bool {
			v, _ = l.Home(l.ann.ID)
			return containsAll(string(v.Blocks), parts...)
		})
		return v
	}
	v := home("*one* running", "session_stop")
	if err := l.ann.Click(l.ctx, "", v.ID, "session_peek"); err != nil {
		t.Fatal(err)
	}
	l.waitModal("*one* running", "small agent")
	if err := l.ann.Click(l.ctx, "", v.ID, "session_stop"); err != nil {
		t.Fatal(err)
	}
	home("*one* stopped · `small-agent` · stopped", "session_start", "session_delete")
	if _, err := l.core.Start(l.ctx, sessions.StartRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	l.reconcileNow()
	v = home("*one* running", "session_restart")
	if err := l.ann.Click(l.ctx, "", v.ID, "session_restart"); err != nil {
		t.Fatal(err)
	}
	v = home("resumed")
	l.wantSlashAnswer("stop one", "stopped")
	v = home("session_delete")
	if err := l.ann.Click(l.ctx, "", v.ID, "session_delete"); err != nil {
		t.Fatal(err)
	}
	l.submitModal(l.waitModal("Delete *one*?"), nil)
	home("There is no session")
}

// While the configuration does not validate nobody is let in. Who was not on the last valid list sees what he sees otherwise.
func TestNobodyIsAuthorizedWhileTheConfigIsInvalid(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("safe")
	answered := len(l.Ephemerals(l.ann.ID))
	l.changeConfig(func(p *botConfig) { p.Suspended = true })
	for who, says := range map[*localslack.Person]string{l.ann: "nothing to show at the moment", l.bob: "for the people on its operator"} {
		if err := who.OpenHome(l.ctx); err != nil {
			t.Fatal(err)
		}
		l.waitUntil("a closed Home tab", func() bool {
			v, _ := l.Home(who.ID)
			return strings.Contains(string(v.Blocks), says)
		})
	}
	l.runCommand("stop safe")
	a.pressButton("session_stop")
	l.waitUntil("the drops", func() bool {
		n := 0
		for _, e := range l.events.Events() {
			if e.Name == threads.EventDropped && e.Fields["reason"] == "config-invalid" && e.Fields["user"] == l.ann.ID {
				n++
			}
		}
		return n == 3
	})
	if !l.row("safe").Running || len(l.Ephemerals(l.ann.ID)) != answered {
		t.Error("somebody got in")
	}
	l.changeConfig(func(p *botConfig) { p.Suspended = false })
	l.wantSlashAnswer("stop safe", "stopped")
}
