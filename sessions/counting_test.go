package sessions_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"the-loop/sessions"
)

// counting is a terminal that counts what is asked of it and can put something in between.
type counting struct {
	sessions.Terminal
	calls atomic.Int64

	mu      sync.Mutex // guards the fields that follow
	pressed []string
	refuse  error // of Deliver, before it does anything
	after   error // of Deliver and Spawn, when they have done it
}

func (c *counting) Panes(ctx context.Context) ([]sessions.Pane, error) {
	c.calls.Add(1)
	return c.Terminal.Panes(ctx)
}

func (c *counting) Spawn(ctx context.Context, s sessions.Spawn) (sessions.Pane, error) {
	c.calls.Add(1)
	p, err := c.Terminal.Spawn(ctx, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.after != nil {
		return sessions.Pane{}, c.after
	}
	return p, err
}

func (c *counting) End(ctx context.Context, t sessions.Target, grace time.Duration) error {
	c.calls.Add(1)
	return c.Terminal.End(ctx, t, grace)
}

func (c *counting) Deliver(ctx context.Context, d sessions.Delivery) error {
	c.calls.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil {
		return c.refuse
	}
	if err := c.Terminal.Deliver(ctx, d); err != nil {
		return err
	}
	return c.after
}

func (c *counting) Press(ctx context.Context, t sessions.Target, keys string) error {
	c.calls.Add(1)
	c.mu.Lock()
	c.pressed = append(c.pressed, keys)
	c.mu.Unlock()
	return c.Terminal.Press(ctx, t, keys)
}

func (c *counting) presses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.pressed...)
}
