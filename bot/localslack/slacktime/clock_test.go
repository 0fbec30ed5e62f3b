package slacktime

import (
	"testing"
	"time"
)

func TestTheFakeClockWakesDueWaiters(t *testing.T) {
	t.Parallel()
	c := NewFakeClock(time.Unix(1_700_000_000, 0))
	soon, late, now := c.After(time.Second), c.After(time.Minute), c.After(0)
	<-now
	c.Advance(time.Second)
	<-soon
	select {
	case <-late:
		t.Error("a minute passed in a second")
	default:
	}
	if !c.Now().Equal(time.Unix(1_700_000_000, 0).Add(time.Second)) {
		t.Errorf("it is %s", c.Now())
	}
}

func TestTheSchedulerRunsInOrderAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	c := NewFakeClock(time.Unix(1_700_000_000, 0))
	s := NewScheduler(c)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() { s.Run(done); close(ended) }()
	got := make(chan string, 4)
	s.After(2*time.Second, func() { got <- "b" })
	s.After(time.Second, func() { got <- "a" })
	s.After(time.Second, func() { got <- "never" })()
	s.After(2*time.Second, func() { got <- "c" })
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
