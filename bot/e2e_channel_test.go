package bot_test

import (
	"strings"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/threads"
)

// Slack gives a private channel another id when it is shared. Replies go on to arrive, also where the event that says so is
// lost and the configuration still has the old id, which status says.
func TestASessionGoesWithItsChannel(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"heard": false, "missed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newBotEnv(t)
			a := l.createSession("tough")
			a.replyAccepted("before")
			if lose {
				l.Faults().InjectDelivery("channel_id_changed", 1, localslack.Suppress)
			}
			old := l.ch
			l.ch = l.ChangeChannelID(old)
			a.ch = l.ch
			a.replyAccepted("after")
			a.wantReceived("before", "after")
			l.reconcileNow()
			l.waitUntil("the status", func() bool {
				return containsAll(l.statusAnswer(), "channels.slack.channel is "+old, "write "+l.ch+" there")
			})
			if _, err := l.core.Stop(l.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
				t.Fatal(err)
			}
			l.reconcileNow()
			l.waitUntil("the announcement to say so", func() bool {
				m, _ := l.Message(l.ch, a.root)
				return strings.Contains(m.Text, "stopped")
			})
			l.createSession("second")
			if n := l.countEvents(threads.EventAnnounceErr); n != 0 {
				t.Errorf("%d failures", n)
			}
		})
	}
}
