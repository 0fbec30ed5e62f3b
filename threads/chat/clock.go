package chat

import (
	"sync"
	"time"
)

// Clock is the time by Slack's clock, as far as Slack told it, and by our monotonic clock since then. That somebody sets
// this machine's clock changes nothing of it. The zero Clock knows nothing yet.
type Clock struct {
	mu    sync.Mutex // guards the fields that follow
	slack time.Time
	at    time.Time // when it was that, with the monotonic clock; zero: never
}

// dateStep is how exact the Date of a response is: it is cut to the second, and older by the time that it was on its way.
const dateStep = 2 * time.Second

// ObserveDate sets the clock by the Date of a response that came just now.
func (c *Clock) ObserveDate(date time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ahead := c.nowLocked().Sub(date); c.at.IsZero() || ahead < 0 || ahead > dateStep {
		c.setLocked(date)
	}
}

// ObserveEvent sets the clock no earlier than the moment of an event. An event that Slack sends again is old and changes nothing.
func (c *Clock) ObserveEvent(moment time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !moment.IsZero() && (c.at.IsZero() || c.nowLocked().Before(moment)) {
		c.setLocked(moment)
	}
}

// Now is the time by Slack's clock; false when nothing is known of it yet.
func (c *Clock) Now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked(), !c.at.IsZero()
}

// FromLocal is a moment of this machine's clock by Slack's; zero when it is zero, or nothing is known yet.
func (c *Clock) FromLocal(at time.Time) time.Time {
	now, known := c.Now()
	if at.IsZero() || !known {
		return time.Time{}
	}
	return now.Add(time.Until(at))
}

// nowLocked is the time. The caller holds mu.
func (c *Clock) nowLocked() time.Time {
	if c.at.IsZero() {
		return time.Time{}
	}
	return c.slack.Add(time.Since(c.at))
}

// setLocked sets the time. The caller holds mu. What is kept of it has no monotonic reading, which would be ours.
func (c *Clock) setLocked(now time.Time) { c.slack, c.at = now.Round(0), time.Now() }
