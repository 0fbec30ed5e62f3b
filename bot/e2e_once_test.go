package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/threads/chat"
)

// clocked gives the workspace a clock that the test moves.
func clocked(s *setup) {
	s.workspace.Clock, s.workspace.RateLimits = localslack.NewFakeClock(time.Now()), localslack.RateLimitsOff
}

// advance moves the workspace's clock.
func advance(s *setup) func(time.Duration) { return s.workspace.Clock.(*localslack.FakeClock).Advance }

// attempts is how many frames went out for a message with that retry_attempt.
func (w *world) attempts(ts string, n int) int {
	count := 0
	for _, f := range w.Frames() {
		if f.Dir == "out" && contains(string(f.Data), `"event_ts":"`+ts+`"`, fmt.Sprintf(`"retry_attempt":%d`, n)) {
			count++
		}
	}
	return count
}

// slackapi/bolt-js#2487: the same envelope twice. gugu91/pinet#226: a new envelope with the same event. chenhg5/cc-connect#1822:
// a mention comes as message and as app_mention.
func TestDuplicatesAreTypedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	for _, c := range []struct {
		name  string
		fault func()
	}{
		{"same envelope", func() { w.Faults().InjectDelivery("message.channels", 1, localslack.Duplicate) }},
		{"new envelope", func() { w.Faults().InjectDelivery("message.channels", 1, localslack.DuplicateNewEnvelope) }},
		{"and a mention, @the-loop", func() {}},
	} {
		c.fault()
		a.tells(c.name)
	}
	a.tells("the end")
	w.passed()
	a.wants("same envelope", "new envelope", "and a mention, @the-loop", "the end")
}

// chenhg5/cc-connect#364: the event is sent again long after it was handled.
func TestLateRetriesAreTypedOnce(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newWorld(t, clocked, func(s *setup) { forward = advance(s) })
	a := w.agent("helper")
	w.Faults().IgnoreAcks(-1)
	ts := a.tells("only once")
	for n := 1; n <= 3; n++ { // at once, after a minute and after five, each when no ack has come for 3 s
		w.until(fmt.Sprintf("retry %d", n), func() bool {
			forward(10 * time.Second)
			return w.attempts(ts, n) == 1
		})
	}
	w.Faults().Clear()
	w.back()
	if !w.Faults().Redeliver(w.ch, ts, 3) {
		t.Fatal("there is no such event")
	}
	w.passed()
	a.tells("the end")
	a.wants("only once", "the end")
}

// vercel/chat#666, agno#10073: only a retry arrives, and is taken for a duplicate.
func TestARetryThatIsTheOnlyCopyIsTyped(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newWorld(t, clocked, func(s *setup) { forward = advance(s) })
	a := w.agent("helper")
	a.tells("before")
	w.Faults().InjectDelivery("message.channels", 1, localslack.LoseFirst)
	ts := a.reply("at last")
	forward(3 * time.Second)
	a.receipt(ts, accepted)
	if w.attempts(ts, 0) != 0 || w.attempts(ts, 1) == 0 {
		t.Error("it was not a retry that arrived: this shows nothing")
	}
	a.wantsBytes("before", "at last")
}

// slackapi/bolt-python#668, openclaw/openclaw#12957: events come out of order.
func TestEventsThatComeOutOfOrderAreTypedInOrder(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"while they wait": true, "while nothing else is to do": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bulk)
			a := w.agent("helper")
			a.tells("before")
			if waits {
				a.asking()
			}
			want := a.got()
			w.Faults().Shuffle(8)
			var ts []string
			for i := range 8 {
				text := fmt.Sprint("reply ", i)
				want, ts = append(want, text), append(ts, a.reply(text))
			}
			w.until("all to be sent", func() bool { return w.Pending() == 0 })
			if waits {
				w.passed()
				a.deny()
			}
			for _, ts := range ts {
				a.receipt(ts, accepted)
			}
			a.wants(want...)
		})
	}
}

// slack-go refuses the whole event, and never acks it.
func TestAnEventThatCannotBeParsedIsTypedAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	for _, f := range []localslack.DeliveryFault{localslack.BadBlocks, localslack.BadText} {
		w.Faults().InjectDelivery("message.channels", 1, f)
		a.tells(fmt.Sprint("malformed ", f))
	}
	w.until("all to be acked", func() bool { return w.Pending() == 0 })
	a.wants(fmt.Sprint("malformed ", localslack.BadBlocks), fmt.Sprint("malformed ", localslack.BadText))
}

// openclaw/openclaw#55792, NousResearch/hermes-agent#111945: what no event told of is lost.
func TestAReplyWhoseEventNeverComesIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
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
		w.until("a connection", func() bool { return w.Connections() == 1 })
		last := a.reply(name + " 3")
		for _, ts := range append(lost, last) {
			a.receipt(ts, accepted)
		}
	}
	a.wants(want...)
}

func TestRepliesWrittenWhileTheBotWasDown(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newWorld(t, clocked, func(s *setup) { forward = advance(s) })
	a := w.agent("helper")
	a.tells("before")
	w.stop()
	old := []string{a.reply("old 1"), a.reply("old 2")}
	forward(20 * time.Minute)
	young := []string{a.reply("young 1"), a.reply("young 2"), a.reply("young 2")}
	w.start()
	for _, ts := range young {
		a.receipt(ts, accepted)
	}
	a.wants("before", "young 1", "young 2", "young 2")
	offer := a.answer("I did not type 2 replies", "too much time has passed")
	for _, ts := range old {
		a.receipt(ts, held)
	}
	if err := w.ann.Click(w.ctx, w.ch, offer.TS, chat.ActionSend); err != nil {
		t.Fatal(err)
	}
	for _, ts := range old {
		a.receipt(ts, accepted)
	}
	a.wants("before", "young 1", "young 2", "young 2", "old 1", "old 2")
	if n := len(a.answers()); n != 1 {
		t.Errorf("the thread was told %d things; want the one offer", n)
	}
}

func TestOfferedRepliesThatAreSkippedAreNotTyped(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newWorld(t, clocked, func(s *setup) { forward = advance(s) })
	a := w.agent("helper")
	w.stop()
	ts := a.reply("old")
	forward(20 * time.Minute)
	w.start()
	offer := a.answer("I did not type the reply of")
	w.back() // what is offered stays offered
	if err := w.ann.Click(w.ctx, w.ch, offer.TS, chat.ActionSkip); err != nil {
		t.Fatal(err)
	}
	w.until("the receipt to go", func() bool { return len(w.Reactions(w.ch, ts)) == 0 })
	a.tells("the end")
	a.wants("the end")
	if n := a.count("I did not type"); n != 1 {
		t.Errorf("offered %d times", n)
	}
}

// Commands that were given while the bot was away are not run late, and are not talk either.
func TestACommandGivenWhileTheBotWasDownIsNotRunLate(t *testing.T) {
	t.Parallel()
	var forward func(time.Duration)
	w := newWorld(t, clocked, func(s *setup) { forward = advance(s) })
	a := w.agent("helper")
	w.stop()
	a.reply("@the-loop stop")
	forward(2 * time.Minute)
	w.start()
	a.answer("I was away when this command came")
	a.tells("still up?")
	a.wants("still up?")
}

func TestTwoEqualRepliesInARowAreTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bulk)
	a := w.agent("helper")
	var ts []string
	for range 4 {
		ts = append(ts, a.reply("yes"))
	}
	for _, ts := range ts {
		a.receipt(ts, accepted)
	}
	a.wants(strings.Split("yes yes yes yes", " ")...)
}
