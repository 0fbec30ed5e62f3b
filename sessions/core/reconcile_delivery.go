package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// inFlightError names a delivery that is in flight, or was when its process died.
type inFlightError struct{ entry sessions.LedgerEntry }

func (e *inFlightError) Error() string { return "delivery " + e.entry.ID + " is in flight" }

// checkLedger checks whether the ledger has the delivery already. Deliveries that were abandoned by a process that died are
// reconciled first, so that they are reported.
func (d *eventDelivery) checkLedger(ctx context.Context) error {
	l, err := d.part.store.LoadLedger(ctx, d.q.Ref)
	if err != nil {
		return fmt.Errorf("read the deliveries to %s: %w", d.q.Ref, err)
	}
	for _, e := range l.Deliveries {
		if e.IsAbandoned() || e.State == sessions.DeliveryInFlight && e.ID == d.q.DeliveryID {
			return &inFlightError{e}
		}
	}
	e, at := l.Find(d.q.DeliveryID)
	switch {
	case at < 0:
		return nil
	case e.State == sessions.DeliveryDone:
		return d.reportRepeated(ctx, e)
	case at == len(l.Deliveries)-1: // no later delivery could be mistaken for it
		return &inFlightError{e}
	}
	return e.InDoubtError()
}

// reportRepeated fills in the result of a delivery that was processed before.
func (d *eventDelivery) reportRepeated(ctx context.Context, e sessions.LedgerEntry) error {
	panes, err := d.part.panes.list(ctx, d.rec)
	if err != nil && !errors.Is(err, sessions.ErrTerminalTimeout) {
		return err
	}
	p, there := sessions.FindPane(panes, d.rec.ID)
	d.row = sessions.RowOf(d.rec, sessions.StateOf(d.rec, p, there, err != nil))
	d.row.Outcome, d.receipt = sessions.OutcomeRepeated, e.Receipt
	d.part.events.emit(ctx, sessions.EventDeliveryRepeated, slog.LevelInfo, d.rec, map[string]any{"delivery": e.ID})
	return nil
}

// recordIntent records in the ledger that the event is about to go to the agent. An equal text in flight is reconciled first,
// since the two could not be told apart.
func (d *eventDelivery) recordIntent(ctx context.Context, i sessions.Intent) error {
	err := d.part.updateLedger(ctx, d.q.Ref, func(l *sessions.Ledger) error {
		for _, e := range l.Deliveries {
			if own := e.ID == d.q.DeliveryID; own && !d.inLedger || !own && e.State == sessions.DeliveryInFlight && e.Intent.Sum == i.Sum {
				return &inFlightError{e}
			}
		}
		l.Put(sessions.LedgerEntry{ID: d.q.DeliveryID, State: sessions.DeliveryInFlight, At: d.part.now(), Session: d.rec.ID, Intent: i,
			InPrompt: d.opening != nil && d.opening.inPrompt})
		return nil
	})
	d.inLedger = d.inLedger || err == nil
	return err
}

// removeFromLedger removes the delivery from the ledger after an error that means that nothing arrived.
func (d *eventDelivery) removeFromLedger(ctx context.Context, why error) error {
	if !d.inLedger {
		return why
	}
	err := d.part.updateLedger(context.WithoutCancel(ctx), d.q.Ref, func(l *sessions.Ledger) error { l.Remove(d.q.DeliveryID); return nil })
	if err != nil {
		return errors.Join(why, err)
	}
	d.inLedger = false
	return why
}

// recordOutcome records the outcome of the delivery. One whose caller went away stays in flight, until the next one looks for
// evidence.
func (d *eventDelivery) recordOutcome(ctx context.Context, r sessions.Receipt, why error) error {
	if why != nil && (ctx.Err() != nil || !errors.Is(why, sessions.ErrInDoubt)) {
		return why
	}
	e := sessions.LedgerEntry{ID: d.q.DeliveryID, State: sessions.DeliveryDone, Receipt: r, At: d.part.now(), Session: d.rec.ID}
	if why != nil {
		e.State, e.Intent = sessions.DeliveryInDoubt, d.intent()
	}
	d.persistEntry(ctx, e, why)
	d.receipt = r
	return why
}

