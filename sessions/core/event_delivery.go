package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// eventDelivery is one event on its way to a session.
type eventDelivery struct {
	part       *Deliveries
	q          sessions.DeliverRequest
	startedAt  time.Time
	deadline   time.Time // until then a delivery is tried again that failed for a reason that passes by itself
	rec        sessions.Record
	harness    sessions.Harness
	submission *submission   // of an event that was typed
	opening    *openingEvent // of one that an agent was started with
	inLedger   bool          // this process has put it into the ledger, in flight
	row        sessions.Row
	receipt    sessions.Receipt // empty: there is no evidence yet
}

// errStateChanged says that the session changed meanwhile, so that its state must be read again.
var errStateChanged = errors.New("the session changes again and again")

const (
	maxDeliverRounds  = 100                    // how often the state is read again
	deliverRetryEvery = 200 * time.Millisecond // while something is waited for
)

func (d *eventDelivery) run(ctx context.Context) error {
	for round := 0; ; round++ {
		err := d.attempt(ctx)
		switch {
		case errors.Is(err, errStateChanged) && round < maxDeliverRounds:
			continue
		case !sessions.IsTransient(err) || time.Now().After(d.retryDeadline(err)):
			return err
		}
		if !loop.Sleep(ctx, deliverRetryEvery) {
			return err
		}
	}
}

// retryDeadline is until when a delivery that failed with that error is tried again. An agent that is starting is waited for in
// any case.
func (d *eventDelivery) retryDeadline(err error) time.Time {
	var held *sessions.HeldError
	if errors.As(err, &held) && held.State == sessions.ViewStarting {
		return laterOf(d.deadline, d.startedAt.Add(sessions.OpeningTimeout))
	}
	return d.deadline
}

// attempt delivers the event as the session's state requires, and waits for the evidence.
func (d *eventDelivery) attempt(ctx context.Context) error {
	err := d.deliverLocked(ctx)
	var earlier *inFlightError
	switch {
	case errors.As(err, &earlier):
		return d.reconcileEarlier(ctx, earlier.entry)
	case err != nil || d.receipt != "":
		return err
	}
	receipt, err := d.awaitProof(ctx)
	d.part.typist.updateConversation(ctx, d.harness, d.rec)
	return d.recordOutcome(ctx, receipt, err)
}

// deliverLocked types the event, or starts an agent with it, under the session's lock.
func (d *eventDelivery) deliverLocked(ctx context.Context) error {
	rec, err := d.part.records.require(ctx, d.q.Ref)
	if err != nil {
		return err
	}
	d.q.Ref = rec.Ref // as it was registered
	release, err := d.part.records.lockID(ctx, rec.ID, "deliver")
	if err != nil {
		return err
	}
	defer release()
	now, err := d.part.records.reload(ctx, &rec)
	switch {
	case err != nil:
		return err
	case now.ID != rec.ID:
		return errStateChanged
	}
	d.rec = *now
	if d.harness, err = d.part.agents.harness(d.rec.Definition.Harness); err != nil {
		return &sessions.Refusal{Cause: sessions.ErrRefused, What: err.Error()}
	}
	if err := d.checkLedger(ctx); err != nil || d.receipt != "" {
		return err
	}
	if d.rec.Status == sessions.StatusRunning && d.rec.ReplacesPID == 0 { // tmux refuses the paste when the agent has ended
		err := d.typeIn(ctx, sessions.RowOf(d.rec, sessions.StateRunning))
		if !errors.Is(err, sessions.ErrNotRunning) && (!errors.Is(err, sessions.ErrTerminalTimeout) || errors.Is(err, sessions.ErrInDoubt)) {
			return err
		}
	}
	return d.adoptOrStart(ctx)
}

// adoptOrStart adopts the session's pane and types the event there, or starts an agent with it.
func (d *eventDelivery) adoptOrStart(ctx context.Context) error {
	found, err := d.part.panes.findOccupancy(ctx, d.rec)
	own := found.own
	switch {
	case err != nil:
		return err
	case own != nil && d.rec.ReplacesPID != 0:
		return d.finishRestart(ctx)
	case own != nil && !own.Dead:
		row, err := d.part.starter.startAndReport(ctx, d.rec, func() (sessions.Row, error) { return d.part.starter.adopt(ctx, d.rec, *own) })
		if err != nil {
			return err
		}
		return d.typeIn(ctx, row)
	}
	return d.start(ctx, found)
}

// finishRestart finishes an interrupted restart. The event is typed once the agent is up.
func (d *eventDelivery) finishRestart(ctx context.Context) error {
	_, err := d.part.starter.startAndReport(ctx, d.rec, func() (sessions.Row, error) { return d.part.starter.startOrAdopt(ctx, d.rec.Definition, d.rec, &d.rec) })
	if err != nil {
		return err
	}
	d.deadline = laterOf(d.deadline, time.Now().Add(sessions.OpeningTimeout))
	return errStateChanged
}

