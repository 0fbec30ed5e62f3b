package faults

import (
	"encoding/json"
	"net/http"
	"time"
)

// ConnectFault is what a new socket meets.
type ConnectFault struct {
	RejectStatus     int    // HTTP status instead of the upgrade
	DisconnectReason string // a disconnect with this reason comes before hello
	NoHello          bool
}

// RejectUpgrade answers the WebSocket upgrade with an HTTP status, 408 for one.
func RejectUpgrade(status int) ConnectFault { return ConnectFault{RejectStatus: status} }

// DisconnectFirst sends a disconnect frame with this reason and never says hello.
func DisconnectFirst(reason string) ConnectFault { return ConnectFault{DisconnectReason: reason} }

// NoHello opens the socket and works, but says no hello.
func NoHello() ConnectFault { return ConnectFault{NoHello: true} }

// InjectConnect makes the next sockets fail.
func (f *Script) InjectConnect(times int, fault ConnectFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addFault(&f.connects, times, "", fault)
}

// TooManyWebsockets refuses every new socket from now on as if ten were open.
func (f *Script) TooManyWebsockets() { f.InjectConnect(-1, DisconnectFirst("too_many_websockets")) }

// TakeConnect is the fault that a new socket meets, used up once; the zero fault for none.
func (f *Script) TakeConnect() ConnectFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := takeFault(&f.connects, ""); c != nil {
		return *c
	}
	return ConnectFault{}
}

// DropAfter closes TCP under the socket that sends the nth text frame from now, in the middle of a burst.
func (f *Script) DropAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeAfter = n
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

// CountSentFrame counts for DropAfter; it says whether the socket is to be closed now.
func (f *Script) CountSentFrame() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closeAfter == 0 {
		return false
	}
	f.closeAfter--
	return f.closeAfter == 0
}

// TakeIgnoredAck says whether an ack is to be overlooked, and counts it.
func (f *Script) TakeIgnoredAck() bool {
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

// InjectDelivery makes the next events of a name (message.channels, app_mention, …; "*" for any) go wrong.
func (f *Script) InjectDelivery(event string, times int, fault DeliveryFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addFault(&f.deliveries, times, event, fault)
}

// ActiveFault is the fault of one delivery; nil is none.
type ActiveFault struct{ Kind DeliveryFault }

// TakeDelivery is the fault that an event of this name meets, used up once; nil for none.
func (f *Script) TakeDelivery(event string) *ActiveFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := takeFault(&f.deliveries, event); k != nil {
		return &ActiveFault{Kind: *k}
	}
	return nil
}

// DropsAttempt says whether an attempt of the delivery is lost.
func (f *ActiveFault) DropsAttempt(attempt int) bool {
	return f != nil && (f.Kind == LoseFirst && attempt == 0 || f.Kind == Suppress)
}

// Duplicates says whether the envelope is sent again, and whether that has an id of its own.
func (f *ActiveFault) Duplicates() (again, newID bool) {
	if f == nil {
		return false, false
	}
	return f.Kind == Duplicate || f.Kind == DuplicateNewEnvelope, f.Kind == DuplicateNewEnvelope
}

// Corrupt returns the inner event as the fault sends it.
func (f *ActiveFault) Corrupt(inner json.RawMessage) json.RawMessage {
	if f == nil || f.Kind != BadBlocks && f.Kind != BadText {
		return inner
	}
	var ev map[string]any
	if json.Unmarshal(inner, &ev) != nil {
		return inner
	}
	if f.Kind == BadText {
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

// TakeShuffle is how many events are held back before they are sent; once that many are held, it is over.
func (f *Script) TakeShuffle(held int) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = f.shuffle
	if n > 0 && held >= n {
		f.shuffle = 0
	}
	return n
}

// LeaveOpen lets no close handshake end from now on.
func (f *Script) LeaveOpen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.neverFinishClosing = true
}

// RejectUpgrade answers an upgrade with the fault's status.
func (c ConnectFault) RejectUpgrade(rw http.ResponseWriter) bool {
	if c.RejectStatus != 0 {
		http.Error(rw, http.StatusText(c.RejectStatus), c.RejectStatus)
	}
	return c.RejectStatus != 0
}

// ClosingNeverFinishes says whether close handshakes stay unanswered.
func (f *Script) ClosingNeverFinishes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.neverFinishClosing
}

// PingInterval is the time between pings: the usual one unless it was changed.
func (f *Script) PingInterval(usual time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pingEvery > 0 {
		return f.pingEvery
	}
	return usual
}
