package bot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/threads"
	"the-loop/threads/relay"
)

// Strangers put as many emoji on a reply as Slack takes while it waits: its receipt changes all the same, and those of the
// other sessions are not held up.
func TestAReplyFullOfEmojiHoldsUpNoReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("crowded"), w.agent("other")
	a.asking()
	ts := a.reply("wait for it")
	a.receipt(ts, held)
	for i := range 49 { // with the bot's own they are all that there may be
		p := w.AddUser(fmt.Sprint("stranger", i))
		w.Invite(w.ch, p.ID)
		if err := p.React(w.ch, ts, fmt.Sprint("emoji", i)); err != nil {
			t.Fatal(err)
		}
	}
	b.tells("while it is full")
	a.keys("1")
	a.until(smallagent.StateReady)
	a.receipt(ts, accepted)
	b.tells("and after")
	if w.HasReaction(w.ch, ts, held) {
		t.Error("the old receipt is still there")
	}
}

// The same, from the first receipt on: there is no room for any, and nothing else waits for that.
func TestAReplyThatTakesNoReceiptIsDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.agent("crowded"), w.agent("other")
	w.Faults().RefuseMatching("reactions.add", "too_many_emoji", func(args map[string]string) bool {
		m, _ := w.Message(w.ch, args["timestamp"])
		return m.ThreadTS == a.root
	})
	for i := range 5 {
		a.reply(fmt.Sprint("crowded ", i))
	}
	b.tells("not held up")
	w.until("all replies", func() bool { return len(a.got()) == 5 })
}

// A channel is archived in which receipts and messages are due: the sessions of other channels go on, and those of this one
// when it is open again.
func TestAnArchivedChannelHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.AddChannel("other", localslack.Members(w.ann.ID, w.BotUserID())).ID
	d := w.definition("old", "--reply-delay", "3s")
	d.Chat.Channel = other
	a := w.launch(d)
	a.announced()
	a.ready()
	b := w.agent("new")
	ts := a.reply("before it is archived")
	w.until("the agent to have it", func() bool { return len(a.got()) == 1 })
	w.Archive(other)
	for i := range 3 {
		b.tells(fmt.Sprint("go on ", i))
	}
	w.Unarchive(other)
	a.receipt(ts, accepted)
	a.tells("after it")
}

// Slack refuses a message for what is in it: it is posted as a plain text, or where that does not help dropped with an
// event. What comes after it in its thread is posted.
func TestAMessageThatSlackRefusesForGoodHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for code, plainHelps := range map[string]bool{"invalid_blocks": true, "msg_blocks_too_long": true, "msg_too_long": false, "an_error_of_tomorrow": false} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *setup) { s.plan = func(p *plan) { p.Answers = relay.AnswersFinal } })
			a := w.agent("talker")
			a.listenedTo()
			w.Faults().RefuseMatching("chat.postMessage", code, func(args map[string]string) bool {
				return strings.Contains(args["text"], "poison") && (!plainHelps || len(args["blocks"]) > 2)
			})
			a.tells("poison")
			a.until(smallagent.StateReady)
			a.tells("harmless")
			a.answer("harmless")
			want := 0
			if plainHelps {
				want = 1
			}
			if n := a.count("poison"); n != want {
				t.Errorf("%d messages with what Slack refuses; want %d", n, want)
			}
			failures := slices.DeleteFunc(w.events.Events(), func(e sessions.Event) bool { return e.Name != threads.EventPostFailed })
			if len(failures) != 1-want {
				t.Errorf("the event log has %v", failures)
			}
		})
	}
}
