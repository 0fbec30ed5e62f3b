// Package loop has what goroutines share that work until a context ends: they are woken, do something, and rest.
package loop

import (
	"context"
	"time"
)

// Run calls step until ctx ends. Between two calls it rests for as long as step returned, or until it is woken; after zero or
// less it does not rest. Woken may be nil.
func Run(ctx context.Context, woken <-chan struct{}, step func(context.Context) (rest time.Duration)) {
	for ctx.Err() == nil {
		if rest := step(ctx); rest > 0 {
			Wait(ctx, woken, rest)
		}
	}
}

// Wait waits for a time, or until it is woken. False: ctx ended first.
func Wait(ctx context.Context, woken <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-woken:
	case <-timer.C:
	}
	return true
}

// Sleep waits for a time. False: ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool { return Wait(ctx, nil, d) }

// Wake wakes who waits on a channel that holds one value. It never blocks: two calls before the waiter is there are one.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
