package workspace

import (
	"encoding/json"
	"net/http"
	"time"
)

// ConnectFault is what a new socket meets.
type ConnectFault struct {
	reject  int    // HTTP status instead of the upgrade
	first   string // a disconnect with this reason comes before hello
	noHello bool
}

// RejectUpgrade answers the WebSocket upgrade with an HTTP status, 408 for one.
func RejectUpgrade(status int) ConnectFault { return ConnectFault{reject: status} }

// DisconnectFirst sends a disconnect frame with this reason and never says hello.
func DisconnectFirst(reason string) ConnectFault { return ConnectFault{first: reason} }

// NoHello opens the socket and works, but says no hello.
func NoHello() ConnectFault { return ConnectFault{noHello: true} }

// Connect makes the next sockets fail.
func (f *Faults) Connect(times int, fault ConnectFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.connects, times, "", fault)
}

// TooManyWebsockets refuses every new socket from now on as if ten were open.
func (f *Faults) TooManyWebsockets() { f.Connect(-1, DisconnectFirst("too_many_websockets")) }

// LinkDisabled tells every socket that Socket Mode was switched off, and every new one.
func (f *Faults) LinkDisabled() {
	f.Connect(-1, DisconnectFirst("link_disabled"))
	f.w.Disconnect("link_disabled")
}

func (f *Faults) takeConnect() ConnectFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := take(&f.connects, ""); c != nil {
		return *c
	}
	return ConnectFault{}
}

// Stall makes every open socket deaf and mute: no reads, no pings, no frames, TCP stays up.
func (f *Faults) Stall() {
	f.each(func(c *conn) { c.wire.stall() })
}

// Cut writes the beginning of a frame on every open socket and closes TCP in the middle of it.
func (f *Faults) Cut() {
	f.each(func(c *conn) { c.wire.cut() })
}

// Drop closes TCP under every open socket, without a close frame.
func (f *Faults) Drop() {
	f.each(func(c *conn) { c.wire.sever() })
}

// GoAway closes every open socket as a server that restarts does: a close frame with code 1001.
func (f *Faults) GoAway() {
	f.each(func(c *conn) { _, _ = c.wire.Write([]byte{0x88, 2, 0x03, 0xe9}) }) // the reader sees the end
}

// DropAfter closes TCP under the socket that sends the nth text frame from now, in the middle of a burst.
func (f *Faults) DropAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeAfter = n
}

// NeverFinishClosing leaves every close handshake unanswered, with TCP open.
func (f *Faults) NeverFinishClosing() {
	f.mu.Lock()
	f.noClosing = true
	f.mu.Unlock()
	f.each(func(c *conn) { c.wire.neverClose() })
}

// PingEvery changes the time between pings, by the real clock, for sockets that are opened from now on.
func (f *Faults) PingEvery(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pingEvery = d
}

// IgnoreAcks overlooks the next acks; a negative number means all.
func (f *Faults) IgnoreAcks(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ignoreAcks = times
}

func (f *Faults) each(fn func(*conn)) {
	f.w.mu.Lock()
	conns := append([]*conn(nil), f.w.conns...)
	f.w.mu.Unlock()
	for _, c := range conns {
		fn(c)
	}
}

// frameSent counts for DropAfter; it says whether the socket is to be closed now.
func (f *Faults) frameSent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closeAfter == 0 {
		return false
	}
	f.closeAfter--
	return f.closeAfter == 0
}

func (f *Faults) swallowsAck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ignoreAcks > 0 {
		f.ignoreAcks--
		return true
	}
	return f.ignoreAcks < 0
}

// DeliveryFault is what becomes of an event on its way.
type DeliveryFault int

// The faults of a delivery.
const (
	// LoseFirst loses the first delivery: only a retry arrives.
	LoseFirst DeliveryFault = iota
	// Suppress loses the event and all its retries.
	Suppress
	// Duplicate sends the same envelope twice.
	Duplicate
	// DuplicateNewEnvelope sends the same event twice, in envelopes with different ids.
	DuplicateNewEnvelope
	// BadBlocks makes the event's blocks something that is no list of blocks.
	BadBlocks
	// BadText makes the event's text a number.
	BadText
)

const suppress = Suppress

// Deliver makes the next events of a name (message.channels, app_mention, …; "*" for any) go wrong.
func (f *Faults) Deliver(event string, times int, fault DeliveryFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.deliveries, times, event, fault)
}

type deliveryFault struct{ kind DeliveryFault }

func (f *Faults) takeDelivery(d *delivery) *deliveryFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := take(&f.deliveries, d.name); k != nil {
		return &deliveryFault{kind: *k}
	}
	return nil
}

