package threads

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/authz"
)

// hearAs writes a reply as somebody and delivers its event.
func (w *world) hearAs(user, text string) string {
	ts := w.slack.write(user, text)
	w.hear(ts)
	return ts
}

// Whoever was not on the last valid list sees nothing while the configuration is not valid: no receipt, no answer to a
// command, no offer that names him. Who was on it is answered.
func TestStrangersSeeNothingWhileTheConfigurationIsNotValid(t *testing.T) {
	run(t, func(w *world) {
		w.set(func() { w.broken = true })
		reply := w.hearAs(bob, "let me in")
		w.hearAs(bob, "@bot status")
		edited := w.hearAs(bob, "typed wrogn")
		w.slack.edit(edited, "@bot stop")
		w.m.Edited(w.slack.reply(edited))
		missed := w.slack.write(bob, "@bot status") // found by reading the thread, much later
		w.after(time.Hour)
		w.m.Connected(true)
		w.after(time.Hour)
		w.wantPosts()
		for _, ts := range []string{reply, edited, missed} {
			w.wantReceipt(ts)
		}
		w.set(func() { w.broken = false })
		w.after(time.Minute)
		w.wantPosts()
		w.wantReceipt(reply)
		w.wantTyped()
		if got := w.dropped(); !slices.Contains(got, ReasonUnauthorized) || !slices.Contains(got, ReasonSuspended) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestWhoWasOnTheLastValidListIsAnsweredWhileTheConfigurationIsNotValid(t *testing.T) {
	run(t, func(w *world) {
		w.set(func() { w.broken = true })
		ts := w.say("wait for it")
		w.say("@bot status")
		w.after(5 * time.Second)
		w.wantReceipt(ts, "eyes")
		w.wantPosts("configuration is not valid")
		w.set(func() { w.broken = false })
		w.after(5 * time.Second)
		w.wantTyped("wait for it")
		w.wantReceipt(ts, "white_check_mark")
	})
}

// Until a valid list was read nobody is known, and nothing is lost.
func TestNobodySeesAnythingBeforeAListWasRead(t *testing.T) {
	run(t, func(w *world) {
		w.set(func() { w.broken, w.users = true, nil })
		ts := w.say("wait for it")
		w.say("@bot status")
		w.after(5 * time.Minute)
		w.wantReceipt(ts)
		w.wantPosts()
		w.set(func() { w.broken, w.users = false, []string{ann} })
		w.after(5 * time.Second)
		w.wantTyped("wait for it")
	})
}

// Who was taken off the list while his reply waited is neither offered nor named.
func TestAnOldReplyOfAStrangerIsNotOffered(t *testing.T) {
	run(t, func(w *world) {
		w.set(func() { w.broken = true })
		w.hearAs(bob, "old")
		w.say("mine")
		w.after(time.Hour)
		w.set(func() { w.broken = false })
		w.after(time.Minute)
		posts := w.slack.posted()
		if len(posts) != 1 || strings.Contains(posts[0], bob) || !strings.Contains(posts[0], "<@"+ann+">") {
			t.Errorf("posted %q", posts)
		}
	})
}

func TestAStrangersClickIsNotAnsweredWhileTheConfigurationIsNotValid(t *testing.T) {
	run(t, func(w *world) {
		w.set(func() { w.broken = true })
		for user, denied := range map[string]bool{ann: false, bob: true} {
			answer, err := w.m.Decide(context.Background(), Decision{Token: token(sid), Action: ActionSend, Actor: authz.Actor{User: user, Team: "T1"}})
			if errors.Is(err, ErrDenied) != denied || denied == (answer == suspendedText) {
				t.Errorf("%s is answered %q, %v", user, answer, err)
			}
		}
	})
}

// Whose reply was typed once, and who is not on the list any more, is told nothing of a later edit or deletion.
func TestWhoWasTakenOffTheListIsToldNothingOfHisEdits(t *testing.T) {
	run(t, func(w *world) {
		ts := w.say("typed")
		w.set(func() { w.users = []string{bob} })
		w.slack.edit(ts, "changed")
		w.m.Edited(w.slack.reply(ts))
		w.m.Withdrawn(channel, w.slack.rootTS(), ts)
		w.after(10 * time.Second)
		w.wantPosts()
	})
}
