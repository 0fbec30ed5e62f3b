package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// DeliverRequest asks for one event of a work item to reach its session.
type DeliverRequest struct {
	Ref        Ref
	Text       string        // as written; it is cleaned here
	DeliveryID string        // of the event: it is processed once, however often it comes. Empty: it is like no other
	Wait       time.Duration // how long a dialog, a draft in the box or another verb is waited for
}

// Delivered is what became of an event.
type Delivered struct {
	Row        Row     `json:"session"` // with [OutcomeDelivered], [OutcomeResumed], [OutcomeStarted] or [OutcomeRepeated]
	DeliveryID string  `json:"delivery"`
	Receipt    Receipt `json:"receipt"`
}

// Deliver takes an event of a work item to its session, once for each delivery id, also across processes and crashes: a live
// agent has it typed, one that has ended or never ran is started with it, in its conversation if that can be resumed. Errors
// are those of [Core.Submit], and beside them those of a start: but for [ErrInDoubt] nothing arrived, and the same delivery can
// be tried again. What is in doubt is reported, and not repeated under its id; a retry looks for evidence only.
func (c *Core) Deliver(ctx context.Context, q DeliverRequest) (Delivered, error) {
	if q.DeliveryID == "" {
		q.DeliveryID = newID()
	}
	d := &delivery{c: c, q: q, began: time.Now(), until: time.Now().Add(q.Wait)}
	if err := q.check(); err != nil {
		return Delivered{}, err
	}
	if err := d.run(ctx); err != nil {
		return Delivered{}, fmt.Errorf("delivery %s to %s: %w", q.DeliveryID, q.Ref, err)
	}
	return Delivered{Row: d.row, DeliveryID: q.DeliveryID, Receipt: d.receipt}, nil
}

func (q DeliverRequest) check() error {
	if _, err := ParseWorkItem(string(q.Ref)); err != nil {
		return err
	}
	if !deliveryPattern().MatchString(q.DeliveryID) {
		return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("%q cannot be the id of a delivery", q.DeliveryID),
			Remedy: "use one that matches " + deliveryPattern().String()}
	}
	return nil
}

// delivery is one event on its way.
type delivery struct {
	c       *Core
	q       DeliverRequest
	began   time.Time
	until   time.Time // what passes by itself is waited for
	rec     Record
	harness Harness
	speech  *speech // of an event that was typed
	event   *event  // of one that an agent was started with
	noted   bool    // the ledger has it as ours, in flight
	row     Row
	receipt Receipt // empty: it is still to be proved
}

// errAgain says that something changed meanwhile: how the session is has to be looked at anew.
var errAgain = errors.New("the session changes again and again")

const (
	deliverRounds = 100                    // at most so many looks anew
	deliverEvery  = 200 * time.Millisecond // while something is waited for
	openingTime   = 60 * time.Second       // what an agent's start may take, until its record shows what it was started with
)

