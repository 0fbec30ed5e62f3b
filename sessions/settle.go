package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// unsettledError names a delivery that is in flight, or was when its process died.
type unsettledError struct{ entry Entry }

func (e *unsettledError) Error() string { return "delivery " + e.entry.ID + " is in flight" }

// known looks what the ledger has of the delivery. Others that a process left in flight that died are settled first, so that
// somebody hears of them.
func (d *delivery) known(ctx context.Context) error {
	l, err := d.c.o.Store.LoadLedger(ctx, d.q.Ref)
	if err != nil {
		return fmt.Errorf("read the deliveries to %s: %w", d.q.Ref, err)
	}
	for _, e := range l.Deliveries {
		if e.abandoned() || e.State == EntryInflight && e.ID == d.q.DeliveryID {
			return &unsettledError{e}
		}
	}
	e, at := l.find(d.q.DeliveryID)
	switch {
	case at < 0:
		return nil
	case e.State == EntryDone:
		return d.repeated(ctx, e)
	case at == len(l.Deliveries)-1: // nothing was typed since that could be taken for it
		return &unsettledError{e}
	}
	return doubtOf(e)
}

func doubtOf(e Entry) error {
	return fmt.Errorf("%w: it was given to the session at %s, and the agent's record does not show it; "+
		"to have it typed all the same deliver it under another id", ErrInDoubt, e.At.Format(time.RFC3339))
}

// repeated answers for a delivery that was processed before.
func (d *delivery) repeated(ctx context.Context, e Entry) error {
	panes, err := d.c.look(ctx, d.rec)
	if err != nil && !errors.Is(err, ErrSilent) {
		return err
	}
	p, there := paneOf(panes, d.rec.ID)
	d.row = rowOf(d.rec, stateOf(d.rec, p, there, err != nil))
	d.row.Outcome, d.receipt = OutcomeRepeated, e.Receipt
	d.c.emit(ctx, EventRepeated, slog.LevelInfo, d.rec, map[string]any{"delivery": e.ID})
	return nil
}

// intend notes that the event is about to go to the agent. An equal text that is in flight is settled first: it could not be
// told from this one.
func (d *delivery) intend(ctx context.Context, i Intent) error {
	err := d.c.ledger(ctx, d.q.Ref, func(l *Ledger) error {
		for _, e := range l.Deliveries {
			if own := e.ID == d.q.DeliveryID; own && !d.noted || !own && e.State == EntryInflight && e.Intent.Sum == i.Sum {
				return &unsettledError{e}
			}
		}
		l.put(Entry{ID: d.q.DeliveryID, State: EntryInflight, At: d.c.o.Now(), Session: d.rec.ID, Intent: i,
			Opening: d.event != nil && d.event.given})
		return nil
	})
	d.noted = d.noted || err == nil
	return err
}

// forget takes the delivery out of the ledger again, since for the reason that is given nothing arrived.
func (d *delivery) forget(ctx context.Context, why error) error {
	if !d.noted {
		return why
	}
	err := d.c.ledger(context.WithoutCancel(ctx), d.q.Ref, func(l *Ledger) error { l.remove(d.q.DeliveryID); return nil })
	if err != nil {
		return errors.Join(why, err)
	}
	d.noted = false
	return why
}

// settle notes what became of the delivery. One whose caller went away stays in flight: whoever comes next looks for evidence.
func (d *delivery) settle(ctx context.Context, r Receipt, why error) error {
	if why != nil && (ctx.Err() != nil || !errors.Is(why, ErrInDoubt)) {
		return why
	}
	e := Entry{ID: d.q.DeliveryID, State: EntryDone, Receipt: r, At: d.c.o.Now(), Session: d.rec.ID}
	if why != nil {
		e.State, e.Intent = EntryDoubt, d.intent()
	}
	d.note(ctx, e, why)
	d.receipt = r
	return why
}

func (d *delivery) intent() Intent {
	if d.speech != nil {
		return d.speech.intent
	}
	if d.event != nil {
		return d.event.intent
	}
	return Intent{}
}

// note writes how far a delivery is into the ledger and the event log. Where the ledger cannot be written it stays in flight,
// and is settled by evidence when it comes again.
func (d *delivery) note(ctx context.Context, e Entry, why error) {
	ctx = context.WithoutCancel(ctx)
	if err := d.c.ledger(ctx, d.q.Ref, func(l *Ledger) error { l.put(e); return nil }); err != nil {
		d.c.o.Log.Error("what became of a delivery could not be noted", "ref", d.q.Ref, "delivery", e.ID, "err", err)
	}
	if why != nil {
		d.c.emit(ctx, EventDoubted, slog.LevelWarn, d.rec, map[string]any{"delivery": e.ID, "reason": why.Error()})
		return
	}
	d.c.emit(ctx, EventDelivered, slog.LevelInfo, d.rec, map[string]any{"delivery": e.ID, "receipt": e.Receipt, "outcome": d.row.Outcome})
}

// settleEarlier finds out what became of a delivery that was in flight when we came, of ours or of another one.
func (d *delivery) settleEarlier(ctx context.Context, e Entry) error {
	taken, err := d.evidence(ctx, e)
	if err != nil {
		return err
	}
	ours := e.ID == d.q.DeliveryID
	doubt, was := doubtOf(e), e.State
	switch {
	case taken:
		e.State, e.Receipt, e.Intent, e.Opening, doubt = EntryDone, ReceiptAccepted, Intent{}, false, nil
	default:
		e.State = EntryDoubt
	}
	if e.State != was {
		d.note(ctx, e, doubt)
	}
	switch {
	case !ours:
		return errAgain
	case doubt != nil:
		return doubt
	}
	return d.repeated(ctx, e)
}

// evidence looks whether the agent's record shows a delivery: for a while when whoever gave it may still be at it. It ends
// with errAgain when they have settled it meanwhile.
func (d *delivery) evidence(ctx context.Context, e Entry) (bool, error) {
	w, ok := d.harness.(Witness)
	if !ok || e.Session != d.rec.ID || e.Intent.Place == "" {
		return false, nil
	}
	until := e.At
	if e.State == EntryInflight {
		until = e.At.Add(d.proofTime(e))
	}
	return d.witness(ctx, w, e.Intent, until, func() error { return d.unchanged(ctx, e) })
}

// proofTime is how long whoever brought a delivery waits for its evidence, at most.
func (d *delivery) proofTime(e Entry) time.Duration {
	t := d.harness.Traits().AcceptTimeout
	if t == 0 {
		t = DefaultAcceptTimeout
	}
	if e.Opening {
		return openingTime
	}
	return (submits + 1) * t
}

func (d *delivery) unchanged(ctx context.Context, e Entry) error {
	l, err := d.c.o.Store.LoadLedger(ctx, d.q.Ref)
	if err != nil {
		return err
	}
	if now, at := l.find(e.ID); at < 0 || now.State != e.State || !now.At.Equal(e.At) {
		return errAgain
	}
	return nil
}
