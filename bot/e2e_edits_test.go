package bot_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions/harness/smallagent"
)

// Slack sends the first event of a message again after its edit and after its deletion, and may deliver the deletion first.
func TestWhatSlackSendsAgainUndoesNoEditAndNoDeletion(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withoutRateLimits)
	a := w.startSession("helper")
	a.startDialog()
	changed, taken := a.reply("old"), a.reply("take it back")
	a.waitReceipt(taken, receiptReceived)
	w.Faults().InjectDelivery("message.channels", 1, localslack.Suppress)
	unheard := a.reply("never heard of")
	for _, err := range []error{w.ann.Edit(w.ch, changed, "new"), w.ann.Delete(w.ch, taken), w.ann.Delete(w.ch, unheard)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.waitUntil("the acks", func() bool { return w.Pending() == 0 })
	for attempt, ts := range []string{changed, taken, unheard} {
		if !w.Faults().Redeliver(w.ch, ts, 1+attempt) {
			t.Fatalf("there is no event of %s", ts)
		}
	}
	last := a.reply("last")
	a.waitState(smallagent.StateAsking)
	a.denyInTerminal()
	a.waitReceipt(changed, receiptAccepted)
	a.waitReceipt(last, receiptAccepted)
	a.wantReceived("ask: deploy", "new", "last")
}

// shiftedClock is a clock that somebody sets: what Slack's says, seen from a machine whose own clock is set the other way.
type shiftedClock struct {
	localslack.Clock
	offset atomic.Int64
}

func (c *shiftedClock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *shiftedClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// The clock of this machine is wrong, and is set while the bot runs: live replies are typed all the same.
func TestLiveRepliesAreTypedWhateverTheTwoClocksSay(t *testing.T) {
	t.Parallel()
	clock := &shiftedClock{}
	clock.offset.Store(int64(-20 * time.Minute))
	w := newEnv(t, withoutRateLimits, func(s *envOptions) { s.workspace.Clock = clock })
	a := w.startSession("helper")
	var want []string
	for i, by := range []time.Duration{-20 * time.Minute, 20 * time.Minute, -40 * time.Minute, 26 * time.Hour, 0} {
		clock.offset.Store(int64(by))
		text := fmt.Sprint("reply ", i)
		a.replyAccepted(text)
		want = append(want, text)
	}
	a.wantReceived(want...)
	if n := a.countBotMessages("I did not type"); n != 0 {
		t.Errorf("%d offers", n)
	}
}
