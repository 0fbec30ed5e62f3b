package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"the-loop/sessions"
)

// countingTerminal is a terminal that counts what is asked of it and can put something in between.
type countingTerminal struct {
	sessions.Terminal
	calls atomic.Int64

	mu         sync.Mutex // guards the fields that follow
	pressed    []string
	failBefore error // of Deliver, before it does anything
	failAfter  error // of Deliver and Spawn, when they have done it
}

func (c *countingTerminal) Panes(ctx context.Context) ([]sessions.Pane, error) {
	c.calls.Add(1)
	return c.Terminal.Panes(ctx)
}

func (c *countingTerminal) Spawn(ctx context.Context, s sessions.Spawn) (sessions.Pane, error) {
	c.calls.Add(1)
	p, err := c.Terminal.Spawn(ctx, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.failAfter != nil {
		return sessions.Pane{}, c.failAfter
	}
	return p, err
}

func (c *countingTerminal) End(ctx context.Context, t sessions.Target, grace time.Duration) error {
	c.calls.Add(1)
	return c.Terminal.End(ctx, t, grace)
}

func (c *countingTerminal) Paste(ctx context.Context, d sessions.Paste) error {
	c.calls.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failBefore != nil {
		return c.failBefore
	}
	if err := c.Terminal.Paste(ctx, d); err != nil {
		return err
	}
	return c.failAfter
}

func (c *countingTerminal) Press(ctx context.Context, t sessions.Target, keys string) error {
	c.calls.Add(1)
	c.mu.Lock()
	c.pressed = append(c.pressed, keys)
	c.mu.Unlock()
	return c.Terminal.Press(ctx, t, keys)
}

func (c *countingTerminal) presses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.pressed...)
}
