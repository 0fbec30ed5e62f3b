package localslack

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

type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

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

// scheduler runs functions when the workspace's clock reaches their time. run is its one goroutine.
type scheduler struct {
	clock Clock
	wake  chan struct{}

	mu    sync.Mutex // guards the fields that follow
	tasks taskHeap
	seq   int
}

type task struct {
	due       time.Time
	seq       int
	fn        func()
	cancelled bool
}

type taskHeap []*task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].seq < h[j].seq
	}
	return h[i].due.Before(h[j].due)
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

func newScheduler(clock Clock) *scheduler {
	return &scheduler{clock: clock, wake: make(chan struct{}, 1)}
}

// after schedules fn and returns a function that calls it off.
func (s *scheduler) after(d time.Duration, fn func()) (cancel func()) {
	s.mu.Lock()
	s.seq++
	t := &task{due: s.clock.Now().Add(d), seq: s.seq, fn: fn}
	heap.Push(&s.tasks, t)
	first := s.tasks[0] == t
	s.mu.Unlock()
	if first {
		s.signal()
	}
	return func() {
		s.mu.Lock()
		t.cancelled = true
		t.fn = nil
		s.mu.Unlock()
	}
}

func (s *scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *scheduler) run(done <-chan struct{}) {
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
func (s *scheduler) runDue() (next time.Time, ok bool) {
	for {
		fn, next, ok := s.pop()
		if fn == nil {
			return next, ok
		}
		fn()
	}
}

func (s *scheduler) pop() (fn func(), next time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.tasks) > 0 {
		t := s.tasks[0]
		if t.cancelled {
			heap.Pop(&s.tasks)
			continue
		}
		if t.due.After(s.clock.Now()) {
			return nil, t.due, true
		}
		heap.Pop(&s.tasks)
		return t.fn, time.Time{}, true
	}
	return nil, time.Time{}, false
}
