package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// Drift compares what every running session holds with what the env file declares, from one list of the panes. It never fails:
// what is not known is a row that says so, or [sessions.Drift].Problem.
func (qs *Queries) Drift(ctx context.Context) sessions.Drift {
	return qs.computeDrift(func(d *sessions.Drift, env sessions.EnvFile) error {
		f, err := qs.inventory(ctx)
		if err != nil {
			return err
		}
		return qs.compareSessions(ctx, d, f, env)
	})
}

// computeDrift reads the env file and, where there is one, calls compare.
func (qs *Queries) computeDrift(compare func(d *sessions.Drift, env sessions.EnvFile) error) sessions.Drift {
	d := sessions.Drift{Rows: []sessions.DriftRow{}}
	env, err := qs.config().readEnvFile()
	d.Configured, d.Malformed, d.Refused, d.Warning = env.Configured || err != nil, env.Malformed, env.Refused, env.Warning
	d.Unset = env.Unset
	d.ChangeCount = qs.envChanges.Observe(env.Values, err == nil)
	if err == nil && d.Configured {
		err = compare(&d, env)
	}
	if err != nil {
		d.Problem = err.Error()
	}
	return d
}

// compareSessions adds a row for each running session. Records that cannot be read are left to [Queries.List].
func (qs *Queries) compareSessions(ctx context.Context, d *sessions.Drift, f sessions.Inventory, env sessions.EnvFile) error {
	if f.TimeoutErr != nil {
		return fmt.Errorf("list the panes: %w", f.TimeoutErr)
	}
	of := make(map[string]sessions.Record, len(f.Records))
	for _, r := range f.Records {
		of[r.ID] = r
		if age := qs.now().Sub(r.Changed); r.Status == sessions.StatusStarting && age < staleStartAge {
			d.Starting++
		}
	}
	for _, p := range f.Panes {
		if r, ours := of[p.Mark]; ours && !p.Dead {
			d.Add(qs.compareSession(ctx, r, p, env))
			delete(of, r.ID)
		}
	}
	for _, r := range of {
		if r.Status == sessions.StatusRunning && qs.hasChanged(ctx, r) {
			d.Starting++
		}
	}
	slices.SortFunc(d.Rows, func(a, b sessions.DriftRow) int { return cmp.Compare(a.Ref, b.Ref) })
	return nil
}

// hasChanged reports whether a session was restarted while the records and then the panes were read: its pane is then of another
// moment than its record.
func (qs *Queries) hasChanged(ctx context.Context, r sessions.Record) bool {
	now, err := qs.store.Load(ctx, r.Ref)
	return err == nil && now.ID == r.ID && now.Status != sessions.StatusStopped && (now.Status != r.Status || !now.Changed.Equal(r.Changed))
}

// staleStartAge is the age from which an unfinished start counts as interrupted.
const staleStartAge = time.Minute

// freshRunAge is the age of a run below which a difference may come from a process that is still being started.
const freshRunAge = 2 * time.Second

// compareSession compares one session. Its harness is called only when there is a difference.
func (qs *Queries) compareSession(ctx context.Context, r sessions.Record, p sessions.Pane, env sessions.EnvFile) sessions.DriftRow {
	row := sessions.DriftRow{Ref: r.Ref, ID: r.ID, TmuxTarget: r.Ref.TmuxName(), State: sessions.DriftCurrent, Stale: []string{}}
	actual, known := envstate.ProcessEnviron(ctx, p.PID)
	all := envstate.Expected{Values: env.Values, Started: startedNames(p, env)}
	if known && len(all.Diff(actual)) == 0 {
		return row
	}
	want, limit := qs.expectedEnv(ctx, r, p, env), time.Duration(0)
	if qs.now().Sub(r.Changed) < freshRunAge {
		limit = envStabiliseTime / 4
	}
	differ, known := want.AwaitMatch(ctx, p.PID, limit)
	switch {
	case !known:
		row.State = sessions.DriftUnknown
	case len(differ) > 0:
		row.State, row.Stale = sessions.DriftStale, differ
	}
	return row
}
