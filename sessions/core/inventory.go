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
func (qs *Queries) inventory(ctx context.Context) (f inventory, err error) {
	if f.recs, f.unreadable, err = qs.store.List(ctx); err != nil {
		return f, fmt.Errorf("list the records: %w", err)
	}
	f.panes, err = qs.panes.list(ctx, f.recs...)
	if errors.Is(err, sessions.ErrTerminalTimeout) {
		f.timeoutErr, err = err, nil
	}
	if err != nil {
		return f, fmt.Errorf("list the panes: %w", err)
	}
	return f, nil
}
