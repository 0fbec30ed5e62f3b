package actor

import (
	"context"
	"sync"
	"time"

	"the-loop/sessions/loop"
)

// stopGrace is how long goroutines may take to finish their work before their context ends.
const stopGrace = 500 * time.Millisecond

// Goroutines runs goroutines, and waits for them when they are to stop.
type Goroutines struct {
	WatchCtx    context.Context // of those that only wait for something to happen; EndWatch ends it
	cancelWatch context.CancelFunc
	WorkCtx     context.Context // outlives WatchCtx by the grace
	cancelWork  context.CancelFunc
	idle        chan struct{} // closed when the last goroutine ended after closing

	mu      sync.Mutex // guards the fields that follow
	closing bool
	running int
}

// NewGoroutines makes a group without any goroutine.
func NewGoroutines() *Goroutines {
	g := &Goroutines{idle: make(chan struct{})}
	g.WorkCtx, g.cancelWork = context.WithCancel(context.Background())
	g.WatchCtx, g.cancelWatch = context.WithCancel(g.WorkCtx)
	return g
}

// Start runs f in a goroutine that Stop waits for. It reports false, and does nothing, once all have ended after closing. While
// others still work, new ones may start: they may be needed to settle what is on its way.
func (g *Goroutines) Start(f func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing && g.running == 0 {
		return false
	}
	g.running++
	go func() {
		defer g.done()
		f(g.WorkCtx)
	}()
	return true
}

func (g *Goroutines) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closing && g.running == 0 {
		close(g.idle)
	}
}

// EndWatch ends WatchCtx: nothing that only waits is needed any more.
func (g *Goroutines) EndWatch() { g.cancelWatch() }

// Stop waits until all Goroutines have ended, and cancels their context after the grace.
func (g *Goroutines) Stop() {
	late := time.AfterFunc(stopGrace, g.cancelWork)
	defer late.Stop()
	if g.beginClose() > 0 {
		<-g.idle
	}
	g.cancelWork()
}

// beginClose returns how many Goroutines are still at work.
func (g *Goroutines) beginClose() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closing = true
	return g.running
}

// IsStopping reports whether nothing new should be begun.
func (g *Goroutines) IsStopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closing
}

// Sleep waits for d. False: WatchCtx ended.
func (g *Goroutines) Sleep(d time.Duration) bool { return loop.Sleep(g.WatchCtx, d) }
