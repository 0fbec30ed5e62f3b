package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// Deliveries has the verbs that bring events to the sessions of work items.
type Deliveries struct {
	records *records
	panes   *panes
	agents  *agents
	events  *events
	starter *starter
	typist  *typist
	store   sessions.Store
	now     func() time.Time
	log     *slog.Logger
}

// Intake delivers the events of a source one after the other, until the source or ctx ends. An event that cannot be delivered
// does not stop the next ones.
func (ds *Deliveries) Intake(ctx context.Context, q sessions.IntakeRequest) error {
	for {
		e, err := q.Source.NextEvent(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("take in events: %w", err)
		}
		d, err := ds.Deliver(ctx, sessions.DeliverRequest{Ref: e.Ref, DeliveryID: e.ID, Text: e.Text, Wait: q.Wait})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := q.OnResult(e, d, err); err != nil {
			return err
		}
	}
}

// Deliver brings an event of a work item to its session, exactly once for each delivery id, also across processes and crashes. It
// is typed into an agent that runs; an agent that has ended or never ran is started with it, in its conversation if that can be
// resumed. The errors are those of [Input.Submit] and of a start. After [sessions.ErrInDoubt] the event may have arrived: a retry
// under the same id only looks for evidence. After any other error nothing arrived, and the same delivery can be tried again.
func (ds *Deliveries) Deliver(ctx context.Context, q sessions.DeliverRequest) (sessions.DeliveryResult, error) {
	if q.DeliveryID == "" {
		q.DeliveryID = newID()
	}
	d := &eventDelivery{part: ds, q: q, startedAt: time.Now(), deadline: time.Now().Add(q.Wait)}
	if err := q.Validate(); err != nil {
		return sessions.DeliveryResult{}, err
	}
	if err := d.run(ctx); err != nil {
		return sessions.DeliveryResult{}, fmt.Errorf("delivery %s to %s: %w", q.DeliveryID, q.Ref, err)
	}
	return sessions.DeliveryResult{Row: d.row, DeliveryID: q.DeliveryID, Receipt: d.receipt}, nil
}

// updateLedger changes the ledger of a work item under its lock. When change fails nothing is written.
func (ds *Deliveries) updateLedger(ctx context.Context, ref sessions.Ref, change func(*sessions.Ledger) error) error {
	release, err := ds.store.Lock(ctx, sessions.LedgerLockKey(ref), "record a delivery")
	if err != nil {
		return err
	}
	defer release()
	l, err := ds.store.LoadLedger(ctx, ref)
	if err != nil {
		return fmt.Errorf("read the deliveries to %s: %w", ref, err)
	}
	if err := change(&l); err != nil {
		return err
	}
	if err := ds.store.SaveLedger(ctx, l); err != nil {
		return fmt.Errorf("record a delivery to %s: %w", ref, err)
	}
	return nil
}
