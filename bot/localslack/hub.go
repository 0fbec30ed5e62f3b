package localslack

import (
	"math/rand/v2"
	"time"

	"the-loop/bot/localslack/store"
)

// Hub is Socket Mode: the sockets of the app, and what is delivered over them. The store's mu guards its state.
type Hub struct {
	*store.Store
	faults *Script

	rng            *rand.Rand
	tickets        map[string]time.Time
	conns          []*conn
	connSeq        int
	pending        map[string]*envelopeDelivery // envelope id → delivery
	heldForShuffle []*envelopeDelivery          // waiting for Shuffle to have enough
	messageEvents  map[string]*envelopeDelivery // channel/ts → the event of that message
	eventsDisabled bool                         // events turned off by AutoDisable
	recentAttempts []attemptResult
}

// newHub makes a hub without a socket.
func newHub(s *store.Store) *Hub {
	return &Hub{Store: s, faults: &Script{}, rng: rand.New(rand.NewPCG(s.Opts.Seed, 0x5eed)), tickets: map[string]time.Time{},
		pending: map[string]*envelopeDelivery{}, messageEvents: map[string]*envelopeDelivery{}}
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
	*Script
	w *Hub
}

// Clear ends every fault that is still to come. Sockets that were stalled stay so.
func (f *Faults) Clear() {
	f.StopShuffle()
	f.Reset()
}
