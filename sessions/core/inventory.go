package core

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
)

// inventory reads the records first and then the panes, so that a session that is just being started does not look ended.
func (qs *Queries) inventory(ctx context.Context) (f sessions.Inventory, err error) {
	if f.Records, f.Unreadable, err = qs.store.List(ctx); err != nil {
		return f, fmt.Errorf("list the records: %w", err)
	}
	f.Panes, err = qs.panes.list(ctx, f.Records...)
	if errors.Is(err, sessions.ErrTerminalTimeout) {
		f.TimeoutErr, err = err, nil
	}
	if err != nil {
		return f, fmt.Errorf("list the panes: %w", err)
	}
	return f, nil
}
