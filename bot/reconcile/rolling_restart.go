package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"the-loop/bot/render"
	"the-loop/sessions"
)

// restartJob is a restart that runs, or is about to.
type restartJob struct {
	by      string
	all     bool // also those that hold what is declared
	started bool
	total   int // how many were stale
	rows    []sessions.RestartRow
	done    chan struct{} // closed when the fields that follow are set
	result  sessions.RestartResult
	err     error
}

// resumeJob continues the restart that an earlier run of the bot left, if the member who asked for it still may.
func (r *DriftNotice) resumeJob(ctx context.Context) {
	r.mu.Lock()
	left := r.state.Restart
	r.mu.Unlock()
	if left == nil {
		return
	}
	if err := r.o.Authorize(ctx, left.RequestedBy); err != nil {
		r.o.Log.Warn("not continuing an interrupted restart of sessions", "member", left.RequestedBy, "error", err)
		r.updateState(func(s *driftState) { s.Restart = nil })
		return
	}
	run := &restartJob{by: left.RequestedBy, total: r.o.Restarter.Drift(ctx).Stale, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.job = run
}

// alreadyRunning answers a request for a restart while one runs.
func alreadyRunning(by string) string {
	return "The sessions are already being restarted, as <@" + by + "> asked."
}

// requestRestart starts a restart of the stale sessions, which are so many, or with all of every one. It reports false, with the job
// that runs, when there is one already.
func (r *DriftNotice) requestRestart(by string, all bool, stale int) (run *restartJob, fresh bool) {
	r.mu.Lock()
	if r.job != nil {
		defer r.mu.Unlock()
		return r.job, false
	}
	run = &restartJob{by: by, all: all, total: stale, done: make(chan struct{})}
	r.job = run
	r.mu.Unlock()
	r.updateState(func(s *driftState) {
		s.Restart, s.LastResult = &requestedRestart{RequestedBy: by, Started: time.Now()}, nil
	})
	r.Wake()
	return run, true
}

// startJob runs a requested restart.
func (r *DriftNotice) startJob(ctx context.Context, wg *sync.WaitGroup) {
	r.mu.Lock()
	run := r.job
	fresh := run != nil && !run.started
	if fresh {
		run.started = true
	}
	r.mu.Unlock()
	if fresh {
		wg.Go(func() { r.runJob(ctx, run) })
	}
}

func (r *DriftNotice) runJob(ctx context.Context, run *restartJob) {
	out, err := r.o.Restarter.RollingRestart(ctx, sessions.RollingRestartRequest{All: true, Stale: !run.all, OnRow: func(row sessions.RestartRow) {
		if row.Outcome == sessions.OutcomeSkipped {
			return
		}
		r.mu.Lock()
		run.rows = append(run.rows, row)
		r.mu.Unlock()
		r.Wake()
	}})
	if !run.all {
		out.Rows = restartedRows(out.Rows)
	}
	run.result, run.err = out, err
	r.finishJob(ctx, run)
	close(run.done)
	r.o.OnRestarted()
	r.Wake()
}

// restartedRows are the rows of the sessions that were restarted or failed to.
func restartedRows(rows []sessions.RestartRow) []sessions.RestartRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r sessions.RestartRow) bool { return r.Outcome == sessions.OutcomeSkipped })
}

// finishJob records the result of a restart. An interrupted one is continued by the next run of the bot.
func (r *DriftNotice) finishJob(ctx context.Context, run *restartJob) {
	r.mu.Lock()
	r.job = nil
	r.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if run.err != nil {
		r.o.Log.Warn("could not restart sessions", "err", run.err)
	}
	r.updateState(func(s *driftState) { s.Restart, s.LastResult = nil, restartedRows(run.result.Rows) })
}

// RestartStale restarts the sessions with a stale environment, and answers at once. The member was authorized by the caller.
func (r *DriftNotice) RestartStale(ctx context.Context, user string) (string, error) {
	d := r.o.Restarter.Drift(ctx)
	r.mu.Lock()
	run := r.job
	r.mu.Unlock()
	switch {
	case run != nil:
		return alreadyRunning(run.by), nil
	case d.Problem != "" || !d.Configured:
		_, err := r.o.Restarter.RollingRestart(ctx, sessions.RollingRestartRequest{})
		return "", err
	case d.Stale == 0:
		r.Wake()
		return "No session runs on a stale environment any more, so none was restarted.", nil
	}
	if run, fresh := r.requestRestart(user, false, d.Stale); !fresh {
		return alreadyRunning(run.by), nil
	}
	return fmt.Sprintf("Restarting %d of the sessions. The message shows how far that is.", d.Stale), nil
}

// RestartAll restarts every running session and returns the result. A dry run only says which sessions would be restarted.
func (r *DriftNotice) RestartAll(ctx context.Context, user string, dryRun bool) (string, error) {
	if dryRun {
		out, err := r.o.Restarter.RollingRestart(ctx, sessions.RollingRestartRequest{All: true, DryRun: true})
		if err != nil {
			return "", err
		}
		return render.RestartSummary(out), nil
	}
	run, fresh := r.requestRestart(user, true, r.o.Restarter.Drift(ctx).Stale)
	if !fresh {
		return alreadyRunning(run.by), nil
	}
	timer := time.NewTimer(restartWait)
	defer timer.Stop()
	select {
	case <-run.done:
	case <-timer.C:
		return "The sessions are being restarted; that takes a while. " + render.InlineCode("list") + " and the message in the channel show how far it is.", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if run.err != nil {
		return "", run.err
	}
	return render.RestartSummary(run.result), nil
}
