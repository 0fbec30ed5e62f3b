package localslack

import (
	"encoding/json"
	"net/http"
	"time"

	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/store"
)

// ConnectFault is what a new socket meets.
type ConnectFault struct {
	rejectStatus     int    // HTTP status instead of the upgrade
	disconnectReason string // a disconnect with this reason comes before hello
	noHello          bool
}

// RejectUpgrade answers the WebSocket upgrade with an HTTP status, 408 for one.
func RejectUpgrade(status int) ConnectFault { return ConnectFault{rejectStatus: status} }

// DisconnectFirst sends a disconnect frame with this reason and never says hello.
func DisconnectFirst(reason string) ConnectFault { return ConnectFault{disconnectReason: reason} }

// NoHello opens the socket and works, but says no hello.
func NoHello() ConnectFault { return ConnectFault{noHello: true} }

// InjectConnect makes the next sockets fail.
func (f *Script) InjectConnect(times int, fault ConnectFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addFault(&f.connects, times, "", fault)
}

// TooManyWebsockets refuses every new socket from now on as if ten were open.
func (f *Script) TooManyWebsockets() { f.InjectConnect(-1, DisconnectFirst("too_many_websockets")) }

// LinkDisabled tells every socket that Socket Mode was switched off, and every new one.
func (f *Faults) LinkDisabled() {
	f.InjectConnect(-1, DisconnectFirst("link_disabled"))
	f.w.Disconnect("link_disabled")
}

func (f *Script) takeConnect() ConnectFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := takeFault(&f.connects, ""); c != nil {
		return *c
	}
	return ConnectFault{}
}

// Stall makes every open socket deaf and mute: no reads, no pings, no frames, TCP stays up.
func (f *Faults) Stall() {
	f.forEachConn(func(c *conn) { c.tcp.stall() })
}

// CutMidFrame writes the beginning of a frame on every open socket and closes TCP in the middle of it.
func (f *Faults) CutMidFrame() {
	f.forEachConn(func(c *conn) { c.tcp.cutMidFrame() })
}

// Drop closes TCP under every open socket, without a close frame.
func (f *Faults) Drop() {
	f.forEachConn(func(c *conn) { c.tcp.closeTCP() })
}

// GoAway closes every open socket as a server that restarts does: a close frame with code 1001.
func (f *Faults) GoAway() {
	f.forEachConn(func(c *conn) { _, _ = c.tcp.Write([]byte{0x88, 2, 0x03, 0xe9}) }) // the reader sees the end
}

// DropAfter closes TCP under the socket that sends the nth text frame from now, in the middle of a burst.
func (f *Script) DropAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeAfter = n
}

// NeverFinishClosing leaves every close handshake unanswered, with TCP open.
func (f *Faults) NeverFinishClosing() {
	f.leaveOpen()
	f.forEachConn(func(c *conn) { c.tcp.disableClose() })
}

// PingEvery changes the time between pings, by the real clock, for sockets that are opened from now on.
func (f *Script) PingEvery(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pingEvery = d
}

// IgnoreAcks overlooks the next acks; a negative number means all.
func (f *Script) IgnoreAcks(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ignoreAcks = times
}

func (f *Faults) forEachConn(fn func(*conn)) {
	f.w.Mu.Lock()
	conns := append([]*conn(nil), f.w.conns...)
	f.w.Mu.Unlock()
	for _, c := range conns {
		fn(c)
	}
}

// countSentFrame counts for DropAfter; it says whether the socket is to be closed now.
func (f *Script) countSentFrame() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closeAfter == 0 {
		return false
	}
	f.closeAfter--
	return f.closeAfter == 0
}

func (f *Script) takeIgnoredAck() bool {
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

// InjectDelivery makes the next events of a name (message.channels, app_mention, …; "*" for any) go wrong.
func (f *Script) InjectDelivery(event string, times int, fault DeliveryFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addFault(&f.deliveries, times, event, fault)
}

type activeFault struct{ kind DeliveryFault }

func (f *Script) takeDelivery(event string) *activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := takeFault(&f.deliveries, event); k != nil {
		return &activeFault{kind: *k}
	}
	return nil
}

func (f *activeFault) dropsAttempt(attempt int) bool {
	return f != nil && (f.kind == LoseFirst && attempt == 0 || f.kind == Suppress)
}