func (d *eventDelivery) intent() sessions.Intent {
	if d.submission != nil {
		return d.submission.intent
	}
	if d.opening != nil {
		return d.opening.intent
	}
	return sessions.Intent{}
}

// persistEntry writes the entry to the ledger and to the event log. When the ledger cannot be written, the delivery stays in
// flight and is reconciled when it comes again.
func (d *eventDelivery) persistEntry(ctx context.Context, e sessions.LedgerEntry, why error) {
	ctx = context.WithoutCancel(ctx)
	if err := d.part.updateLedger(ctx, d.q.Ref, func(l *sessions.Ledger) error { l.Put(e); return nil }); err != nil {
		d.part.log.Error("the outcome of a delivery could not be recorded", "ref", d.q.Ref, "delivery", e.ID, "err", err)
	}
	if why != nil {
		d.part.events.emit(ctx, sessions.EventDeliveryInDoubt, slog.LevelWarn, d.rec, map[string]any{"delivery": e.ID, "reason": why.Error()})
		return
	}
	d.part.events.emit(ctx, sessions.EventDelivered, slog.LevelInfo, d.rec, map[string]any{"delivery": e.ID, "receipt": e.Receipt, "outcome": d.row.Outcome})
}

// reconcileEarlier finds out what became of a delivery, this one or another, that was in flight already.
func (d *eventDelivery) reconcileEarlier(ctx context.Context, e sessions.LedgerEntry) error {
	accepted, err := d.findEvidence(ctx, e)
	if err != nil {
		return err
	}
	ours := e.ID == d.q.DeliveryID
	doubt, was := e.InDoubtError(), e.State
	switch {
	case accepted:
		e.State, e.Receipt, e.Intent, e.InPrompt, doubt = sessions.DeliveryDone, sessions.ReceiptAccepted, sessions.Intent{}, false, nil
	default:
		e.State = sessions.DeliveryInDoubt
	}
	if e.State != was {
		d.persistEntry(ctx, e, doubt)
	}
	switch {
	case !ours:
		return errStateChanged
	case doubt != nil:
		return doubt
	}
	return d.reportRepeated(ctx, e)
}

// findEvidence reports whether the agent's transcript shows a delivery. While another process may still work on it, it waits; it
// ends with errStateChanged when that process has recorded the outcome.
func (d *eventDelivery) findEvidence(ctx context.Context, e sessions.LedgerEntry) (bool, error) {
	w := d.harness.Capabilities().Input
	if w == nil || e.Session != d.rec.ID || e.Intent.Offset == "" {
		return false, nil
	}
	until := e.At
	if e.State == sessions.DeliveryInFlight {
		until = e.At.Add(d.proofTimeout(e))
	}
	return awaitEvidence(ctx, w, d.rec.AgentConversation(), e.Intent, until, func() (bool, error) {
		if d.isAgentGone(ctx) {
			return true, nil
		}
		return false, d.checkUnchanged(ctx, e)
	})
}

// proofTimeout is how long the process that made a delivery waits for its evidence, at most.
func (d *eventDelivery) proofTimeout(e sessions.LedgerEntry) time.Duration {
	if e.InPrompt {
		return sessions.OpeningTimeout
	}
	return (maxSubmitRetries + 1) * d.harness.Capabilities().EvidenceTimeout()
}

func (d *eventDelivery) checkUnchanged(ctx context.Context, e sessions.LedgerEntry) error {
	l, err := d.part.store.LoadLedger(ctx, d.q.Ref)
	if err != nil {
		return err
	}
	if now, at := l.Find(e.ID); at < 0 || now.State != e.State || !now.At.Equal(e.At) {
		return errStateChanged
	}
	return nil
}
