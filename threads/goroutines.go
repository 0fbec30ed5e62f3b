package threads

import (
	"context"
	"sync"
	"time"
)

// stopGrace is how long replies that are on their way may take to settle when the manager is told to stop. The next start takes up
// what is not settled by then.
const stopGrace = 500 * time.Millisecond

// goroutines runs the goroutines of a manager, and waits for them when it stops.
type goroutines struct {
	watchCtx    context.Context // of those that only wait for something to happen; ends when the manager is told to stop
	cancelWatch context.CancelFunc
	workCtx     context.Context // outlives watchCtx by the grace
	cancelWork  context.CancelFunc
	idle        chan struct{} // closed when the last goroutine ended after closing

	mu      sync.Mutex // guards the fields that follow
	closing bool
	running int
}

func newGoroutines() *goroutines {
	g := &goroutines{idle: make(chan struct{})}
	g.workCtx, g.cancelWork = context.WithCancel(context.Background())
	g.watchCtx, g.cancelWatch = context.WithCancel(g.workCtx)
	return g
}

// start runs f in a goroutine that stop waits for. It reports false, and does nothing, once all have ended after closing. While
// others still work, new ones may start: they may be needed to settle what is on its way.
func (g *goroutines) start(f func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing && g.running == 0 {
		return false
	}
	g.running++
	go func() {
		defer g.done()
		f(g.workCtx)
	}()
	return true
}

func (g *goroutines) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closing && g.running == 0 {
		close(g.idle)
	}
}

// stop waits until all goroutines have ended, and cancels their context after the grace.
func (g *goroutines) stop() {
	late := time.AfterFunc(stopGrace, g.cancelWork)
	defer late.Stop()
	if g.beginClose() > 0 {
		<-g.idle
	}
	g.cancelWork()
}

// beginClose returns how many goroutines are still at work.
func (g *goroutines) beginClose() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closing = true
	return g.running
}

// isStopping reports whether nothing new should be begun.
func (g *goroutines) isStopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closing
}

// sleep waits for d. False: the manager stops.
func (g *goroutines) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.watchCtx.Done():
		return false
	}
}
