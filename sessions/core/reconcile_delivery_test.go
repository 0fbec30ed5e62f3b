package core_test

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

// addInFlight leaves a delivery in the ledger as a process does that dies over it. Evidence counts from the conversation's
// beginning.
func (w *env) addInFlight(id, text string, at time.Time) {
	w.t.Helper()
	l, err := w.registry.LoadLedger(w.t.Context(), item)
	if err != nil {
		w.t.Fatal(err)
	}
	rec := w.record(item)
	l.Deliveries = append(l.Deliveries, sessions.LedgerEntry{ID: id, State: sessions.DeliveryInFlight, At: at, Session: rec.ID,
		Intent: sessions.Intent{Sum: sessions.Fingerprint(text), Conversation: rec.Conversation, Offset: sessions.Offset(rec.Conversation + "@0")}})
	if err := w.registry.SaveLedger(w.t.Context(), l); err != nil {
		w.t.Fatal(err)
	}
}

// tryDeliver brings a delivery again and returns the error.
func (w *env) tryDeliver(id, text string) (sessions.DeliveryResult, error) {
	w.t.Helper()
	return w.Deliver(w.t.Context(), sessions.DeliverRequest{Ref: item, DeliveryID: id, Text: text})
}

func TestADeliveryLeftByACrashIsReconciledByEvidence(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.submit(item, "arrived")
	w.addInFlight("2", "arrived", time.Now())
	d, err := w.tryDeliver("2", "arrived")
	if err != nil || d.Row.Outcome != sessions.OutcomeRepeated || d.Receipt != sessions.ReceiptAccepted {
		t.Errorf("%+v, %v", d, err)
	}
	if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "arrived"}) {
		t.Errorf("the agent was told %q", said)
	}
}

func TestWhatNobodyCanTellIsReportedAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]bool{"alive": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkItemEnv(t, nil)
			if dead {
				w.killAgent(item)
			}
			w.addInFlight("lost", "an event", time.Now())
			for range 2 {
				if _, err := w.tryDeliver("lost", "an event"); !errors.Is(err, sessions.ErrInDoubt) || !strings.Contains(err.Error(), "under another id") {
					t.Fatal(err)
				}
			}
			rows, err := w.ListFiltered(t.Context(), sessions.ListRequest{Kind: sessions.KindWorkItem})
			if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Detail, "1 in doubt: lost") {
				t.Errorf("%+v, %v", rows, err)
			}
			w.deliver("again", "an event")
			if _, err := w.tryDeliver("lost", "an event"); !errors.Is(err, sessions.ErrInDoubt) {
				t.Errorf("a later equal text was taken for it: %v", err)
			}
			if said := w.transcriptTexts(item, smallagent.TypeUser); !slices.Equal(said, []string{"the first event", "an event"}) {
				t.Errorf("the agent was told %q", said)
			}
			doubted := slices.DeleteFunc(w.events.Names(), func(n string) bool { return n != sessions.EventDeliveryInDoubt })
			if len(doubted) != 1 {
				t.Errorf("reported %d times", len(doubted))
			}
		})
	}
}

func TestADeliveryThatNobodyRetriesIsReportedByTheNextOne(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.addInFlight("old", "an old event", time.Now().Add(-time.Hour))
	w.deliver("2", "an event")
	if e := w.lastEvent(sessions.EventDeliveryInDoubt); e.Fields["delivery"] != "old" {
		t.Errorf("%+v", e)
	}
}

func TestAnEqualTextInFlightIsReconciledFirst(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	w.addInFlight("1", "an event", time.Now())
	w.deliver("2", "an event")
	if e := w.lastEvent(sessions.EventDeliveryInDoubt); e.Fields["delivery"] != "1" {
		t.Errorf("%+v", e)
	}
	w.wantEvents("session.registered", sessions.EventSpawned, sessions.EventDelivered, sessions.EventDeliveryInDoubt, sessions.EventDelivered)
}

func TestTheLastDeliveriesAreKnownAgain(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	l, err := w.registry.LoadLedger(t.Context(), item)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sessions.MaxLedgerEntries {
		l.Deliveries = append(l.Deliveries, sessions.LedgerEntry{ID: fmt.Sprint("old-", i), State: sessions.DeliveryDone, Receipt: sessions.ReceiptAccepted})
	}
	if err := w.registry.SaveLedger(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if d := w.deliver("new", "an event"); d.Row.Outcome != sessions.OutcomeDelivered {
		t.Errorf("%+v", d)
	}
	for _, id := range []string{"new", "old-1", fmt.Sprint("old-", sessions.MaxLedgerEntries-1)} {
		if d := w.deliver(id, "an event"); d.Row.Outcome != sessions.OutcomeRepeated {
			t.Errorf("%s: %+v", id, d)
		}
	}
	if l, err = w.registry.LoadLedger(t.Context(), item); err != nil || len(l.Deliveries) != sessions.MaxLedgerEntries {
		t.Errorf("%d are kept, %v", len(l.Deliveries), err)
	}
}

func TestADeliveryIDThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil)
	for _, id := range []string{"-x", "a b", "a\nb", strings.Repeat("a", 129), "é"} {
		_, err := w.tryDeliver(id, "x")
		w.wantRefusal(err, sessions.ErrRefused, "cannot be the id of a delivery")
	}
}
