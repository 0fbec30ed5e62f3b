package threads

import (
	"context"
	"sync"
)

// actor runs tasks one after the other, in one goroutine that lives only while there are some.
type actor struct {
	start func(f func(context.Context)) bool // runs f in a goroutine; false: too late

	mu      sync.Mutex // guards the fields that follow
	tasks   []func(context.Context)
	running bool
}

// do has f run by the goroutine. It never blocks.
func (a *actor) do(f func(context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tasks = append(a.tasks, f)
	if a.running {
		return
	}
	a.running = a.start(a.drain)
}

// call has f run by the goroutine and waits for it. False: ctx ended first, and f may still run later.
func (a *actor) call(ctx context.Context, f func(context.Context)) bool {
	_, ok := call(ctx, a, func(ctx context.Context) struct{} { f(ctx); return struct{}{} })
	return ok
}

// call is [actor.call] with an answer.
func call[T any](ctx context.Context, a *actor, f func(context.Context) T) (answer T, ok bool) {
	c := make(chan T, 1) // buffered: perhaps nobody waits for the answer any more
	a.do(func(ctx context.Context) { c <- f(ctx) })
	select {
	case answer = <-c:
		return answer, true
	case <-ctx.Done():
		return answer, false
	}
}

func (a *actor) drain(ctx context.Context) {
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
