package threads

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/authz"
	"the-loop/threads/chat"
)

// replyAs writes a reply as somebody and delivers its event.
func (w *env) replyAs(user, text string) string {
	ts := w.slack.write(user, text)
	w.deliverEvent(ts)
	return ts
}

// Whoever was not on the last valid list sees nothing while the configuration is not valid: no receipt, no answer to a
// command, no offer that names him. Who was on it is answered.
func TestStrangersSeeNothingWhileTheConfigurationIsNotValid(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.configInvalid = true })
		reply := w.replyAs(bob, "let me in")
		w.replyAs(bob, "@bot status")
		edited := w.replyAs(bob, "typed wrogn")
		w.slack.edit(edited, "@bot stop")
		w.m.ReplyEdited(w.slack.reply(edited))
		missed := w.slack.write(bob, "@bot status") // found by reading the thread, much later
		w.advance(time.Hour)
		w.m.Connected(true)
		w.advance(time.Hour)
		w.wantPosts()
		for _, ts := range []string{reply, edited, missed} {
			w.wantReceipt(ts)
		}
		w.locked(func() { w.configInvalid = false })
		w.advance(time.Minute)
		w.wantPosts()
		w.wantReceipt(reply)
		w.wantTyped()
		if got := w.droppedReasons(); !slices.Contains(got, ReasonUnauthorized) || !slices.Contains(got, ReasonSuspended) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestWhoWasOnTheLastValidListIsAnsweredWhileTheConfigurationIsNotValid(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.configInvalid = true })
		ts := w.reply("wait for it")
		w.reply("@bot status")
		w.advance(5 * time.Second)
		w.wantReceipt(ts, "eyes")
		w.wantPosts("configuration is invalid")
		w.locked(func() { w.configInvalid = false })
		w.advance(5 * time.Second)
		w.wantTyped("wait for it")
		w.wantReceipt(ts, "white_check_mark")
	})
}

// Until a valid list was read nobody is known, and nothing is lost.
func TestNobodySeesAnythingBeforeAListWasRead(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.configInvalid, w.users = true, nil })
		ts := w.reply("wait for it")
		w.reply("@bot status")
		w.advance(5 * time.Minute)
		w.wantReceipt(ts)
		w.wantPosts()
		w.locked(func() { w.configInvalid, w.users = false, []string{ann} })
		w.advance(5 * time.Second)
		w.wantTyped("wait for it")
	})
}

// Who was taken off the list while his reply waited is neither offered nor named.
func TestAnOldReplyOfAStrangerIsNotOffered(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.configInvalid = true })
		w.replyAs(bob, "old")
		w.reply("mine")
		w.advance(time.Hour)
		w.locked(func() { w.configInvalid = false })
		w.advance(time.Minute)
		posts := w.slack.posted()
		if len(posts) != 1 || strings.Contains(posts[0], bob) || !strings.Contains(posts[0], "<@"+ann+">") {
			t.Errorf("posted %q", posts)
		}
	})
}

func TestAStrangersClickIsNotAnsweredWhileTheConfigurationIsNotValid(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.configInvalid = true })
		for user, denied := range map[string]bool{ann: false, bob: true} {
			answer, err := w.m.Resend(context.Background(), ResendChoice{Token: token(sid), Action: chat.ActionSend, Actor: authz.Actor{User: user, Team: "T1"}})
			if errors.Is(err, ErrDenied) != denied || denied == (answer == suspendedText) {
				t.Errorf("%s is answered %q, %v", user, answer, err)
			}
		}
	})
}

// Whose reply was typed once, and who is not on the list any more, is told nothing of a later edit or deletion.
func TestWhoWasTakenOffTheListIsToldNothingOfHisEdits(t *testing.T) {
	withEnv(t, func(w *env) {
		ts := w.reply("typed")
		w.locked(func() { w.users = []string{bob} })
		w.slack.edit(ts, "changed")
		w.m.ReplyEdited(w.slack.reply(ts))
		w.m.ReplyDeleted(channel, w.slack.rootTS(), ts)
		w.advance(10 * time.Second)
		w.wantPosts()
	})
}
