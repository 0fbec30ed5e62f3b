package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/threads/chat"
)

// withFakeClock gives the workspace a clock that the test moves.
func withFakeClock(s *envOptions) {
	s.workspace.Clock, s.workspace.RateLimits = localslack.NewFakeClock(time.Now()), localslack.RateLimitsOff
}

// clockAdvancer moves the workspace's clock.
func clockAdvancer(s *envOptions) func(time.Duration) {
	return s.workspace.Clock.(*localslack.FakeClock).Advance
}

// deliveryAttempts is how many frames went out for a message with that retry_attempt.
func (w *env) deliveryAttempts(ts string, n int) int {
	count := 0
	for _, f := range w.Frames() {
		if f.Dir == "out" && containsAll(string(f.Data), `"event_ts":"`+ts+`"`, fmt.Sprintf(`"retry_attempt":%d`, n)) {
			count++
		}
	}
	return count
}

// slackapi/bolt-js#2487: the same envelope twice. gugu91/pinet#226: a new envelope with the same event. chenhg5/cc-connect#1822:
// a mention comes as message and as app_mention.
func TestDuplicatesAreTypedOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	for _, c := range []struct {
		name  string
		fault func()
	}{
		{"same envelope", func() { w.Faults().InjectDelivery("message.channels", 1, localslack.Duplicate) }},
		{"new envelope", func() { w.Faults().InjectDelivery("message.channels", 1, localslack.DuplicateNewEnvelope) }},
		{"and a mention, @the-loop", func() {}},
	} {
		c.fault()
		a.replyAccepted(c.name)
	}
	a.replyAccepted("the end")
	w.waitProcessed()
	a.wantReceived("same envelope", "new envelope", "and a mention, @the-loop", "the end")
}

// chenhg5/cc-connect#364: the event is sent again long after it was handled.
func TestLateRetriesAreTypedOnce(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newEnv(t, withFakeClock, func(s *envOptions) { forward = clockAdvancer(s) })
	a := w.startSession("helper")
	w.Faults().IgnoreAcks(-1)
	ts := a.replyAccepted("only once")
	for n := 1; n <= 3; n++ { // at once, after a minute and after five, each when no ack has come for 3 s
		w.waitUntil(fmt.Sprintf("retry %d", n), func() bool {
			forward(10 * time.Second)
			return w.deliveryAttempts(ts, n) == 1
		})
	}
	w.Faults().Clear()
	w.startAndConnect()
	if !w.Faults().Redeliver(w.ch, ts, 3) {
		t.Fatal("there is no such event")
	}
	w.waitProcessed()
	a.replyAccepted("the end")
	a.wantReceived("only once", "the end")
}

// vercel/chat#666, agno#10073: only a retry arrives, and is taken for a duplicate.
func TestARetryThatIsTheOnlyCopyIsTyped(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newEnv(t, withFakeClock, func(s *envOptions) { forward = clockAdvancer(s) })
	a := w.startSession("helper")
	a.replyAccepted("before")
	w.Faults().InjectDelivery("message.channels", 1, localslack.LoseFirst)
	ts := a.reply("at last")
	forward(3 * time.Second)
	a.waitReceipt(ts, receiptAccepted)
	if w.deliveryAttempts(ts, 0) != 0 || w.deliveryAttempts(ts, 1) == 0 {
		t.Error("it was not a retry that arrived: this shows nothing")
	}
	a.wantPaneInput("before", "at last")
}

// slackapi/bolt-python#668, openclaw/openclaw#12957: events come out of order.
func TestEventsThatComeOutOfOrderAreTypedInOrder(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"while they wait": true, "while nothing else is to do": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, withoutRateLimits)
			a := w.startSession("helper")
			a.replyAccepted("before")
			if waits {
				a.startDialog()
			}
			want := a.receivedTexts()
			w.Faults().Shuffle(8)
			var ts []string
			for i := range 8 {
				text := fmt.Sprint("reply ", i)
				want, ts = append(want, text), append(ts, a.reply(text))
			}
			w.waitUntil("all to be sent", func() bool { return w.Pending() == 0 })
			if waits {
				w.waitProcessed()
				a.denyInTerminal()
			}
			for _, ts := range ts {
				a.waitReceipt(ts, receiptAccepted)
			}
			a.wantReceived(want...)
		})
	}
}

