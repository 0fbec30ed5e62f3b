package core

import (
	"context"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

// List returns a row for every session of both kinds, declared or recorded, by ref, with one look at tmux for all of them. When tmux
// does not answer, the rows are there with [StateUnknown]. A record that cannot be read is a row with [StateBroken].
func (qs *Queries) List(ctx context.Context) ([]sessions.Row, error) {
	rows, _, err := qs.listRows(ctx)
	return rows, err
}

// ListFiltered is [Core.SessionList] for the sessions of one kind: the two are separate, and no verb on one lists the other.
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

// listRows is List, and beside it how tmux was silent.
func (qs *Queries) listRows(ctx context.Context) (rows []sessions.Row, silent, err error) {
	f, err := qs.inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
	return qs.buildRows(ctx, f), f.TimeoutErr, nil
}

// buildRows makes a row of each session, by ref.
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

// trackTimeout bounds how long a list asks agents which conversation they are in. Those that it does not come to have the
// recorded one, which each text and each stop brings up to date.
const trackTimeout = 250 * time.Millisecond
