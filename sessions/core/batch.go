package core

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"the-loop/sessions"
)

// StartAll starts every standing session that should be up: those that are declared with autoStart, and those that were created
// with it. A session that fails does not stop the others. When tmux does not answer, nothing is started.
func (lc *Lifecycle) StartAll(ctx context.Context) (sessions.BatchResult, error) {
	if !lc.config().Enabled {
		return sessions.BatchResult{Disabled: true, Rows: []sessions.Row{}}, nil
	}
	rows, err := lc.listStanding(ctx)
	if err != nil {
		return sessions.BatchResult{}, err
	}
	return forEach(rows, func(r sessions.Row) bool { return r.Expected || r.State == sessions.StateBroken }, func(r sessions.Row) (sessions.Row, error) {
		return lc.Start(ctx, sessions.StartRequest{Ref: r.Ref})
	})
}

// StopAll stops every recorded standing session, also those that are not declared any more.
func (lc *Lifecycle) StopAll(ctx context.Context) (sessions.BatchResult, error) {
	rows, err := lc.listStanding(ctx)
	if err != nil {
		return sessions.BatchResult{}, err
	}
	return forEach(rows, func(r sessions.Row) bool { return r.State != sessions.StateNew }, func(r sessions.Row) (sessions.Row, error) {
		if r.State == sessions.StateStopped {
			r.Outcome = sessions.OutcomeAlreadyStopped
			return r, nil
		}
		return lc.Stop(ctx, sessions.StopRequest{Ref: r.Ref})
	})
}

// listStanding lists the standing sessions. It fails when tmux does not answer: every single verb would.
func (lc *Lifecycle) listStanding(ctx context.Context) ([]sessions.Row, error) {
	rows, timeoutErr, err := lc.listRows(ctx)
	rows = slices.DeleteFunc(rows, func(r sessions.Row) bool { return r.Kind != sessions.KindStanding })
	if err == nil && timeoutErr != nil {
		err = fmt.Errorf("nothing was changed: %w", timeoutErr)
	}
	return rows, err
}

// maxConcurrentSessions is how many sessions one process works on at once. Most of the time it waits for agents that start or
// end.
const maxConcurrentSessions = 64

// forEach runs the verb on the chosen sessions, many at once. A session that fails does not stop the others.
func forEach(rows []sessions.Row, chosen func(sessions.Row) bool, verb func(sessions.Row) (sessions.Row, error)) (sessions.BatchResult, error) {
	all := sessions.BatchResult{Rows: slices.DeleteFunc(rows, func(r sessions.Row) bool { return !chosen(r) })}
	var group errgroup.Group
	group.SetLimit(maxConcurrentSessions)
	for i, r := range all.Rows {
		group.Go(func() error { all.Rows[i] = applyVerb(r, verb); return nil })
	}
	return all, group.Wait()
}

// applyVerb runs the verb on one session, and makes a row of its error.
func applyVerb(r sessions.Row, verb func(sessions.Row) (sessions.Row, error)) sessions.Row {
	if r.Ref == "" { // a file that belongs to no session
		r.Outcome = sessions.OutcomeFailed
		return r
	}
	row, err := verb(r)
	if err != nil {
		r.Outcome, r.Detail = sessions.OutcomeFailed, err.Error()
		return r
	}
	row.Expected = r.Expected
	return row
}
