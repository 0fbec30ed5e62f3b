package localslack

import (
	"testing"
	"time"
)

func TestTheFakeClockWakesDueWaiters(t *testing.T) {
	t.Parallel()
	c := NewFakeClock(startTime)
	soon, late, now := c.After(time.Second), c.After(time.Minute), c.After(0)
	<-now
	c.Advance(time.Second)
	<-soon
	select {
	case <-late:
		t.Error("a minute passed in a second")
	default:
	}
	if !c.Now().Equal(startTime.Add(time.Second)) {
		t.Errorf("it is %s", c.Now())
	}
}

func TestTheSchedulerRunsInOrderAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	c := NewFakeClock(startTime)
	s := newScheduler(c)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() { s.run(done); close(ended) }()
	got := make(chan string, 4)
	s.after(2*time.Second, func() { got <- "b" })
	s.after(time.Second, func() { got <- "a" })
	s.after(time.Second, func() { got <- "never" })()
	s.after(2*time.Second, func() { got <- "c" })
	c.Advance(2 * time.Second)
	for _, want := range []string{"a", "b", "c"} {
		if g := <-got; g != want && g != "never" {
			t.Errorf("got %s, want %s", g, want)
		} else if g == "never" {
			t.Error("a task that was called off ran")
		}
	}
	close(done)
	<-ended
}

func TestTheRingKeepsTheLastItems(t *testing.T) {
	t.Parallel()
	r := ring[int]{max: 3}
	for range 10 {
		r.add(func(seq int) int { return seq })
	}
	if got := r.since(0); len(got) != 3 || got[0] != 8 {
		t.Errorf("kept %v", got)
	}
	if got := r.since(9); len(got) != 1 || got[0] != 10 {
		t.Errorf("since 9: %v", got)
	}
	if got := r.since(10); len(got) != 0 {
		t.Errorf("since 10: %v", got)
	}
}
