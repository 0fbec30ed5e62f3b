package threads

import (
	"testing"
	"time"
)

// slackapi/bolt-python#1071: with a second connection, of a bot that Slack has not given up or of another one, each event goes to
// one of the two. Of two replies the second is heard, and the first must not come after it.
func TestAReplyWhoseEventWentElsewhereIsTypedBeforeTheNext(t *testing.T) {
	withEnv(t, func(w *env) {
		w.m.Connected(false)
		w.advance(time.Second)
		w.slack.write(ann, "1")
		w.deliverEvent(w.slack.write(ann, "2"))
		w.advance(5 * time.Second)
		w.wantTyped("1", "2")
		w.advance(otherConnectionsFor)
		reads := w.slack.repliesRead.Load()
		w.reply("3")
		w.advance(5 * time.Second)
		if w.wantTyped("1", "2", "3"); w.slack.repliesRead.Load() != reads {
			t.Errorf("%d replies are read when no other connection is left", w.slack.repliesRead.Load()-reads)
		}
	})
}

// A deletion whose event is lost as well: what Slack sends again of the reply does not bring it back.
func TestAReplyThatSlackSendsAgainIsNotTypedWhenItIsGone(t *testing.T) {
	withEnv(t, func(w *env) {
		w.reply("before")
		ts := w.slack.write(ann, "gone")
		r := w.slack.reply(ts)
		r.Redelivered = true
		w.slack.remove(ts)
		w.advance(time.Minute)
		w.m.HandleReply(r)
		w.advance(5 * time.Minute)
		w.reply("after")
		w.wantTyped("before", "after")
	})
}
