package bot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/relay"
)

// visibleIn is everything of the bot's that is seen in a channel: messages, what they say, and reactions.
func (l *botEnv) visibleIn(channel string) (all []string) {
	for _, m := range l.Messages(channel) {
		if m.User == l.BotUserID() {
			all = append(all, m.TS+" "+m.Text)
		}
		for _, r := range m.Reactions {
			if slices.Contains(r.Users, l.BotUserID()) {
				all = append(all, m.TS+" "+r.Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// directMessages are the messages that somebody got from the bot directly.
func (l *botEnv) directMessages(who *localslack.Person) (texts []string) {
	for _, m := range l.Messages(l.OpenIM(who.ID).ID) {
		if m.User == l.BotUserID() {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// hasFailedPost reports whether the event log says that a message could not be posted, and why.
func (l *botEnv) hasFailedPost(part string) bool {
	return slices.ContainsFunc(l.events.Events(), func(e sessions.Event) bool {
		return e.Name == threads.EventPostFailed && strings.Contains(fmt.Sprint(e.Fields["reason"]), part)
	})
}

// A channel that another organisation gets to read after its announcements is written to no more, whether an event tells of
// it or not. What is to be said waits, the operator is told where no stranger reads, and it goes on when that is over.
func TestAChannelThatIsSharedLaterGetsNothingMore(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]func(string) bool{
		"told by an event":       func(string) bool { return false },
		"an app of before":       func(e string) bool { return strings.Contains(e, "shared") },
		"the next message tells": func(e string) bool { return strings.Contains(e, "channel_shared") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newBotEnv(t, func(s *botEnvOptions) {
				s.config = func(p *botConfig) { p.Answers = relay.AnswersFinal }
				s.workspace.Events = slices.DeleteFunc(s.workspace.Events, events)
			})
			a := l.createSession("quiet")
			a.replyAccepted("before")
			a.waitBotMessage("before")
			a.waitState("ready")
			l.ShareChannel(l.ch, "T0OTHERCO1")
			before := l.visibleIn(l.ch)
			ts := a.reply("the secret plan")
			l.waitUntil("the agent to have it", func() bool { return slices.Contains(a.receivedTexts(), "the secret plan") })
			a.waitState("ready")
			l.waitUntil("a message that is held", func() bool { return l.hasFailedPost("is shared with another organisation") })
			l.waitUntil("the operator to be told", func() bool { return len(l.directMessages(l.ann)) == 1 })
			if got := l.directMessages(l.ann)[0]; !containsAll(got, "<#"+l.ch+">", "allowSharedChannels") {
				t.Errorf("the operator is told %q", got)
			}
			a.reply("@the-loop status")
			a.waitEphemeral("*quiet* running")
			l.wantSlashAnswer("status", "is shared with another organisation", "messages wait")
			if got := l.visibleIn(l.ch); !slices.Equal(got, before) {
				t.Errorf("the channel shows %q; want %q", got, before)
			}
			l.UnshareChannel(l.ch)
			if name == "an app of before" {
				l.changeConfig(func(p *botConfig) { p.AllowShared = true }) // it would be asked again after a minute
			}
			a.waitBotMessage("the secret plan")
			a.waitReceipt(ts, receiptAccepted)
			if n := a.countBotMessages("the secret plan"); n != 1 {
				t.Errorf("it was answered %d times", n)
			}
			if n := len(l.directMessages(l.bob)); n != 0 {
				t.Errorf("somebody who is not on the list was told %d things", n)
			}
		})
	}
}

// The operator may allow it.
func TestASharedChannelThatIsAllowedIsWrittenTo(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t, func(s *botEnvOptions) { s.config = func(p *botConfig) { p.AllowShared = true } })
	a := l.createSession("open")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	a.replyAccepted("go on")
	if n := len(l.directMessages(l.ann)); n != 0 {
		t.Errorf("the operator was told %d things", n)
	}
}

// An invitation is enough: who accepts it reads what was posted meanwhile.
func TestAChannelThatSomebodyWasInvitedToGetsNothing(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	other := l.AddChannel("other", localslack.Members(l.ann.ID, l.BotUserID())).ID
	l.InviteTeam(other)
	if _, err := l.core.Create(l.ctx, sessions.CreateRequest{Name: "late", Chat: sessions.ChatDefinition{Enabled: true, Channel: other}}); err != nil {
		t.Fatal(err)
	}
	l.reconcileNow()
	l.waitUntil("the status", func() bool { return containsAll(l.statusAnswer(), "is shared with another organisation") })
	if got := l.visibleIn(other); len(got) != 0 {
		t.Errorf("the channel shows %q", got)
	}
}

// A session in a shared channel can be deleted, and is answered to whom its commands belong.
func TestASessionOfASharedChannelCanBeDeleted(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("gone")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	before := l.visibleIn(l.ch)
	if _, err := l.core.Delete(l.ctx, sessions.DeleteRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	l.reconcileNow()
	l.waitUntil("the binding to be gone", func() bool { _, ok := a.binding(); return !ok })
	if got := l.visibleIn(l.ch); !slices.Equal(got, before) {
		t.Errorf("the channel shows %q; want %q", got, before)
	}
}

// Where the app may not write directly, status and log have it.
func TestWithoutTheMessagesTabStatusNamesASharedChannel(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t, func(s *botEnvOptions) { s.workspace.NoMessages = true })
	l.createSession("quiet")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	l.waitUntil("the log", func() bool { return strings.Contains(l.logs.String(), "messages_tab_disabled") })
	l.wantSlashAnswer("status", "is shared with another organisation")
}
