package tmux

import (
	"context"
	"fmt"
	"sync"
	"time"

	"the-loop/sessions"
)

// shared gives callers who ask the same thing at the same time one answer. Its asking began after each of them had asked, so
// that no answer is older than its question: what a caller did before he asked shows in it. The zero value is ready.
type shared[T any] struct {
	once sync.Once
	turn chan struct{} // taken by who asks; one asks at a time
	pace int           // a long asking is followed by a rest of this many times its length, so that more join the next one

	took  time.Duration // the last asking; this and the next field belong to who has the turn
	ended time.Time

	mu   sync.Mutex // guards the field that follows
	next *round[T]  // whose asking has not begun; nil: nobody waits for one
}

// longAsking is what a list of some hundred panes or of a thousand processes takes.
const longAsking = 5 * time.Millisecond

// longestRest is what an answer may be late for the sake of others.
const longestRest = 100 * time.Millisecond

// round is one asking. Who opened it asks, for all who join before it begins.
type round[T any] struct {
	done   chan struct{} // closed when what follows is set
	answer T
	err    error
	void   bool // who asked went away: it says nothing to the others
}

// get is an answer to ask. It may be shared with others: it must not be changed.
func (s *shared[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	s.once.Do(func() { s.turn = make(chan struct{}, 1) })
	for {
		r, opened := s.join()
		if opened {
			s.lead(ctx, r, ask)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			var none T
			return none, fmt.Errorf("%w: %w", sessions.ErrSilent, ctx.Err())
		}
		if !r.void || opened || ctx.Err() != nil {
			return r.answer, r.err
		}
	}
}

// join is the round that has not begun, and whether the caller is the first in it.
func (s *shared[T]) join() (r *round[T], opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next, opened = &round[T]{done: make(chan struct{})}, true
	}
	return s.next, opened
}

// lead asks for a round as soon as nobody else asks. It ends the round in any case.
func (s *shared[T]) lead(ctx context.Context, r *round[T], ask func(context.Context) (T, error)) {
	defer close(r.done)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		if rest := min(time.Duration(s.pace)*s.took, longestRest); s.took > longAsking {
			r.err = pause(ctx, rest-time.Since(s.ended))
		}
	case <-ctx.Done():
		r.err = fmt.Errorf("%w: %w", sessions.ErrSilent, ctx.Err())
	}
	s.mu.Lock()
	s.next = nil // who comes from here on must not have this answer
	s.mu.Unlock()
	if r.err == nil {
		begun := time.Now()
		r.answer, r.err = ask(ctx)
		s.ended = time.Now()
		s.took = s.ended.Sub(begun)
	}
	r.void = r.err != nil && ctx.Err() != nil
}

// sharedTable is a list of processes that is read once for all who ask at the same time.
type sharedTable struct {
	processTable
	all *shared[[]process]
}

func (t sharedTable) list(ctx context.Context) ([]process, error) {
	return t.all.get(ctx, t.processTable.list)
}
