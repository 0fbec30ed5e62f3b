package sessions

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// BatchResult is what a verb did to many sessions.
type BatchResult struct {
	Disabled bool  `json:"disabled"` // standingSessions.enabled is false, so none is started
	Rows     []Row `json:"sessions"` // by name; of a failure: [OutcomeFailed], and Detail
}

// Failed counts the sessions for which the verb did not do what it is for.
func (a BatchResult) Failed() (n int) {
	for _, r := range a.Rows {
		if r.Outcome == OutcomeFailed {
			n++
		}
	}
	return n
}

// StartAll starts every standing session that should be up: those that are declared with autoStart, and those that were created
// with it. One that fails does not keep the others. When tmux does not answer nothing is tried.
func (c *Core) StartAll(ctx context.Context) (BatchResult, error) {
	if !c.o.Config().Enabled {
		return BatchResult{Disabled: true, Rows: []Row{}}, nil
	}
	rows, err := c.listStanding(ctx)
	if err != nil {
		return BatchResult{}, err
	}
	return c.forEach(rows, func(r Row) bool { return r.Expected || r.State == StateBroken }, func(r Row) (Row, error) {
		return c.Start(ctx, StartRequest{Ref: r.Ref})
	})
}

// StopAll stops every recorded standing session, whatever the configuration says of it.
func (c *Core) StopAll(ctx context.Context) (BatchResult, error) {
	rows, err := c.listStanding(ctx)
	if err != nil {
		return BatchResult{}, err
	}
	return c.forEach(rows, func(r Row) bool { return r.State != StateNew }, func(r Row) (Row, error) {
		if r.State == StateStopped {
			r.Outcome = OutcomeAlreadyStopped
			return r, nil
		}
		return c.Stop(ctx, StopRequest{Ref: r.Ref})
	})
}

// listStanding lists the standing sessions, unless tmux does not answer: each would have to find that out by itself.
func (c *Core) listStanding(ctx context.Context) ([]Row, error) {
	rows, silent, err := c.listRows(ctx)
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Kind != KindStanding })
	if err == nil && silent != nil {
		err = fmt.Errorf("nothing was changed: %w", silent)
	}
	return rows, err
}

// maxConcurrentSessions is how many sessions one process works on at once. Most of that time it waits: for an agent to live through
// its start, or to end.
const maxConcurrentSessions = 64

// each does the verb to the chosen sessions.
func (c *Core) forEach(rows []Row, chosen func(Row) bool, verb func(Row) (Row, error)) (BatchResult, error) {
	all := BatchResult{Rows: slices.DeleteFunc(rows, func(r Row) bool { return !chosen(r) })}
	var group errgroup.Group
	group.SetLimit(maxConcurrentSessions)
	for i, r := range all.Rows {
		group.Go(func() error { all.Rows[i] = applyVerb(r, verb); return nil })
	}
	return all, group.Wait()
}

// applyVerb makes a row of an error.
func applyVerb(r Row, verb func(Row) (Row, error)) Row {
	if r.Ref == "" { // a file that is no session's
		r.Outcome = OutcomeFailed
		return r
	}
	row, err := verb(r)
	if err != nil {
		r.Outcome, r.Detail = OutcomeFailed, err.Error()
		return r
	}
	row.Expected = r.Expected
	return row
}
