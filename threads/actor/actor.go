// Package actor runs the work of many things that each do one thing after the other, in goroutines that somebody waits for.
package actor

import (
	"context"
	"sync"
)

// Actor runs tasks one after the other, in one goroutine that lives only while there are some.
type Actor struct {
	start func(f func(context.Context)) bool // runs f in a goroutine; false: too late

	mu      sync.Mutex // guards the fields that follow
	tasks   []func(context.Context)
	running bool
}

// New makes an actor. start runs a function in a goroutine; it returns false when it is too late for that.
func New(start func(f func(context.Context)) bool) *Actor { return &Actor{start: start} }

// Do has f run by the goroutine. It never blocks.
func (a *Actor) Do(f func(context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tasks = append(a.tasks, f)
	if a.running {
		return
	}
	a.running = a.start(a.drain)
}

// Call has f run by the goroutine and waits for it. False: ctx ended first, and f may still run later.
func (a *Actor) Call(ctx context.Context, f func(context.Context)) bool {
	_, ok := Call(ctx, a, func(ctx context.Context) struct{} { f(ctx); return struct{}{} })
	return ok
}

// Call is [Actor.Call] with an answer.
func Call[T any](ctx context.Context, a *Actor, f func(context.Context) T) (answer T, ok bool) {
	c := make(chan T, 1) // buffered: perhaps nobody waits for the answer any more
	a.Do(func(ctx context.Context) { c <- f(ctx) })
	select {
	case answer = <-c:
		return answer, true
	case <-ctx.Done():
		return answer, false
	}
}

func (a *Actor) drain(ctx context.Context) {
	for {
		a.mu.Lock()
		work := a.tasks
		a.tasks = nil
		if len(work) == 0 {
			a.running = false
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		for _, f := range work {
			f(ctx)
		}
	}
}
