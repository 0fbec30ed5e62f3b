package threads

import (
	"testing"
	"time"
)

// slackapi/bolt-python#1071: with a second connection, of a bot that Slack has not given up or of another one, each event goes to
// one of the two. Of two replies the second is heard, and the first must not come after it.
func TestAReplyWhoseEventWentElsewhereIsTypedBeforeTheNext(t *testing.T) {
	run(t, func(w *world) {
		w.m.Connected(false)
		w.after(time.Second)
		w.slack.write(ann, "1")
		w.hear(w.slack.write(ann, "2"))
		w.after(5 * time.Second)
		w.wantTyped("1", "2")
		w.after(othersFor)
		reads := w.slack.read.Load()
		w.say("3")
		w.after(5 * time.Second)
		if w.wantTyped("1", "2", "3"); w.slack.read.Load() != reads {
			t.Errorf("%d replies are read when no other connection is left", w.slack.read.Load()-reads)
		}
	})
}

// A deletion whose event is lost as well: what Slack sends again of the reply does not bring it back.
func TestAReplyThatSlackSendsAgainIsNotTypedWhenItIsGone(t *testing.T) {
	run(t, func(w *world) {
		w.say("before")
		ts := w.slack.write(ann, "gone")
		r := w.slack.reply(ts)
		r.Late = true
		w.slack.remove(ts)
		w.after(time.Minute)
		w.m.Heard(r)
		w.after(5 * time.Minute)
		w.say("after")
		w.wantTyped("before", "after")
	})
}
