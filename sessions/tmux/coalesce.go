package tmux

import (
	"context"
	"fmt"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/process"
)

// shared gives callers who ask the same thing at the same time one answer. Its asking began after each of them had asked, so
// that no answer is older than its question: what a caller did before he asked shows in it. The zero value is ready.
type coalescer[T any] struct {
	once        sync.Once
	running     chan struct{} // taken by who asks; one asks at a time
	pauseFactor int           // a long asking is followed by a rest of this many times its length, so that more join the next one

	lastDuration time.Duration // the last asking; this and the next field belong to who has the turn
	lastEnd      time.Time

	mu   sync.Mutex // guards the field that follows
	next *round[T]  // whose asking has not begun; nil: nobody waits for one
}

// slowCall is what a list of some hundred panes or of a thousand processes takes.
const slowCall = 5 * time.Millisecond

// maxPause is what an answer may be late for the sake of others.
const maxPause = 100 * time.Millisecond

// round is one asking. Who opened it asks, for all who join before it begins.
type round[T any] struct {
	done      chan struct{} // closed when what follows is set
	result    T
	err       error
	cancelled bool // who asked went away: it says nothing to the others
}

// get is an answer to ask. It may be shared with others: it must not be changed.
func (s *coalescer[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	s.once.Do(func() { s.running = make(chan struct{}, 1) })
	for {
		r, opened := s.join()
		if opened {
			s.runRound(ctx, r, ask)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			var none T
			return none, fmt.Errorf("%w: %w", sessions.ErrTerminalTimeout, ctx.Err())
		}
		if !r.cancelled || opened || ctx.Err() != nil {
			return r.result, r.err
		}
	}
}

// join is the round that has not begun, and whether the caller is the first in it.
func (s *coalescer[T]) join() (r *round[T], opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next, opened = &round[T]{done: make(chan struct{})}, true
	}
	return s.next, opened
}

// runRound asks for a round as soon as nobody else asks. It ends the round in any case.
func (s *coalescer[T]) runRound(ctx context.Context, r *round[T], ask func(context.Context) (T, error)) {
	defer close(r.done)
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
		if rest := min(time.Duration(s.pauseFactor)*s.lastDuration, maxPause); s.lastDuration > slowCall {
			r.err = sleep(ctx, rest-time.Since(s.lastEnd))
		}
	case <-ctx.Done():
		r.err = fmt.Errorf("%w: %w", sessions.ErrTerminalTimeout, ctx.Err())
	}
	s.mu.Lock()
	s.next = nil // who comes from here on must not have this answer
	s.mu.Unlock()
	if r.err == nil {
		begun := time.Now()
		r.result, r.err = ask(ctx)
		s.lastEnd = time.Now()
		s.lastDuration = s.lastEnd.Sub(begun)
	}
	r.cancelled = r.err != nil && ctx.Err() != nil
}

// coalescedTable is a list of processes that is read once for all who ask at the same time.
type coalescedTable struct {
	processTable
	processes *coalescer[[]process.Process]
}

func (t coalescedTable) List(ctx context.Context) ([]process.Process, error) {
	return t.processes.get(ctx, t.processTable.List)
}
