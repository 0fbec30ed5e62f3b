package socket

import (
	"encoding/json"

	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/store"
)

// LinkDisabled tells every socket that Socket Mode was switched off, and every new one.
func (f *Faults) LinkDisabled() {
	f.InjectConnect(-1, faults.DisconnectFirst("link_disabled"))
	f.w.Disconnect("link_disabled")
}

// Stall makes every open socket deaf and mute: no reads, no pings, no frames, TCP stays up.
func (f *Faults) Stall() {
	f.forEachConn(func(c *Conn) { c.tcp.stall() })
}

// CutMidFrame writes the beginning of a frame on every open socket and closes TCP in the middle of it.
func (f *Faults) CutMidFrame() {
	f.forEachConn(func(c *Conn) { c.tcp.cutMidFrame() })
}

// Drop closes TCP under every open socket, without a close frame.
func (f *Faults) Drop() {
	f.forEachConn(func(c *Conn) { c.tcp.closeTCP() })
}

// GoAway closes every open socket as a server that restarts does: a close frame with code 1001.
func (f *Faults) GoAway() {
	f.forEachConn(func(c *Conn) { _, _ = c.tcp.Write([]byte{0x88, 2, 0x03, 0xe9}) }) // the reader sees the end
}

// NeverFinishClosing leaves every close handshake unanswered, with TCP open.
func (f *Faults) NeverFinishClosing() {
	f.LeaveOpen()
	f.forEachConn(func(c *Conn) { c.tcp.disableClose() })
}

func (f *Faults) forEachConn(fn func(*Conn)) {
	f.w.Mu.Lock()
	conns := append([]*Conn(nil), f.w.Conns...)
	f.w.Mu.Unlock()
	for _, c := range conns {
		fn(c)
	}
}

// StopShuffle sends what Shuffle still holds back.
func (f *Faults) StopShuffle() {
	f.w.Mu.Lock()
	defer f.w.Mu.Unlock()
	f.Shuffle(0)
	f.w.releaseHeld()
}

// holdForShuffle keeps an event for Shuffle. The caller holds Mu.
func (w *Hub) holdForShuffle(d *Delivery) bool {
	n := w.Script.TakeShuffle(len(w.heldForShuffle) + 1)
	if n == 0 {
		return false
	}
	w.heldForShuffle = append(w.heldForShuffle, d)
	if len(w.heldForShuffle) >= n {
		w.releaseHeld()
	}
	return true
}

// releaseHeld sends held events, never in the order they happened. The caller holds Mu.
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
		if d.EventID < held[first].EventID {
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
	if ch == nil || w.MessageEvents[ch.ID+"/"+ts] == nil {
		return false
	}
	d := w.MessageEvents[ch.ID+"/"+ts]
	w.attemptDelivery(&Delivery{Kind: d.Kind, Name: d.Name, Inner: d.Inner, EventID: d.EventID, HappenedAt: d.HappenedAt, Channel: d.Channel, attempt: attempt})
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
	return f.w.InjectFrame(f.w.EncodeJSON(env))
}
