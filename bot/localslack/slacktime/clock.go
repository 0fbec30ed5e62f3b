// Package slacktime is the time of the local workspace: a clock that a test can move, a scheduler on it, and timestamps as
// Slack writes them.
package slacktime

import (
	"container/heap"
	"sync"
	"time"
)

// Clock is the workspace's time.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// RealClock is the time of this machine.
type RealClock struct{}

// Now implements [Clock].
func (RealClock) Now() time.Time { return time.Now() }

// After implements [Clock].
func (RealClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// FakeClock stands still until a test moves it.
type FakeClock struct {
	mu      sync.Mutex // guards the fields that follow
	now     time.Time
	waiters map[chan time.Time]time.Time
}

// NewFakeClock returns a clock that stands at start.
func NewFakeClock(start time.Time) *FakeClock {
	return &FakeClock{now: start, waiters: map[chan time.Time]time.Time{}}
}

// Now is the time the clock stands at.
func (c *FakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After sends once when the clock has been moved by d; at once when d is not positive.
func (c *FakeClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- c.now
		return ch
	}
	c.waiters[ch] = c.now.Add(d)
	return ch
}

// Advance moves the clock forward and wakes who waited for that. What they do then, and schedule from there, is not
// awaited: a test that needs a chain of deadlines advances step by step.
func (c *FakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for ch, due := range c.waiters {
		if !due.After(c.now) {
			delete(c.waiters, ch)
			ch <- c.now
		}
	}
}

// Scheduler runs functions when the workspace's clock reaches their time. run is its one goroutine.
type Scheduler struct {
	clock Clock
	wake  chan struct{}

	Mu    sync.Mutex // guards the fields that follow
	Tasks taskHeap
	seq   int
}

type task struct {
	Due       time.Time
	seq       int
	fn        func()
	Cancelled bool
}

type taskHeap []*task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	if h[i].Due.Equal(h[j].Due) {
		return h[i].seq < h[j].seq
	}
	return h[i].Due.Before(h[j].Due)
}
func (h taskHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *taskHeap) Push(x any)   { *h = append(*h, x.(*task)) }
func (h *taskHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// NewScheduler makes a scheduler on a clock. Run runs what it is given.
func NewScheduler(clock Clock) *Scheduler {
	return &Scheduler{clock: clock, wake: make(chan struct{}, 1)}
}

// After schedules fn and returns a function that calls it off.
func (s *Scheduler) After(d time.Duration, fn func()) (cancel func()) {
	s.Mu.Lock()
	s.seq++
	t := &task{Due: s.clock.Now().Add(d), seq: s.seq, fn: fn}
	heap.Push(&s.Tasks, t)
	first := s.Tasks[0] == t
	s.Mu.Unlock()
	if first {
		s.signal()
	}
	return func() {
		s.Mu.Lock()
		t.Cancelled = true
		t.fn = nil
		s.Mu.Unlock()
	}
}

func (s *Scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run runs what is due until done is closed.
func (s *Scheduler) Run(done <-chan struct{}) {
	var timer <-chan time.Time
	var armed time.Time
	for {
		due, ok := s.runDue()
		switch {
		case !ok:
			timer, armed = nil, time.Time{}
		case !due.Equal(armed) || timer == nil:
			timer, armed = s.clock.After(due.Sub(s.clock.Now())), due
			if !due.After(s.clock.Now()) {
				continue // the clock was moved between the two looks
			}
		}
		select {
		case <-timer:
			timer = nil
		case <-s.wake:
		case <-done:
			return
		}
	}
}

// runDue runs what is due and returns the time of what is next.
func (s *Scheduler) runDue() (next time.Time, ok bool) {
	for {
		fn, next, ok := s.pop()
		if fn == nil {
			return next, ok
		}
		fn()
	}
}

func (s *Scheduler) pop() (fn func(), next time.Time, ok bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for len(s.Tasks) > 0 {
		t := s.Tasks[0]
		if t.Cancelled {
			heap.Pop(&s.Tasks)
			continue
		}
		if t.Due.After(s.clock.Now()) {
			return nil, t.Due, true
		}
		heap.Pop(&s.Tasks)
		return t.fn, time.Time{}, true
	}
	return nil, time.Time{}, false
}
