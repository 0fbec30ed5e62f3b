package tmux

import (
	"context"
	"fmt"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/process"
)

// coalescer lets concurrent callers share the result of one call. The call begins after each of them asked for it, so a result
// shows everything that its callers did before. The zero value is ready to use.
type coalescer[T any] struct {
	once        sync.Once
	running     chan struct{} // held during the call: one runs at a time
	pauseFactor int           // a slow call is followed by a pause of this many times its duration, so that more callers share the next one

	lastDuration time.Duration // of the last call; this and the next field are guarded by running
	lastEnd      time.Time

	mu   sync.Mutex // guards the field that follows
	next *round[T]  // whose call has not begun; nil: nobody waits
}

// slowCall is the duration from which a call is followed by a pause: a list of some hundred panes, or of a thousand processes.
const slowCall = 5 * time.Millisecond

// maxPause bounds the pause.
const maxPause = 100 * time.Millisecond

// round is one call. The caller that opened it makes it, for all that join before it begins.
type round[T any] struct {
	done      chan struct{} // closed when what follows is set
	result    T
	err       error
	cancelled bool // its maker's context ended: the others make another call
}

// get returns the result of call. It may be shared with others and must not be changed.
func (s *coalescer[T]) get(ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	s.once.Do(func() { s.running = make(chan struct{}, 1) })
	for {
		r, opened := s.join()
		if opened {
			s.runRound(ctx, r, call)
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

// join returns the round that has not begun, and whether the caller is the first in it.
func (s *coalescer[T]) join() (r *round[T], opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next, opened = &round[T]{done: make(chan struct{})}, true
	}
	return s.next, opened
}

// runRound makes the call of a round as soon as no other one runs. It ends the round in any case.
func (s *coalescer[T]) runRound(ctx context.Context, r *round[T], call func(context.Context) (T, error)) {
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
	s.next = nil // later callers must not share this result
	s.mu.Unlock()
	if r.err == nil {
		begun := time.Now()
		r.result, r.err = call(ctx)
		s.lastEnd = time.Now()
		s.lastDuration = s.lastEnd.Sub(begun)
	}
	r.cancelled = r.err != nil && ctx.Err() != nil
}

// coalescedTable lists processes once for all concurrent callers.
type coalescedTable struct {
	processTable
	processes *coalescer[[]process.Process]
}

func (t coalescedTable) List(ctx context.Context) ([]process.Process, error) {
	return t.processes.get(ctx, t.processTable.List)
}
