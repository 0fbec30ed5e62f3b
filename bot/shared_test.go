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

// shown is everything of the bot's that is seen in a channel: messages, what they say, and reactions.
func (l *life) shown(channel string) (all []string) {
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

// direct are the messages that somebody got from the bot directly.
func (l *life) direct(who *localslack.Person) (texts []string) {
	for _, m := range l.Messages(l.OpenIM(who.ID).ID) {
		if m.User == l.BotUserID() {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// failedPost reports whether the event log says that a message could not be posted, and why.
func (l *life) failedPost(part string) bool {
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
			l := newLife(t, func(s *lifeSetup) {
				s.plan = func(p *plan) { p.Answers = relay.AnswersFinal }
				s.workspace.Events = slices.DeleteFunc(s.workspace.Events, events)
			})
			a := l.make("quiet")
			a.tells("before")
			a.answer("before")
			a.until("ready")
			l.ShareChannel(l.ch, "T0OTHERCO1")
			before := l.shown(l.ch)
			ts := a.reply("the secret plan")
			l.until("the agent to have it", func() bool { return slices.Contains(a.got(), "the secret plan") })
			a.until("ready")
			l.until("a message that is held", func() bool { return l.failedPost("is shared with another organisation") })
			l.until("the operator to be told", func() bool { return len(l.direct(l.ann)) == 1 })
			if got := l.direct(l.ann)[0]; !contains(got, "<#"+l.ch+">", "allowSharedChannels") {
				t.Errorf("the operator is told %q", got)
			}
			a.reply("@the-loop status")
			a.whispered("*quiet* running")
			l.says("status", "is shared with another organisation", "messages wait")
			if got := l.shown(l.ch); !slices.Equal(got, before) {
				t.Errorf("the channel shows %q; want %q", got, before)
			}
			l.UnshareChannel(l.ch)
			if name == "an app of before" {
				l.change(func(p *plan) { p.AllowShared = true }) // it would be asked again after a minute
			}
			a.answer("the secret plan")
			a.receipt(ts, accepted)
			if n := a.count("the secret plan"); n != 1 {
				t.Errorf("it was answered %d times", n)
			}
			if n := len(l.direct(l.bob)); n != 0 {
				t.Errorf("somebody who is not on the list was told %d things", n)
			}
		})
	}
}

// The operator may allow it.
func TestASharedChannelThatIsAllowedIsWrittenTo(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(s *lifeSetup) { s.plan = func(p *plan) { p.AllowShared = true } })
	a := l.make("open")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	a.tells("go on")
	if n := len(l.direct(l.ann)); n != 0 {
		t.Errorf("the operator was told %d things", n)
	}
}

// An invitation is enough: who accepts it reads what was posted meanwhile.
func TestAChannelThatSomebodyWasInvitedToGetsNothing(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	other := l.AddChannel("other", localslack.Members(l.ann.ID, l.BotUserID())).ID
	l.InviteTeam(other)
	if _, err := l.core.Create(l.ctx, sessions.CreateRequest{Name: "late", Chat: sessions.ChatDefinition{Enabled: true, Channel: other}}); err != nil {
		t.Fatal(err)
	}
	l.reconcile()
	l.until("the status", func() bool { return contains(l.status(), "is shared with another organisation") })
	if got := l.shown(other); len(got) != 0 {
		t.Errorf("the channel shows %q", got)
	}
}

// A session in a shared channel can be deleted, and is answered to whom its commands belong.
func TestASessionOfASharedChannelEnds(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	a := l.make("gone")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	before := l.shown(l.ch)
	if _, err := l.core.Delete(l.ctx, sessions.DeleteRequest{Ref: a.ref}); err != nil {
		t.Fatal(err)
	}
	l.reconcile()
	l.until("the binding to be gone", func() bool { _, ok := a.binding(); return !ok })
	if got := l.shown(l.ch); !slices.Equal(got, before) {
		t.Errorf("the channel shows %q; want %q", got, before)
	}
}

// Where the app may not write directly, status and log have it.
func TestWithoutTheMessagesTabStatusTellsOfASharedChannel(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(s *lifeSetup) { s.workspace.NoMessages = true })
	l.make("quiet")
	l.ShareChannel(l.ch, "T0OTHERCO1")
	l.until("the log", func() bool { return strings.Contains(l.logs.String(), "messages_tab_disabled") })
	l.says("status", "is shared with another organisation")
}
