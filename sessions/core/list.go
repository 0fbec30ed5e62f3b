package core

import (
	"context"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

// List returns a row for every session of both kinds, declared or recorded, sorted by ref, from one list of the panes. When tmux
// does not answer, the state of the rows is [sessions.StateUnknown]. A record that cannot be read is a row with
// [sessions.StateBroken].
func (qs *Queries) List(ctx context.Context) ([]sessions.Row, error) {
	rows, _, err := qs.listRows(ctx)
	return rows, err
}

// ListFiltered is [Queries.List] for the sessions of one kind and, if any are named, of some states.
func (qs *Queries) ListFiltered(ctx context.Context, q sessions.ListRequest) ([]sessions.Row, error) {
	rows, err := qs.List(ctx)
	rows = slices.DeleteFunc(rows, func(r sessions.Row) bool {
		return r.Kind != q.Kind || len(q.States) > 0 && !slices.Contains(q.States, r.State)
	})
	for i, r := range rows {
		if doubt := qs.doubtDetail(ctx, r); doubt != "" {
			rows[i].Detail = strings.TrimPrefix(r.Detail+"; "+doubt, "; ")
		}
	}
	return rows, err
}

// doubtDetail names the deliveries to a work item that are in doubt.
func (qs *Queries) doubtDetail(ctx context.Context, r sessions.Row) string {
	if r.Kind != sessions.KindWorkItem || r.State == sessions.StateBroken {
		return ""
	}
	l, err := qs.store.LoadLedger(ctx, r.Ref)
	if err != nil {
		return err.Error()
	}
	return l.DescribeDoubt()
}

// listRows is [Queries.List], and also returns the error with which tmux did not answer.
func (qs *Queries) listRows(ctx context.Context) (rows []sessions.Row, timeoutErr, err error) {
	f, err := qs.inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
	return qs.buildRows(ctx, f), f.TimeoutErr, nil
}

// buildRows makes a row of each session, sorted by ref.
func (qs *Queries) buildRows(ctx context.Context, f sessions.Inventory) []sessions.Row {
	cfg := qs.config()
	deadline := time.Now().Add(trackTimeout)
	return f.Rows(sessions.RowOptions{Enabled: cfg.Enabled, Declared: cfg.Declared, Harness: qs.agents.harness,
		Conversation: func(h sessions.Harness, r sessions.Record) string {
			if time.Now().After(deadline) {
				return r.Conversation
			}
			return qs.agents.currentConversation(ctx, h, r)
		}})
}

// trackTimeout bounds how long a list reads the agents' current conversations. After it, rows show the recorded ones.
const trackTimeout = 250 * time.Millisecond