func (f *deliveryFault) loses(attempt int) bool {
	return f != nil && (f.kind == LoseFirst && attempt == 0 || f.kind == Suppress)
}

func (f *deliveryFault) doubles() (again, newID bool) {
	if f == nil {
		return false, false
	}
	return f.kind == Duplicate || f.kind == DuplicateNewEnvelope, f.kind == DuplicateNewEnvelope
}

// spoil returns the inner event as the fault sends it.
func (f *deliveryFault) spoil(inner json.RawMessage) json.RawMessage {
	if f == nil || f.kind != BadBlocks && f.kind != BadText {
		return inner
	}
	var ev map[string]any
	if json.Unmarshal(inner, &ev) != nil {
		return inner
	}
	if f.kind == BadText {
		ev["text"] = 42
	} else {
		ev["blocks"] = []any{map[string]any{"type": "rich_text", "elements": "none"}}
	}
	out, err := json.Marshal(ev)
	if err != nil {
		return inner
	}
	return out
}

// Shuffle holds the next n events back and then sends them in another order.
func (f *Faults) Shuffle(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shuffle = n
}

// Unshuffle sends what Shuffle still holds back.
func (f *Faults) Unshuffle() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.mu.Lock()
	f.shuffle = 0
	f.mu.Unlock()
	f.w.release()
}

// hold keeps an event for Shuffle. The caller holds mu.
func (w *Workspace) hold(d *delivery) bool {
	w.fault.mu.Lock()
	n := w.fault.shuffle
	if n > 0 && len(w.held)+1 >= n {
		w.fault.shuffle = 0
	}
	w.fault.mu.Unlock()
	if n == 0 {
		return false
	}
	w.held = append(w.held, d)
	if len(w.held) >= n {
		w.release()
	}
	return true
}

// release sends held events, never in the order they happened. The caller holds mu.
func (w *Workspace) release() {
	held := w.held
	w.held = nil
	if len(held) < 2 {
		for _, d := range held {
			w.attempt(d)
		}
		return
	}
	w.rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	first := 0
	for i, d := range held {
		if d.eventID < held[first].eventID {
			first = i
		}
	}
	held[first], held[len(held)-1] = held[len(held)-1], held[first] // the oldest comes last
	for _, d := range held {
		w.attempt(d)
	}
}

// Redeliver sends the event of a message once more, long after it was acked: the same event id in a new envelope, with
// this retry_attempt. It says whether there was such an event.
func (f *Faults) Redeliver(channel, ts string, attempt int) bool {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil || w.sent[ch.id+"/"+ts] == nil {
		return false
	}
	d := w.sent[ch.id+"/"+ts]
	w.attempt(&delivery{kind: d.kind, name: d.name, inner: d.inner, eventID: d.eventID, at: d.at, channel: d.channel, attempt: attempt})
	return true
}

// UnknownEnvelope sends an envelope of a type that no client knows.
func (f *Faults) UnknownEnvelope() bool {
	return f.w.Inject(json.RawMessage(`{"envelope_id":"` + newUUID() + `","type":"brand_new_thing","payload":{"a":1},"accepts_response_payload":false}`))
}

// UnknownEvent sends a well-formed event of a type that is newer than every client.
func (f *Faults) UnknownEvent() {
	f.w.InjectEvent(json.RawMessage(`{"type":"brand_new_event","event_ts":"1700000000.000001","something":{"nested":true}}`))
}

// NotJSON sends a text frame that is no JSON.
func (f *Faults) NotJSON() bool { return f.w.Inject(json.RawMessage(`{not json`)) }

// EmptyPayload sends an event envelope without an event in it.
func (f *Faults) EmptyPayload() bool {
	return f.w.Inject(json.RawMessage(`{"envelope_id":"` + newUUID() + `","type":"events_api","payload":{},"accepts_response_payload":false,"retry_attempt":0,"retry_reason":""}`))
}

// AppRateLimited sends what Slack sends when over 30,000 events happen within an hour.
func (f *Faults) AppRateLimited() bool {
	env := reply{"envelope_id": newUUID(), "type": "events_api", "accepts_response_payload": false, "retry_attempt": 0,
		"retry_reason": "", "payload": reply{"token": "verification", "type": "app_rate_limited", "team_id": f.w.opts.TeamID,
			"minute_rate_limited": f.w.clock.Now().Unix() / 60 * 60, "api_app_id": f.w.appID}}
	return f.w.Inject(f.w.encode(env))
}

// rejected answers an upgrade with the fault's status.
func (c ConnectFault) rejected(rw http.ResponseWriter) bool {
	if c.reject != 0 {
		http.Error(rw, http.StatusText(c.reject), c.reject)
	}
	return c.reject != 0
}
