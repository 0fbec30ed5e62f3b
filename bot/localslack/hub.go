package localslack

import (
	"math/rand/v2"
	"time"
)

// Hub is Socket Mode: the sockets of the app, and what is delivered over them. The store's mu guards its state.
type Hub struct {
	*Store
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
func newHub(s *Store) *Hub {
	h := &Hub{Store: s, rng: rand.New(rand.NewPCG(s.opts.Seed, 0x5eed)), tickets: map[string]time.Time{},
		pending: map[string]*envelopeDelivery{}, messageEvents: map[string]*envelopeDelivery{}}
	h.faults = newFaults(h)
	return h
}
