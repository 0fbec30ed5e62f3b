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
	w := newEnv(t)
	a, b := w.startSession("crowded"), w.startSession("other")
	a.startDialog()
	ts := a.reply("wait for it")
	a.waitReceipt(ts, receiptHeld)
	for i := range 49 { // with the bot's own they are all that there may be
		p := w.AddUser(fmt.Sprint("stranger", i))
		w.Invite(w.ch, p.ID)
		if err := p.React(w.ch, ts, fmt.Sprint("emoji", i)); err != nil {
			t.Fatal(err)
		}
	}
	b.replyAccepted("while it is full")
	a.sendKeys("1")
	a.waitState(smallagent.StateReady)
	a.waitReceipt(ts, receiptAccepted)
	b.replyAccepted("and after")
	if w.HasReaction(w.ch, ts, receiptHeld) {
		t.Error("the old receipt is still there")
	}
}

// The same, from the first receipt on: there is no room for any, and nothing else waits for that.
func TestAReplyThatTakesNoReceiptIsDelivered(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a, b := w.startSession("crowded"), w.startSession("other")
	w.Faults().RefuseMatching("reactions.add", "too_many_emoji", func(args map[string]string) bool {
		m, _ := w.Message(w.ch, args["timestamp"])
		return m.ThreadTS == a.root
	})
	for i := range 5 {
		a.reply(fmt.Sprint("crowded ", i))
	}
	b.replyAccepted("not held up")
	w.waitUntil("all replies", func() bool { return len(a.receivedTexts()) == 5 })
}

// A channel is archived in which receipts and messages are due: the sessions of other channels go on, and those of this one
// when it is open again.
func TestAnArchivedChannelHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	other := w.AddChannel("other", localslack.Members(w.ann.ID, w.BotUserID())).ID
	d := w.definition("old", "--reply-delay", "3s")
	d.Chat.Channel = other
	a := w.startDefined(d)
	a.waitAnnounced()
	a.waitReady()
	b := w.startSession("new")
	ts := a.reply("before it is archived")
	w.waitUntil("the agent to have it", func() bool { return len(a.receivedTexts()) == 1 })
	w.Archive(other)
	for i := range 3 {
		b.replyAccepted(fmt.Sprint("go on ", i))
	}
	w.Unarchive(other)
	a.waitReceipt(ts, receiptAccepted)
	a.replyAccepted("after it")
}

// Slack refuses a message for what is in it: it is posted as a plain text, or where that does not help dropped with an
// event. What comes after it in its thread is posted.
func TestAMessageThatSlackRefusesForGoodHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for code, plainHelps := range map[string]bool{"invalid_blocks": true, "msg_blocks_too_long": true, "msg_too_long": false, "an_error_of_tomorrow": false} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, func(s *envOptions) { s.config = func(p *botConfig) { p.Answers = relay.AnswersFinal } })
			a := w.startSession("talker")
			a.waitOffsetStored()
			w.Faults().RefuseMatching("chat.postMessage", code, func(args map[string]string) bool {
				return strings.Contains(args["text"], "poison") && (!plainHelps || len(args["blocks"]) > 2)
			})
			a.replyAccepted("poison")
			a.waitState(smallagent.StateReady)
			a.replyAccepted("harmless")
			a.waitBotMessage("harmless")
			want := 0
			if plainHelps {
				want = 1
			}
			if n := a.countBotMessages("poison"); n != want {
				t.Errorf("%d messages with what Slack refuses; want %d", n, want)
			}
			failures := slices.DeleteFunc(w.events.Events(), func(e sessions.Event) bool { return e.Name != threads.EventPostFailed })
			if len(failures) != 1-want {
				t.Errorf("the event log has %v", failures)
			}
		})
	}
}
