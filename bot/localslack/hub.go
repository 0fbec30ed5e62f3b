package localslack

import (
	"math/rand/v2"
	"time"

	"the-loop/bot/localslack/store"
)

// Hub is Socket Mode: the sockets of the app, and what is delivered over them. The store's mu guards its state.
type Hub struct {
	*store.Store
	faults *Faults

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
	h := &Hub{Store: s, rng: rand.New(rand.NewPCG(s.Opts.Seed, 0x5eed)), tickets: map[string]time.Time{},
		pending: map[string]*envelopeDelivery{}, messageEvents: map[string]*envelopeDelivery{}}
	h.faults = newFaults(h)
	return h
}

// Connections is how many sockets are open and said hello to.
func (w *Hub) Connections() int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.countActive()
}
