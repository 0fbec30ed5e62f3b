package bot_test

import (
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/threads"
)

// R4.5: whatever is wrong with Slack, a session starts; that it could not be announced is said once, status says so, and
// it is announced when it can be.
func TestR4_5_ASessionStartsWhateverIsWrongWithSlack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm, heal func(l *botEnv)
		status     string
	}{
		"rate limited": {
			func(l *botEnv) { l.Faults().InjectAPI("chat.postMessage", -1, localslack.RateLimited("1")) },
			func(l *botEnv) { l.Faults().Clear() }, "asks to wait"},
		"in trouble": {
			func(l *botEnv) { l.Faults().InjectAPI("chat.postMessage", -1, localslack.HTML(503)) },
			func(l *botEnv) { l.Faults().Clear() }, "no word from Slack"},
		"not reachable": {
			func(l *botEnv) { l.Faults().InjectAPI("chat.postMessage", -1, localslack.CutBefore()) },
			func(l *botEnv) { l.Faults().Clear() }, "chat.postMessage"},
		"not in the channel": {
			func(l *botEnv) { l.Leave(l.ch, l.BotUserID()) },
			func(l *botEnv) { l.Invite(l.ch, l.BotUserID()) }, "/invite @the-loop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newBotEnv(t)
			c.harm(l)
			l.wantSlashAnswer("create tough", "started")
			l.waitUntil("the failure", func() bool { return l.countEvents(threads.EventAnnounceErr) == 1 })
			l.waitUntil("the status", func() bool { return containsAll(l.statusAnswer(), "*tough* running", ":warning:", c.status) })
			retried := l.postAttempts()
			l.waitUntil("another try", func() bool { return l.postAttempts() > retried })
			c.heal(l)
			l.startedSession("tough").replyAccepted("hello")
			l.waitUntil("the status", func() bool { return !strings.Contains(l.statusAnswer(), ":warning:") })
			if n := l.countEvents(threads.EventAnnounceErr); n != 1 {
				t.Errorf("the failure is in the event log %d times", n)
			}
		})
	}
}

// postAttempts is how often a message was tried to be posted in the channel, or looked for there.
func (l *botEnv) postAttempts() int {
	return len(l.RequestsOf("chat.postMessage")) + len(l.RequestsOf("conversations.history"))
}

func TestR4_5_AnArchivedChannelKeepsNoSessionFromStarting(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	other := l.AddChannel("old", localslack.Members(l.ann.ID, l.BotUserID())).ID
	l.Archive(other)
	if _, err := l.core.Create(l.ctx, sessions.CreateRequest{Name: "late", Chat: sessions.ChatDefinition{Enabled: true, Channel: other}}); err != nil {
		t.Fatal(err)
	}
	l.reconcileNow()
	l.waitUntil("the status", func() bool { return containsAll(l.statusAnswer(), "*late* running", "unarchive the channel") })
	l.Unarchive(other)
	l.waitUntil("the announcement", func() bool {
		m := l.Messages(other)
		return len(m) > 0 && strings.Contains(m[len(m)-1].Text, "*late* is running")
	})
	if n := l.countEvents(threads.EventAnnounceErr); n != 1 {
		t.Errorf("the failure is in the event log %d times", n)
	}
}

// Slack cannot be reached at all when the bot starts.
func TestR4_5_SlackIsAwayWhenTheBotStarts(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t, func(s *botEnvOptions) { s.noStart = true })
	l.Faults().InjectAPI("*", -1, localslack.CutBefore())
	l.startBot()
	if _, err := l.core.Create(l.ctx, sessions.CreateRequest{Name: "alone", Chat: sessions.ChatDefinition{Enabled: true}}); err != nil {
		t.Fatal(err)
	}
	l.waitUntil("a try", func() bool { return len(l.RequestsOf("auth.test")) > 0 })
	if !l.row("alone").Running {
		t.Error("it does not run")
	}
	l.Faults().Clear()
	l.startedSession("alone").replyAccepted("hello")
}

// Many sessions at once: they start side by side, and Slack is told of them at its own pace, without a refusal.
func TestManySessionsAreAnnouncedAtSlacksPace(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t, func(s *botEnvOptions) { s.workspace.RateLimits = localslack.RateLimitsStrict })
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, name := range names {
		if _, err := l.core.Create(l.ctx, sessions.CreateRequest{Name: name, Chat: sessions.ChatDefinition{Enabled: true}}); err != nil {
			t.Fatal(err)
		}
	}
	l.reconcileNow()
	l.waitUntil("all announcements", func() bool { return l.countEvents(threads.EventAnnounced) == len(names) })
	for _, r := range l.RequestsOf("chat.postMessage") {
		if r.Error != "" {
			t.Errorf("Slack refused a post: %s", r.Error)
		}
	}
	if n := l.countEvents(threads.EventAnnounceErr); n != 0 {
		t.Errorf("%d failures", n)
	}
}

// A form is acked in time however long its work takes, and shows what came of it.
func TestAFormIsAckedWhileItsWorkGoesOn(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t, func(s *botEnvOptions) { s.slow = 3500 * time.Millisecond })
	l.runCommand("create")
	v := l.waitModal("Announce it in")
	if wrong := l.submitModal(v, map[string]string{"name": "slowly"}); len(wrong) != 0 {
		t.Errorf("refused: %v", wrong)
	}
	l.waitModal("Creating slowly")
	l.waitModal("*slowly* running", "It is announced in")
	l.runCommand("create")
	l.submitModal(l.waitModal("Announce it in"), map[string]string{"name": "slowly"})
	l.waitModal("That did not work", "there is a session standing:slowly already")
}
