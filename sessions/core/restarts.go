package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// Restarts has the verb that restarts sessions onto the environment that is declared now.
type Restarts struct {
	records *records
	panes   *panes
	agents  *agents
	events  *events
	starter *starter
	store   sessions.Records
	config  func() Config
}

// RollingRestart restarts sessions in their panes: the tmux session, its windows and its clients stay, and the recorded
// conversation is resumed. A session that does not run, or whose conversation cannot be resumed, is skipped. An interrupted
// restart is finished. The error is a [*sessions.Refusal] because of [sessions.ErrEnvFile] when there is no env file.
func (rs *Restarts) RollingRestart(ctx context.Context, q sessions.RollingRestartRequest) (sessions.RestartResult, error) {
	env, err := rs.requireEnvFile()
	if err != nil {
		return sessions.RestartResult{}, err
	}
	rows, err := rs.restartRows(ctx, q)
	if err != nil {
		return sessions.RestartResult{}, err
	}
	var group errgroup.Group
	group.SetLimit(maxConcurrentSessions)
	for i := range rows {
		group.Go(func() error {
			if rows[i].Outcome == "" {
				rows[i] = rs.restartOne(ctx, rows[i], env, q)
			}
			if q.OnRow != nil {
				q.OnRow(rows[i])
			}
			return nil
		})
	}
	err = group.Wait()
	return sessions.RestartResult{DryRun: q.DryRun, Rows: rows, Malformed: env.Malformed, Refused: env.Refused, Warning: env.Warning}, err
}

// requireEnvFile reads the env file, and refuses when there is none.
func (rs *Restarts) requireEnvFile() (sessions.EnvFile, error) {
	env, err := rs.config().readEnvFile()
	switch {
	case err != nil:
		return sessions.EnvFile{}, &sessions.Refusal{Cause: sessions.ErrEnvFile, What: err.Error(), Remedy: "fix the file, or env.file in the configuration; no session was touched"}
	case !env.Configured:
		return sessions.EnvFile{}, &sessions.Refusal{Cause: sessions.ErrEnvFile, What: "env.file is not set in the configuration, so there is nothing to bring sessions onto",
			Remedy: "set env.file to the file that declares their variables"}
	}
	return env, env.CheckComplete()
}

// restartRows returns the rows of the requested sessions. A record that cannot be read has its outcome already.
func (rs *Restarts) restartRows(ctx context.Context, q sessions.RollingRestartRequest) ([]sessions.RestartRow, error) {
	var rows []sessions.RestartRow
	for _, ref := range q.Refs {
		rows = append(rows, sessions.RestartRow{Ref: ref, TmuxTarget: ref.TmuxName(), Stale: []string{}})
	}
	if !q.All {
		return rows, nil
	}
	recs, broken, err := rs.store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	rows = rows[:0]
	for _, r := range recs {
		rows = append(rows, sessions.RestartRow{Ref: r.Ref, TmuxTarget: r.Ref.TmuxName(), Stale: []string{}})
	}
	for _, u := range broken {
		row := sessions.BrokenRow(u)
		rows = append(rows, sessions.RestartRow{Ref: u.Ref, TmuxTarget: row.TmuxTarget, Outcome: sessions.OutcomeFailed, Detail: row.Detail, Stale: []string{}})
	}
	return rows, nil
}

// restartOne restarts one session. Errors are in the row, and values of the environment never are.
func (rs *Restarts) restartOne(ctx context.Context, row sessions.RestartRow, env sessions.EnvFile, q sessions.RollingRestartRequest) sessions.RestartRow {
	o := &restartJob{part: rs, row: row, env: env, dryRun: q.DryRun, onlyStale: q.Stale}
	outcome, err := o.run(ctx)
	o.row.Outcome = outcome
	var skip *skipError
	switch {
	case errors.As(err, &skip):
		o.row.Outcome, o.row.Detail = sessions.OutcomeSkipped, err.Error()
	case err != nil:
		o.row.Outcome, o.row.Detail = sessions.OutcomeFailed, err.Error()
	}
	scrub := envstate.NewScrubber(env.Values)
	o.row.Detail = envstate.Scrub(scrub.Scrub(o.row.Detail), o.oldValues)
	if o.started {
		rs.events.emit(ctx, sessions.EventRestarted, levelOf(o.row), o.rec, map[string]any{"outcome": o.row.Outcome, "stale": o.row.Stale,
			"detail": o.row.Detail, "pane": o.rec.Pane, "conversation": o.rec.Conversation})
	}
	return o.row
}

// expectedEnv is what the process in a session's pane should hold. It leaves out the names to which the product or the session's
// harness gives another value.
func (rs *Restarts) expectedEnv(ctx context.Context, rec sessions.Record, p sessions.Pane, env sessions.EnvFile) envstate.Expected {
	var own map[string]string
	if h, err := rs.agents.harness(rec.Definition.Harness); err == nil {
		cmd, err := h.Command(sessions.Launch{Conversation: rec.Conversation, Resume: true, Args: rec.Definition.HarnessArgs, Cwd: rec.Definition.Cwd})
		if err == nil {
			own = cmd.Env
		}
	}
	return envstate.Expected{Values: envstate.Passed(env.Values, rs.config().paneEnvironment(rec, env.Values, own)), Started: startedNames(p, env)}
}

// startedNames returns the names that were declared when the process in the pane was started, without those of which it is not
// known what is declared now.
func startedNames(p sessions.Pane, env sessions.EnvFile) []string {
	return slices.DeleteFunc(strings.Fields(p.Declared), func(name string) bool { return slices.Contains(env.Unset, name) })
}