// slack-go refuses the whole event, and never acks it.
func TestAnEventThatCannotBeParsedIsTypedAllTheSame(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	for _, f := range []localslack.DeliveryFault{localslack.BadBlocks, localslack.BadText} {
		w.Faults().InjectDelivery("message.channels", 1, f)
		a.replyAccepted(fmt.Sprint("malformed ", f))
	}
	w.waitUntil("all to be acked", func() bool { return w.Pending() == 0 })
	a.wantReceived(fmt.Sprint("malformed ", localslack.BadBlocks), fmt.Sprint("malformed ", localslack.BadText))
}

// openclaw/openclaw#55792, NousResearch/hermes-agent#111945: what no event told of is lost.
func TestAReplyWhoseEventNeverComesIsFound(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	var want []string
	for name, trigger := range map[string]func(){
		"reconnected":      func() { w.Faults().Drop() },
		"refreshed":        func() { w.Disconnect("refresh_requested") },
		"no JSON":          func() { w.Faults().NotJSON() },
		"unknown envelope": func() { w.Faults().UnknownEnvelope() },
		"rate-limited":     func() { w.Faults().AppRateLimited() },
		"empty payload":    func() { w.Faults().EmptyPayload() },
	} {
		w.Faults().InjectDelivery("message.channels", 2, localslack.Suppress)
		lost := []string{a.reply(name + " 1"), a.reply(name + " 2")}
		want = append(want, name+" 1", name+" 2", name+" 3")
		trigger()
		w.waitUntil("a connection", func() bool { return w.Connections() == 1 })
		last := a.reply(name + " 3")
		for _, ts := range append(lost, last) {
			a.waitReceipt(ts, receiptAccepted)
		}
	}
	a.wantReceived(want...)
}

func TestRepliesWrittenWhileTheBotWasDown(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newEnv(t, withFakeClock, func(s *envOptions) { forward = clockAdvancer(s) })
	a := w.startSession("helper")
	a.replyAccepted("before")
	w.stopBot()
	old := []string{a.reply("old 1"), a.reply("old 2")}
	forward(20 * time.Minute)
	young := []string{a.reply("young 1"), a.reply("young 2"), a.reply("young 2")}
	w.startBot()
	for _, ts := range young {
		a.waitReceipt(ts, receiptAccepted)
	}
	a.wantReceived("before", "young 1", "young 2", "young 2")
	offer := a.waitBotMessage("I did not type 2 replies", "too much time has passed")
	for _, ts := range old {
		a.waitReceipt(ts, receiptHeld)
	}
	if err := w.ann.Click(w.ctx, w.ch, offer.TS, chat.ActionSend); err != nil {
		t.Fatal(err)
	}
	for _, ts := range old {
		a.waitReceipt(ts, receiptAccepted)
	}
	a.wantReceived("before", "young 1", "young 2", "young 2", "old 1", "old 2")
	if n := len(a.botMessages()); n != 1 {
		t.Errorf("the thread was told %d things; want the one offer", n)
	}
}

func TestOfferedRepliesThatAreSkippedAreNotTyped(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newEnv(t, withFakeClock, func(s *envOptions) { forward = clockAdvancer(s) })
	a := w.startSession("helper")
	w.stopBot()
	ts := a.reply("old")
	forward(20 * time.Minute)
	w.startBot()
	offer := a.waitBotMessage("I did not type the reply of")
	w.startAndConnect() // what is offered stays offered
	if err := w.ann.Click(w.ctx, w.ch, offer.TS, chat.ActionSkip); err != nil {
		t.Fatal(err)
	}
	w.waitUntil("the receipt to go", func() bool { return len(w.Reactions(w.ch, ts)) == 0 })
	a.replyAccepted("the end")
	a.wantReceived("the end")
	if n := a.countBotMessages("I did not type"); n != 1 {
		t.Errorf("offered %d times", n)
	}
}

// Commands that were given while the bot was away are not run late, and are not talk either.
func TestACommandGivenWhileTheBotWasDownIsNotRunLate(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newEnv(t, withFakeClock, func(s *envOptions) { forward = clockAdvancer(s) })
	a := w.startSession("helper")
	w.stopBot()
	a.reply("@the-loop stop")
	forward(2 * time.Minute)
	w.startBot()
	a.waitBotMessage("I was away when this command came")
	a.replyAccepted("still up?")
	a.wantReceived("still up?")
}

func TestTwoEqualRepliesInARowAreTwo(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	var ts []string
	for range 4 {
		ts = append(ts, a.reply("yes"))
	}
	for _, ts := range ts {
		a.waitReceipt(ts, receiptAccepted)
	}
	a.wantReceived(strings.Split("yes yes yes yes", " ")...)
}
