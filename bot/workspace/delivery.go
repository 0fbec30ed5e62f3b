package workspace

import (
	"encoding/json"
	"time"
)

const (
	ackDeadline = 3 * time.Second
	maxAck      = 20_000 // bytes; Slack silently drops an ack that is larger
)

// retryDelays are when an event that nobody acked is sent again.
var retryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}

// delivery is one envelope on its way, with its retries. The workspace's mu guards it.
type delivery struct {
	kind     string // events_api, slash_commands, interactive
	name     string // the event's name as subscribed to
	inner    json.RawMessage
	payload  json.RawMessage // of commands and interactions
	eventID  string
	at       time.Time
	channel  *channelState
	accepts  bool // accepts_response_payload
	attempt  int
	envelope string   // the last attempt's id
	ids      []string // all that were used
	done     bool     // acked or given up
	deadline func()
	onAck    func(payload json.RawMessage) // of commands and interactions
	onFail   func(reason string)
	fault    *deliveryFault
}

// send starts a delivery, through the faults that wait for one. The caller holds mu.
func (w *Workspace) send(d *delivery) {
	if d.kind == "events_api" {
		d.fault = w.fault.takeDelivery(d)
		if d.fault != nil && d.fault.kind == suppress {
			return
		}
		if w.hold(d) {
			return
		}
	}
	w.attempt(d)
}

// attempt sends an envelope to one of the sockets and waits for its ack. The caller holds mu.
func (w *Workspace) attempt(d *delivery) {
	if d.envelope == "" || d.attempt > 1 { // Slack repeats the envelope's id at times, and at times makes a new one
		d.envelope = newUUID()
	}
	w.await(d, d.envelope)
	frames := w.envelopes(d)
	sent := false
	for _, data := range frames {
		if c := w.pick(); c != nil {
			c.send(data)
			sent = true
		}
	}
	switch {
	case sent || d.fault.loses(d.attempt):
		d.deadline = w.sched.after(ackDeadline, func() { w.missed(d, "timeout") })
	case d.kind == "events_api":
		w.failed(d, "no connection")
	default:
		d.deadline = w.sched.after(0, func() { w.missed(d, "no connection") })
	}
}

// envelopes returns the frames of one attempt: none when a fault loses it, two when one doubles it.
func (w *Workspace) envelopes(d *delivery) [][]byte {
	if d.fault.loses(d.attempt) {
		return nil
	}
	env := reply{"envelope_id": d.envelope, "type": d.kind, "accepts_response_payload": d.accepts}
	if d.kind == "events_api" {
		env["payload"] = w.eventPayload(d, d.fault.spoil(d.inner))
		env["retry_attempt"], env["retry_reason"] = d.attempt, ""
		if d.attempt > 0 {
			env["retry_reason"] = "timeout"
		}
	} else {
		env["payload"] = d.payload
	}
	out := [][]byte{w.encode(env)}
	if again, newID := d.fault.doubles(); again && d.attempt == 0 {
		if newID {
			id := newUUID()
			w.await(d, id)
			env["envelope_id"] = id
		}
		out = append(out, w.encode(env))
	}
	return out
}

func (w *Workspace) await(d *delivery, id string) {
	w.pending[id] = d
	d.ids = append(d.ids, id)
}

func (w *Workspace) encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		w.log.Error("a frame cannot be written", "err", err)
	}
	return data
}

// missed is the ack deadline.
func (w *Workspace) missed(d *delivery, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !d.done {
		w.failed(d, reason)
	}
}

// failed schedules the next attempt of an event, or gives up. The caller holds mu.
func (w *Workspace) failed(d *delivery, reason string) {
	w.outcome(d, false)
	if d.kind != "events_api" || d.attempt >= len(retryDelays) {
		w.finish(d)
		if d.onFail != nil {
			d.onFail(reason)
		}
		return
	}
	delay := retryDelays[d.attempt]
	d.attempt++
	d.deadline = w.sched.after(delay, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !d.done {
			w.attempt(d)
		}
	})
}

func (w *Workspace) finish(d *delivery) {
	d.done = true
	for _, id := range d.ids {
		delete(w.pending, id)
	}
	w.notify()
}

// acked settles the delivery that an envelope id belongs to; note says what became of the ack. The caller holds mu.
func (w *Workspace) acked(envelope string, payload json.RawMessage) (note string) {
	d := w.pending[envelope]
	switch {
	case d == nil:
		return "ack of nothing that waits"
	case d.envelope != envelope && d.attempt > 0:
		return "late ack: sent again already"
	}
	if d.deadline != nil {
		d.deadline()
	}
	w.outcome(d, true)
	w.finish(d)
	if d.onAck != nil {
		d.onAck(payload)
	}
	return "ack"
}

// attempt's outcome, for AutoDisable.
type attempt struct {
	at time.Time
	ok bool
}

// outcome counts deliveries of the last hour and turns events off when under 5 % of at least 20 were acked.
func (w *Workspace) outcome(d *delivery, ok bool) {
	if !w.opts.AutoDisable || d.kind != "events_api" {
		return
	}
	now := w.clock.Now()
	w.attempts = append(w.attempts, attempt{now, ok})
	for len(w.attempts) > 0 && now.Sub(w.attempts[0].at) > time.Hour {
		w.attempts = w.attempts[1:]
	}
	good := 0
	for _, a := range w.attempts {
		if a.ok {
			good++
		}
	}
	w.disabled = len(w.attempts) >= 20 && good*20 < len(w.attempts)
}

// EventsDisabled says whether Slack has turned the app's events off, as it does when nearly nothing is acked.
func (w *Workspace) EventsDisabled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.disabled
}

// EnableEvents is the operator's click on "re-enable" in the app's settings.
func (w *Workspace) EnableEvents() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disabled, w.attempts = false, nil
}

// Pending is how many deliveries are neither acked nor given up, those that wait for a retry included.
func (w *Workspace) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[*delivery]bool{}
	for _, d := range w.pending {
		n[d] = true
	}
	return len(n) + len(w.held)
}

// Inject sends any bytes as a text frame to one of the sockets; it says whether there was one.
func (w *Workspace) Inject(frame json.RawMessage) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.pick()
	if c == nil {
		return false
	}
	c.send(frame)
	return true
}

// InjectEvent sends any inner event in a proper envelope, with acks and retries.
func (w *Workspace) InjectEvent(inner json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.send(&delivery{kind: "events_api", name: "injected", inner: inner, eventID: w.newID("Ev"), at: w.clock.Now()})
}