// typeIn types the event into the running agent, as a reply is typed. If the agent has ended, nothing arrived.
func (d *eventDelivery) typeIn(ctx context.Context, row sessions.Row) error {
	if d.row.Outcome == "" { // it was not started by this delivery
		d.row = row
		d.row.Outcome = sessions.OutcomeDelivered
	}
	s := &submission{typist: d.part.typist, q: sessions.SubmitRequest{Ref: d.q.Ref, ID: d.rec.ID, Text: d.q.Text, Sender: string(d.q.Ref), RecordIntent: d.recordIntent}}
	err := s.typeLocked(ctx, d.rec.ID)
	switch {
	case errors.Is(err, sessions.ErrInDoubt):
		d.submission = s
		return d.recordOutcome(ctx, "", err)
	case err != nil:
		err = d.removeFromLedger(ctx, err)
		if errors.Is(err, sessions.ErrNotRunning) {
			return fmt.Errorf("%w: %w", errStateChanged, err)
		}
		return err
	}
	d.submission, d.rec = s, s.rec
	return nil
}

// start starts an agent with the event. An agent that takes no first message has it typed once it is up.
func (d *eventDelivery) start(ctx context.Context, found occupancy) error {
	text, err := sessions.ComposeText(sessions.SubmitRequest{Text: d.q.Text, Sender: string(d.q.Ref)}, d.harness.Capabilities())
	if err != nil {
		return err
	}
	d.emitEnded(ctx, found.own)
	d.opening = &openingEvent{text: text, recordIntent: d.recordIntent}
	row, err := d.part.starter.startAndReport(ctx, d.rec, func() (sessions.Row, error) {
		row, err := d.part.starter.launch(ctx, d.rec, &d.rec, found, d.opening)
		var runs *alreadyRunningError
		if errors.As(err, &runs) {
			return d.part.starter.adopt(ctx, d.rec, runs.pane)
		}
		return row, err
	})
	switch {
	case errors.Is(err, sessions.ErrInDoubt):
		return d.recordOutcome(ctx, "", err)
	case err != nil:
		return d.removeFromLedger(ctx, err)
	case row.Outcome == sessions.OutcomeAlreadyRunning: // another start came first
		return d.removeFromLedger(ctx, errStateChanged)
	}
	d.row = row
	if !d.opening.inPrompt {
		d.deadline = laterOf(d.deadline, time.Now().Add(sessions.OpeningTimeout))
		return errStateChanged
	}
	if row.State == sessions.StateEnded {
		return d.recordOutcome(ctx, sessions.ReceiptAccepted, nil)
	}
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// emitEnded writes the event that the previous agent ended on its own, which may not have been noticed yet.
func (d *eventDelivery) emitEnded(ctx context.Context, own *sessions.Pane) {
	if d.rec.Status != sessions.StatusRunning {
		return
	}
	detail := "its pane is gone"
	if own != nil {
		detail = "the agent ended, " + own.ExitDescription()
	}
	d.part.events.emit(ctx, sessions.EventEnded, slog.LevelWarn, d.rec, map[string]any{"detail": detail, "harness": d.rec.Definition.Harness, "since": d.rec.Changed})
}

// awaitProof waits until the agent's transcript shows the event.
func (d *eventDelivery) awaitProof(ctx context.Context) (sessions.Receipt, error) {
	if d.submission != nil {
		return d.submission.awaitReceipt(ctx)
	}
	rec, err := d.part.store.Load(ctx, d.q.Ref)
	if err != nil {
		return "", fmt.Errorf("%w: %w", sessions.ErrInDoubt, err)
	}
	d.rec = rec
	w := d.harness.Capabilities().Input
	if w == nil || d.opening.intent.Offset == "" {
		return sessions.ReceiptTyped, nil
	}
	accepted, err := awaitEvidence(ctx, w, d.rec.AgentConversation(), d.opening.intent, time.Now().Add(sessions.OpeningTimeout),
		func() (bool, error) { return d.isAgentGone(ctx), nil })
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", sessions.ErrInDoubt, err)
	case accepted:
		return sessions.ReceiptAccepted, nil
	}
	return "", fmt.Errorf("%w: the agent was started with it, and its record does not show it", sessions.ErrInDoubt)
}

// isAgentGone reports whether the session's agent is known to have ended.
func (d *eventDelivery) isAgentGone(ctx context.Context) bool {
	panes, err := d.part.panes.list(ctx, d.rec)
	p, there := sessions.FindPane(panes, d.rec.ID)
	return err == nil && (!there || p.Dead)
}