func (d *delivery) run(ctx context.Context) error {
	for round := 0; ; round++ {
		err := d.attempt(ctx)
		switch {
		case errors.Is(err, errAgain) && round < deliverRounds:
			continue
		case !passes(err) || time.Now().After(d.patience(err)):
			return err
		}
		timer := time.NewTimer(deliverEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// passes reports whether nothing was typed for a reason that passes by itself.
func passes(err error) bool {
	var held *HeldError
	var locked *LockedError
	return errors.As(err, &held) || errors.As(err, &locked) || errors.Is(err, ErrSilent) && !errors.Is(err, ErrInDoubt)
}

// patience is until when what keeps the event back is waited for. An agent that starts is, whatever the caller asked for.
func (d *delivery) patience(err error) time.Time {
	var held *HeldError
	if errors.As(err, &held) && held.State == ViewStarting {
		return later(d.until, d.began.Add(openingTime))
	}
	return d.until
}

// attempt looks how the session is, does what that asks for, and waits for the proof.
func (d *delivery) attempt(ctx context.Context) error {
	err := d.give(ctx)
	var earlier *unsettledError
	switch {
	case errors.As(err, &earlier):
		return d.settleEarlier(ctx, earlier.entry)
	case err != nil || d.receipt != "":
		return err
	}
	receipt, err := d.proof(ctx)
	d.c.followed(ctx, d.harness, d.rec)
	return d.settle(ctx, receipt, err)
}

// give types the event or starts an agent with it, under the session's lock.
func (d *delivery) give(ctx context.Context) error {
	rec, err := d.c.recorded(ctx, d.q.Ref)
	if err != nil {
		return err
	}
	d.q.Ref = rec.Ref // as it was registered
	release, err := d.c.lockID(ctx, rec.ID, "deliver")
	if err != nil {
		return err
	}
	defer release()
	now, err := d.c.reload(ctx, &rec)
	switch {
	case err != nil:
		return err
	case now.ID != rec.ID:
		return errAgain
	}
	d.rec = *now
	if d.harness, err = d.c.o.Harnesses(d.rec.Definition.Harness); err != nil {
		return &Refusal{Cause: ErrRefused, What: err.Error()}
	}
	if err := d.known(ctx); err != nil || d.receipt != "" {
		return err
	}
	if d.rec.Status == StatusRunning && d.rec.Replaces == 0 { // as a rule it does, and tmux refuses in time when it does not
		err := d.typeIn(ctx, rowOf(d.rec, StateRunning))
		if !errors.Is(err, ErrNotRunning) && (!errors.Is(err, ErrSilent) || errors.Is(err, ErrInDoubt)) {
			return err
		}
	}
	return d.bring(ctx)
}

// bring looks what there is, and does what that asks for.
func (d *delivery) bring(ctx context.Context) error {
	found, err := d.c.occupant(ctx, d.rec)
	own := found.own
	switch {
	case err != nil:
		return err
	case own != nil && d.rec.Replaces != 0:
		return d.finish(ctx)
	case own != nil && !own.Dead:
		row, err := d.c.reported(ctx, d.rec, func() (Row, error) { return d.c.adopt(ctx, d.rec, *own) })
		if err != nil {
			return err
		}
		return d.typeIn(ctx, row)
	}
	return d.start(ctx, found)
}

// finish finishes a restart that was cut short. The event is typed when the agent is up.
func (d *delivery) finish(ctx context.Context) error {
	_, err := d.c.reported(ctx, d.rec, func() (Row, error) { return d.c.start(ctx, d.rec.Definition, d.rec, &d.rec) })
	if err != nil {
		return err
	}
	d.until = later(d.until, time.Now().Add(openingTime))
	return errAgain
}

// typeIn types the event into the live agent, as a reply is. One that has ended was told nothing.
func (d *delivery) typeIn(ctx context.Context, row Row) error {
	if d.row.Outcome == "" { // we did not start it ourselves
		d.row = row
		d.row.Outcome = OutcomeDelivered
	}
	s := &speech{c: d.c, q: SayRequest{Ref: d.q.Ref, ID: d.rec.ID, Text: d.q.Text, Speaker: string(d.q.Ref), Intend: d.intend}}
	err := s.typeLocked(ctx, d.rec.ID)
	switch {
	case errors.Is(err, ErrInDoubt):
		d.speech = s
		return d.settle(ctx, "", err)
	case err != nil:
		err = d.forget(ctx, err)
		if errors.Is(err, ErrNotRunning) {
			return fmt.Errorf("%w: %w", errAgain, err)
		}
		return err
	}
	d.speech, d.rec = s, s.rec
	return nil
}

// start starts an agent with the event. One that takes no first message has it typed when it is up.
func (d *delivery) start(ctx context.Context, found occupancy) error {
	text, err := wording(SayRequest{Text: d.q.Text, Speaker: string(d.q.Ref)}, d.harness.Traits())
	if err != nil {
		return err
	}
	d.noticeEnd(ctx, found.own)
	d.event = &event{text: text, intend: d.intend}
	row, err := d.c.reported(ctx, d.rec, func() (Row, error) {
		row, err := d.c.launch(ctx, d.rec, &d.rec, found, d.event)
		var runs *runsError
		if errors.As(err, &runs) {
			return d.c.adopt(ctx, d.rec, runs.pane)
		}
		return row, err
	})
	switch {
	case errors.Is(err, ErrInDoubt):
		return d.settle(ctx, "", err)
	case err != nil:
		return d.forget(ctx, err)
	case row.Outcome == OutcomeAlreadyRunning: // somebody else's start came first
		return d.forget(ctx, errAgain)
	}
	d.row = row
	if !d.event.given {
		d.until = later(d.until, time.Now().Add(openingTime))
		return errAgain
	}
	if row.State == StateEnded {
		return d.settle(ctx, ReceiptAccepted, nil)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// noticeEnd records that the agent before has ended on its own: nobody may have looked since.
func (d *delivery) noticeEnd(ctx context.Context, own *Pane) {
	if d.rec.Status != StatusRunning {
		return
	}
	detail := "its pane is gone"
	if own != nil {
		detail = "the agent ended, " + own.ending()
	}
	d.c.emit(ctx, EventEnded, slog.LevelWarn, d.rec, map[string]any{"detail": detail, "harness": d.rec.Definition.Harness, "since": d.rec.Changed})
}

// proof waits until the agent's record shows the event.
func (d *delivery) proof(ctx context.Context) (Receipt, error) {
	if d.speech != nil {
		return d.speech.receipt(ctx)
	}
	rec, err := d.c.o.Store.Load(ctx, d.q.Ref)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInDoubt, err)
	}
	d.rec = rec
	w, ok := d.harness.(Witness)
	if !ok || d.event.intent.Place == "" {
		return ReceiptTyped, nil
	}
	taken, err := d.witness(ctx, w, d.event.intent, time.Now().Add(openingTime), nil)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrInDoubt, err)
	case taken:
		return ReceiptAccepted, nil
	}
	return "", fmt.Errorf("%w: the agent was started with it, and its record does not show it", ErrInDoubt)
}

// witness looks at the agent's record until it shows the text, the time is up, or nobody is left who could take it. stop may
// end it too; nil: nothing does.
func (d *delivery) witness(ctx context.Context, w Witness, i Intent, until time.Time, stop func() error) (bool, error) {
	talk := d.rec.Talk()
	talk.ID = i.Conversation
	for pause := lookEvery; ; pause = min(2*pause, lookEveryMax) {
		last := time.Now().After(until) || d.gone(ctx)
		if stop != nil && !last {
			if err := stop(); err != nil {
				return false, err
			}
		}
		if taken, err := w.Taken(ctx, talk, i.Place, i.Sum); err != nil || taken || last {
			return taken, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
}

// gone reports whether the session's agent certainly does not live.
func (d *delivery) gone(ctx context.Context) bool {
	panes, err := d.c.look(ctx, d.rec)
	p, there := paneOf(panes, d.rec.ID)
	return err == nil && (!there || p.Dead)
}
