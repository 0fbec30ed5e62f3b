package core

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
)

// inventory is every record and every pane, each read once.
type inventory struct {
	recs       []sessions.Record
	unreadable []*sessions.UnreadableError
	panes      []sessions.Pane
	timeoutErr error // how tmux did not answer; nil: it did
}

// inventory reads the records, and then the panes: a session that is just being started is not taken for one that has ended.
func (c *Core) inventory(ctx context.Context) (f inventory, err error) {
	if f.recs, f.unreadable, err = c.o.Store.List(ctx); err != nil {
		return f, fmt.Errorf("list the records: %w", err)
	}
	f.panes, err = c.listPanes(ctx, f.recs...)
	if errors.Is(err, sessions.ErrTerminalTimeout) {
		f.timeoutErr, err = err, nil
	}
	if err != nil {
		return f, fmt.Errorf("list the panes: %w", err)
	}
	return f, nil
}

// Survey is [Core.SessionList] and [Core.Drift] of one moment: records and panes are read once for both.
func (c *Core) Survey(ctx context.Context) (sessions.Survey, error) {
	f, err := c.inventory(ctx)
	if err != nil {
		return sessions.Survey{}, err
	}
	rows := c.buildRows(ctx, f)
	return sessions.Survey{Rows: rows, Drift: c.computeDrift(func(d *sessions.Drift, declared map[string]string) error {
		return c.compareSessions(ctx, d, f, declared)
	})}, nil
}
