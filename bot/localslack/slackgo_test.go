package localslack

import (
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// collectEvents acks everything and keeps the inner events.
func (f *fixture) collectEvents() chan slackevents.EventsAPIEvent {
	f.t.Helper()
	got := make(chan slackevents.EventsAPIEvent, 2000)
	f.connect(func(c *socketmode.Client, ev socketmode.Event) {
		if ev.Request == nil || ev.Request.Type == "hello" {
			return
		}
		if err := c.AckCtx(f.ctx, ev.Request.EnvelopeID, nil); err != nil {
			return
		}
		if e, ok := ev.Data.(slackevents.EventsAPIEvent); ok {
			got <- e
		}
	})
	f.waitUntil("connected", func() bool { return f.Connections() == 1 })
	return got
}

func (f *fixture) nextMessage(got chan slackevents.EventsAPIEvent) *slackevents.MessageEvent {
	f.t.Helper()
	for {
		select {
		case e := <-got:
			if m, ok := e.InnerEvent.Data.(*slackevents.MessageEvent); ok {
				return m
			}
		case <-f.ctx.Done():
			f.t.Fatal("no message event came")
		}
	}
}

func TestAReplyReachesTheRealClientAndItsAnswerTheThread(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	got := f.collectEvents()
	root := f.post("hello")
	if m := f.nextMessage(got); m.Text != "hello" || m.TimeStamp != root {
		t.Fatalf("root came as %+v", m)
	}
	ts := f.reply(root, "a <b> & c")
	m := f.nextMessage(got)
	if m.Text != "a &lt;b&gt; &amp; c" || m.ThreadTimeStamp != root || m.TimeStamp != ts || m.ChannelType != "channel" {
		t.Fatalf("reply came as %+v", m)
	}
	if _, _, err := f.api.PostMessageContext(f.ctx, f.ch, slack.MsgOptionText("done", false), slack.MsgOptionTS(root)); err != nil {
		t.Fatal(err)
	}
	own := f.nextMessage(got)
	if own.BotID != f.BotID() || own.User != f.BotUserID() {
		t.Fatalf("the bot's own post came as %+v", own)
	}
	th := f.Thread(f.ch, root)
	if len(th) != 3 || th[2].Text != "done" || th[0].ReplyCount != 2 {
		t.Fatalf("thread is %+v", th)
	}
	f.waitUntil("all acked", func() bool { return f.Pending() == 0 })
}
