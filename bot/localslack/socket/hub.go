// Package socket is Socket Mode of the local workspace: the sockets of the app, the envelopes on their way with acks and
// retries, and the faults of both.
package socket

import (
	"math/rand/v2"
	"time"

	"the-loop/bot/localslack/faults"
	"the-loop/bot/localslack/store"
)

// Hub is Socket Mode: the sockets of the app, and what is delivered over them. The store's Mu guards its state.
type Hub struct {
	*store.Store
	Script *faults.Script

	rng            *rand.Rand
	Tickets        map[string]time.Time
	Conns          []*Conn
	connSeq        int
	pending        map[string]*Delivery // envelope id → delivery
	heldForShuffle []*Delivery          // waiting for Shuffle to have enough
	MessageEvents  map[string]*Delivery // channel/ts → the event of that message
	EventsOff      bool                 // events turned off by AutoDisable
	recentAttempts []attemptResult
}

// New makes a hub without a socket.
func New(s *store.Store) *Hub {
	return &Hub{Store: s, Script: &faults.Script{}, rng: rand.New(rand.NewPCG(s.Opts.Seed, 0x5eed)), Tickets: map[string]time.Time{},
		pending: map[string]*Delivery{}, MessageEvents: map[string]*Delivery{}}
}

// Connections is how many sockets are open and said hello to.
func (w *Hub) Connections() int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.countActive()
}

// Faults makes things go wrong. A fault is used up after the given number of times; a negative number means always.
// Clear ends all of them.
type Faults struct {
	*faults.Script
	w *Hub
}

// Clear ends every fault that is still to come. Sockets that were stalled stay so.
func (f *Faults) Clear() {
	f.StopShuffle()
	f.Reset()
}

// Faults makes things go wrong.
func (w *Hub) Faults() *Faults { return &Faults{Script: w.Script, w: w} }