func (f *activeFault) duplicates() (again, newID bool) {
	if f == nil {
		return false, false
	}
	return f.kind == Duplicate || f.kind == DuplicateNewEnvelope, f.kind == DuplicateNewEnvelope
}

// corrupt returns the inner event as the fault sends it.
func (f *activeFault) corrupt(inner json.RawMessage) json.RawMessage {
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
func (f *Script) Shuffle(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shuffle = n
}

// takeShuffle is how many events are held back before they are sent; once that many are held, it is over.
func (f *Script) takeShuffle(held int) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = f.shuffle
	if n > 0 && held >= n {
		f.shuffle = 0
	}
	return n
}

// leaveOpen lets no close handshake end from now on.
func (f *Script) leaveOpen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.neverFinishClosing = true
}

// StopShuffle sends what Shuffle still holds back.
func (f *Faults) StopShuffle() {
	f.w.Mu.Lock()
	defer f.w.Mu.Unlock()
	f.Shuffle(0)
	f.w.releaseHeld()
}

// holdForShuffle keeps an event for Shuffle. The caller holds mu.
func (w *Hub) holdForShuffle(d *envelopeDelivery) bool {
	n := w.faults.takeShuffle(len(w.heldForShuffle) + 1)
	if n == 0 {
		return false
	}
	w.heldForShuffle = append(w.heldForShuffle, d)
	if len(w.heldForShuffle) >= n {
		w.releaseHeld()
	}
	return true
}

// releaseHeld sends held events, never in the order they happened. The caller holds mu.
func (w *Hub) releaseHeld() {
	held := w.heldForShuffle
	w.heldForShuffle = nil
	if len(held) < 2 {
		for _, d := range held {
			w.attemptDelivery(d)
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
		w.attemptDelivery(d)
	}
}

// Redeliver sends the event of a message once more, long after it was acked: the same event id in a new envelope, with
// this retry_attempt. It says whether there was such an event.
func (f *Faults) Redeliver(channel, ts string, attempt int) bool {
	w := f.w
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	if ch == nil || w.messageEvents[ch.Id+"/"+ts] == nil {
		return false
	}
	d := w.messageEvents[ch.Id+"/"+ts]
	w.attemptDelivery(&envelopeDelivery{kind: d.kind, name: d.name, inner: d.inner, eventID: d.eventID, happenedAt: d.happenedAt, channel: d.channel, attempt: attempt})
	return true
}

// UnknownEnvelope sends an envelope of a type that no client knows.
func (f *Faults) UnknownEnvelope() bool {
	return f.w.InjectFrame(json.RawMessage(`{"envelope_id":"` + slackid.UUID() + `","type":"brand_new_thing","payload":{"a":1},"accepts_response_payload":false}`))
}

// UnknownEvent sends a well-formed event of a type that is newer than every client.
func (f *Faults) UnknownEvent() {
	f.w.InjectEvent(json.RawMessage(`{"type":"brand_new_event","event_ts":"1700000000.000001","something":{"nested":true}}`))
}

// NotJSON sends a text frame that is no JSON.
func (f *Faults) NotJSON() bool { return f.w.InjectFrame(json.RawMessage(`{not json`)) }

// EmptyPayload sends an event envelope without an event in it.
func (f *Faults) EmptyPayload() bool {
	return f.w.InjectFrame(json.RawMessage(`{"envelope_id":"` + slackid.UUID() + `","type":"events_api","payload":{},"accepts_response_payload":false,"retry_attempt":0,"retry_reason":""}`))
}

// AppRateLimited sends what Slack sends when over 30,000 events happen within an hour.
func (f *Faults) AppRateLimited() bool {
	env := store.Object{"envelope_id": slackid.UUID(), "type": "events_api", "accepts_response_payload": false, "retry_attempt": 0,
		"retry_reason": "", "payload": store.Object{"token": "verification", "type": "app_rate_limited", "team_id": f.w.Opts.TeamID,
			"minute_rate_limited": f.w.Clock.Now().Unix() / 60 * 60, "api_app_id": f.w.AppID()}}
	return f.w.InjectFrame(f.w.encodeJSON(env))
}

// rejectUpgrade answers an upgrade with the fault's status.
func (c ConnectFault) rejectUpgrade(rw http.ResponseWriter) bool {
	if c.rejectStatus != 0 {
		http.Error(rw, http.StatusText(c.rejectStatus), c.rejectStatus)
	}
	return c.rejectStatus != 0
}
