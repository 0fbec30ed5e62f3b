package socket

import (
	"encoding/json"
	"time"

	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/store"
)

const (
	// AckDeadline is within what an envelope has to be acked.
	AckDeadline = 3 * time.Second
	maxAck      = 20_000 // bytes; Slack silently drops an ack that is larger
)

// RetryDelays are when an event that nobody acked is sent again.
var RetryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}

// Delivery is one envelope on its way, with its retries. The store's Mu guards it.
type Delivery struct {
	Kind           string // events_api, slash_commands, interactive
	Name           string // the event's name as subscribed to
	Inner          json.RawMessage
	Payload        json.RawMessage // of commands and interactions
	EventID        string
	HappenedAt     time.Time
	Channel        *store.ChannelState
	AcceptsPayload bool // accepts_response_payload
	attempt        int
	envelopeID     string   // the last attempt's id
	envelopeIDs    []string // all that were used
	done           bool     // handleAck or given up
	cancelDeadline func()
	onAck          func(payload json.RawMessage) // of commands and interactions
	onFail         func(reason string)
	fault          *faults.ActiveFault
}

// StartDelivery starts a delivery, through the faults that wait for one. The caller holds Mu.
func (w *Hub) StartDelivery(d *Delivery) {
	if d.Kind == "events_api" {
		d.fault = w.Script.TakeDelivery(d.Name)
		if d.fault != nil && d.fault.Kind == faults.Suppress {
			return
		}
		if w.holdForShuffle(d) {
			return
		}
	}
	w.attemptDelivery(d)
}

// attemptDelivery sends an envelope to one of the sockets and waits for its ack. The caller holds Mu.
func (w *Hub) attemptDelivery(d *Delivery) {
	if d.envelopeID == "" || d.attempt > 1 { // Slack repeats the envelope's id at times, and at times makes a new one
		d.envelopeID = slackid.UUID()
	}
	w.trackPending(d, d.envelopeID)
	frames := w.attemptFrames(d)
	sent := false
	for _, data := range frames {
		if c := w.pickConn(); c != nil {
			c.send(data)
			sent = true
		}
	}
	switch {
	case sent || d.fault.DropsAttempt(d.attempt):
		d.cancelDeadline = w.Sched.After(AckDeadline, func() { w.ackTimedOut(d, "timeout") })
	case d.Kind == "events_api":
		w.retryOrGiveUp(d, "no connection")
	default:
		d.cancelDeadline = w.Sched.After(0, func() { w.ackTimedOut(d, "no connection") })
	}
}

// attemptFrames returns the frames of one attempt: none when a fault loses it, two when one doubles it.
func (w *Hub) attemptFrames(d *Delivery) [][]byte {
	if d.fault.DropsAttempt(d.attempt) {
		return nil
	}
	env := store.Object{"envelope_id": d.envelopeID, "type": d.Kind, "accepts_response_payload": d.AcceptsPayload}
	if d.Kind == "events_api" {
		env["payload"] = w.eventPayload(d, d.fault.Corrupt(d.Inner))
		env["retry_attempt"], env["retry_reason"] = d.attempt, ""
		if d.attempt > 0 {
			env["retry_reason"] = "timeout"
		}
	} else {
		env["payload"] = d.Payload
	}
	out := [][]byte{w.EncodeJSON(env)}
	if again, newID := d.fault.Duplicates(); again && d.attempt == 0 {
		if newID {
			id := slackid.UUID()
			w.trackPending(d, id)
			env["envelope_id"] = id
		}
		out = append(out, w.EncodeJSON(env))
	}
	return out
}

func (w *Hub) trackPending(d *Delivery, id string) {
	w.pending[id] = d
	d.envelopeIDs = append(d.envelopeIDs, id)
}

// EncodeJSON writes a frame or a payload as JSON.
func (w *Hub) EncodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		w.Log.Error("a frame cannot be written", "err", err)
	}
	return data
}

// ackTimedOut is the ack deadline.
func (w *Hub) ackTimedOut(d *Delivery, reason string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if !d.done {
		w.retryOrGiveUp(d, reason)
	}
}

// retryOrGiveUp schedules the next attempt of an event, or gives up. The caller holds Mu.
func (w *Hub) retryOrGiveUp(d *Delivery, reason string) {
	w.recordOutcome(d, false)
	if d.Kind != "events_api" || d.attempt >= len(RetryDelays) {
		w.finishDelivery(d)
		if d.onFail != nil {
			d.onFail(reason)
		}
		return
	}
	delay := RetryDelays[d.attempt]
	d.attempt++
	d.cancelDeadline = w.Sched.After(delay, func() {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		if !d.done {
			w.attemptDelivery(d)
		}
	})
}

func (w *Hub) finishDelivery(d *Delivery) {
	d.done = true
	for _, id := range d.envelopeIDs {
		delete(w.pending, id)
	}
	w.Notify()
}

// handleAck settles the delivery that an envelope id belongs to; note says what became of the ack. The caller holds Mu.
func (w *Hub) handleAck(envelope string, payload json.RawMessage) (note string) {
	d := w.pending[envelope]
	switch {
	case d == nil:
		return "ack of nothing that waits"
	case d.envelopeID != envelope && d.attempt > 0:
		return "late ack: sent again already"
	}
	if d.cancelDeadline != nil {
		d.cancelDeadline()
	}
	w.recordOutcome(d, true)
	w.finishDelivery(d)
	if d.onAck != nil {
		d.onAck(payload)
	}
	return "ack"
}

// attempt's outcome, for AutoDisable.
type attemptResult struct {
	at time.Time
	ok bool
}

// recordOutcome counts deliveries of the last hour and turns events off when under 5 % of at least 20 were acked.
func (w *Hub) recordOutcome(d *Delivery, ok bool) {
	if !w.Opts.AutoDisable || d.Kind != "events_api" {
		return
	}
	now := w.Clock.Now()
	w.recentAttempts = append(w.recentAttempts, attemptResult{now, ok})
	for len(w.recentAttempts) > 0 && now.Sub(w.recentAttempts[0].at) > time.Hour {
		w.recentAttempts = w.recentAttempts[1:]
	}
	good := 0
	for _, a := range w.recentAttempts {
		if a.ok {
			good++
		}
	}
	w.EventsOff = len(w.recentAttempts) >= 20 && good*20 < len(w.recentAttempts)
}

// EventsDisabled says whether Slack has turned the app's events off, as it does when nearly nothing is acked.
func (w *Hub) EventsDisabled() bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.EventsOff
}

// EnableEvents is the operator's click on "re-enable" in the app's settings.
func (w *Hub) EnableEvents() {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.EventsOff, w.recentAttempts = false, nil
}

// Pending is how many deliveries are neither acked nor given up, those that wait for a retry included.
func (w *Hub) Pending() int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	n := map[*Delivery]bool{}
	for _, d := range w.pending {
		n[d] = true
	}
	return len(n) + len(w.heldForShuffle)
}

// InjectFrame sends any bytes as a text frame to one of the sockets; it says whether there was one.
func (w *Hub) InjectFrame(frame json.RawMessage) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	c := w.pickConn()
	if c == nil {
		return false
	}
	c.send(frame)
	return true
}

// InjectEvent sends any inner event in a proper envelope, with acks and retries.
func (w *Hub) InjectEvent(inner json.RawMessage) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.StartDelivery(&Delivery{Kind: "events_api", Name: "injected", Inner: inner, EventID: w.NewID("Ev"), HappenedAt: w.Clock.Now()})
}
