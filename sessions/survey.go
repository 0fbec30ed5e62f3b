package sessions

import (
	"context"
	"errors"
	"fmt"
)

// inventory is every record and every pane, each read once.
type inventory struct {
	recs       []Record
	unreadable []*UnreadableError
	panes      []Pane
	timeoutErr error // how tmux did not answer; nil: it did
}

// inventory reads the records, and then the panes: a session that is just being started is not taken for one that has ended.
func (c *Core) inventory(ctx context.Context) (f inventory, err error) {
	if f.recs, f.unreadable, err = c.o.Store.List(ctx); err != nil {
		return f, fmt.Errorf("list the records: %w", err)
	}
	f.panes, err = c.listPanes(ctx, f.recs...)
	if errors.Is(err, ErrTerminalTimeout) {
		f.timeoutErr, err = err, nil
	}
	if err != nil {
		return f, fmt.Errorf("list the panes: %w", err)
	}
	return f, nil
}

// Survey is what status shows of the sessions.
type Survey struct {
	Rows  []Row // as of [Core.List]
	Drift Drift // as of [Core.Drift]
}

// Survey is [Core.List] and [Core.Drift] of one moment: records and panes are read once for both.
func (c *Core) Survey(ctx context.Context) (Survey, error) {
	f, err := c.inventory(ctx)
	if err != nil {
		return Survey{}, err
	}
	rows := c.buildRows(ctx, f)
	return Survey{Rows: rows, Drift: c.computeDrift(func(d *Drift, declared map[string]string) error { return d.compare(ctx, c, f, declared) })}, nil
}
