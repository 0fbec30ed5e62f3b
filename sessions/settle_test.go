package sessions_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
)

// inflight leaves a delivery in the ledger as a process does that dies over it. Evidence counts from the conversation's
// beginning.
func (w *world) inflight(id, text string, at time.Time) {
	w.t.Helper()
	l, err := w.registry.LoadLedger(w.t.Context(), item)
	if err != nil {
		w.t.Fatal(err)
	}
	rec := w.record(item)
	l.Deliveries = append(l.Deliveries, sessions.Entry{ID: id, State: sessions.EntryInflight, At: at, Session: rec.ID,
		Intent: sessions.Intent{Sum: sessions.Fingerprint(text), Conversation: rec.Conversation, Place: rec.Conversation + "@0"}})
	if err := w.registry.SaveLedger(w.t.Context(), l); err != nil {
		w.t.Fatal(err)
	}
}

// redeliver brings a delivery again and returns the error.
func (w *world) redeliver(id, text string) (sessions.Delivered, error) {
	w.t.Helper()
	return w.Deliver(w.t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: id, Text: text})
}

func TestADeliveryThatACrashLeftIsSettledByEvidence(t *testing.T) {
	t.Parallel()
	w := newItem(t, nil)
	w.say(item, "arrived")
	w.inflight("2", "arrived", time.Now())
	d, err := w.redeliver("2", "arrived")
	if err != nil || d.Row.Outcome != sessions.OutcomeRepeated || d.Receipt != sessions.ReceiptAccepted {
		t.Errorf("%+v, %v", d, err)
	}
	if said := w.said(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "arrived"}) {
		t.Errorf("the agent was told %q", said)
	}
}

func TestWhatNobodyCanTellIsReportedAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]bool{"alive": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newItem(t, nil)
			if dead {
				w.kill(item)
			}
			w.inflight("lost", "an event", time.Now())
			for range 2 {
				if _, err := w.redeliver("lost", "an event"); !errors.Is(err, sessions.ErrInDoubt) || !strings.Contains(err.Error(), "under another id") {
					t.Fatal(err)
				}
			}
			rows, err := w.Some(t.Context(), sessions.ListRequest{Kind: sessions.KindWorkItem})
			if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Detail, "1 in doubt: lost") {
				t.Errorf("%+v, %v", rows, err)
			}
			w.deliver("again", "an event")
			if _, err := w.redeliver("lost", "an event"); !errors.Is(err, sessions.ErrInDoubt) {
				t.Errorf("a later equal text was taken for it: %v", err)
			}
			if said := w.said(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "an event"}) {
				t.Errorf("the agent was told %q", said)
			}
			doubted := slices.DeleteFunc(w.events.Names(), func(n string) bool { return n != sessions.EventDoubted })
			if len(doubted) != 1 {
				t.Errorf("reported %d times", len(doubted))
			}
		})
	}
}

func TestADeliveryThatNobodyBringsAgainIsReportedByTheNextOne(t *testing.T) {
	t.Parallel()
	w := newItem(t, nil)
	w.inflight("old", "an old event", time.Now().Add(-time.Hour))
	w.deliver("2", "an event")
	if e := w.event(sessions.EventDoubted); e.Fields["delivery"] != "old" {
		t.Errorf("%+v", e)
	}
}

func TestAnEqualTextInFlightIsSettledFirst(t *testing.T) {
	t.Parallel()
	w := newItem(t, nil)
	w.inflight("1", "an event", time.Now())
	w.deliver("2", "an event")
	if e := w.event(sessions.EventDoubted); e.Fields["delivery"] != "1" {
		t.Errorf("%+v", e)
	}
	w.emitted("session.registered", sessions.EventSpawned, sessions.EventDelivered, sessions.EventDoubted, sessions.EventDelivered)
}

func TestTheLastDeliveriesAreKnownAgain(t *testing.T) {
	t.Parallel()
	w := newItem(t, nil)
	l, err := w.registry.LoadLedger(t.Context(), item)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sessions.Remembered {
		l.Deliveries = append(l.Deliveries, sessions.Entry{ID: fmt.Sprint("old-", i), State: sessions.EntryDone, Receipt: sessions.ReceiptAccepted})
	}
	if err := w.registry.SaveLedger(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if d := w.deliver("new", "an event"); d.Row.Outcome != sessions.OutcomeDelivered {
		t.Errorf("%+v", d)
	}
	for _, id := range []string{"new", "old-1", fmt.Sprint("old-", sessions.Remembered-1)} {
		if d := w.deliver(id, "an event"); d.Row.Outcome != sessions.OutcomeRepeated {
			t.Errorf("%s: %+v", id, d)
		}
	}
	if l, err = w.registry.LoadLedger(t.Context(), item); err != nil || len(l.Deliveries) != sessions.Remembered {
		t.Errorf("%d are kept, %v", len(l.Deliveries), err)
	}
}

func TestADeliveryIDThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, id := range []string{"-x", "a b", "a\nb", strings.Repeat("a", 129), "é"} {
		_, err := w.redeliver(id, "x")
		w.refused(err, sessions.ErrRefused, "cannot be the id of a delivery")
	}
}
