package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
	"the-loop/sessions/loop"
)

// EventRestarted says that a session was restarted in its pane onto what the env file declares.
const EventRestarted = "session.restarted"

// RollingRestart restarts the sessions in their panes: the tmux session, its window and those who look at it stay, and the recorded
// conversation is resumed. One that does not run, or whose conversation cannot be resumed, is skipped and not touched. A
// restart that was cut short before is finished. The error is a [*Refusal] for [ErrEnvFile] when there is no env file to
// roll onto.
func (c *Core) RollingRestart(ctx context.Context, q sessions.RollingRestartRequest) (sessions.RestartResult, error) {
	env, err := c.requireEnvFile()
	if err != nil {
		return sessions.RestartResult{}, err
	}
	rows, err := c.restartRows(ctx, q)
	if err != nil {
		return sessions.RestartResult{}, err
	}
	var group errgroup.Group
	group.SetLimit(maxConcurrentSessions)
	for i := range rows {
		group.Go(func() error {
			if rows[i].Outcome == "" {
				rows[i] = c.restartOne(ctx, rows[i], env, q)
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

// envFile is the env file, or the refusal of what cannot be done without one.
func (c *Core) requireEnvFile() (sessions.EnvFile, error) {
	env, err := c.o.Config().readEnvFile()
	switch {
	case err != nil:
		return sessions.EnvFile{}, &sessions.Refusal{Cause: sessions.ErrEnvFile, What: err.Error(), Remedy: "mend the file, or env.file in the configuration; no session was touched"}
	case !env.Configured:
		return sessions.EnvFile{}, &sessions.Refusal{Cause: sessions.ErrEnvFile, What: "env.file is not set in the configuration, so there is nothing to bring sessions onto",
			Remedy: "set env.file to the file that declares their variables"}
	}
	return env, nil
}

// restartRows are the rows of the sessions that are meant. One that nothing can be done to has its outcome already.
func (c *Core) restartRows(ctx context.Context, q sessions.RollingRestartRequest) ([]sessions.RestartRow, error) {
	var rows []sessions.RestartRow
	for _, ref := range q.Refs {
		rows = append(rows, sessions.RestartRow{Ref: ref, TmuxTarget: ref.TmuxName(), Stale: []string{}})
	}
	if !q.All {
		return rows, nil
	}
	recs, broken, err := c.o.Store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	rows = rows[:0]
	for _, r := range recs {
		rows = append(rows, sessions.RestartRow{Ref: r.Ref, TmuxTarget: r.Ref.TmuxName(), Stale: []string{}})
	}
	for _, u := range broken {
		row := brokenRow(u)
		rows = append(rows, sessions.RestartRow{Ref: u.Ref, TmuxTarget: row.TmuxTarget, Outcome: sessions.OutcomeFailed, Detail: row.Detail, Stale: []string{}})
	}
	return rows, nil
}

// restartOne rolls one session. Whatever goes wrong is in the row, and no value is.
func (c *Core) restartOne(ctx context.Context, row sessions.RestartRow, env sessions.EnvFile, q sessions.RollingRestartRequest) sessions.RestartRow {
	o := &restartJob{c: c, row: row, env: env, dryRun: q.DryRun, onlyStale: q.Stale}
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
		c.emit(ctx, EventRestarted, levelOf(o.row), o.rec, map[string]any{"outcome": o.row.Outcome, "stale": o.row.Stale,
			"detail": o.row.Detail, "pane": o.rec.Pane, "conversation": o.rec.Conversation})
	}
	return o.row
}

func levelOf(r sessions.RestartRow) slog.Level {
	if r.Outcome == sessions.OutcomeFailed || r.Outcome == sessions.OutcomeStale {
		return slog.LevelError
	}
	return slog.LevelInfo
}

// skipError says why a session is left as it is.
type skipError struct{ error }

func (e *skipError) Unwrap() error { return e.error }

func newSkipError(format string, args ...any) error { return &skipError{fmt.Errorf(format, args...)} }

// restartJob is one session on its way onto another environment.
type restartJob struct {
	c         *Core
	row       sessions.RestartRow
	env       sessions.EnvFile
	rec       sessions.Record
	oldValues map[string]string // of the declared and removed names, by the process that is replaced

	dryRun, onlyStale bool
	started           bool // the agent was touched
}

func (o *restartJob) run(ctx context.Context) (sessions.Outcome, error) {
	if o.dryRun { // a look needs no lock
		rec, err := o.load(ctx)
		if err != nil {
			return "", err
		}
		return o.restart(ctx, rec)
	}
	release, err := o.c.lockName(ctx, o.row.Ref, "restart")
	if err != nil {
		return "", err
	}
	defer release()
	rec, err := o.load(ctx)
	if err != nil {
		return "", err
	}
	release, err = o.c.lockID(ctx, rec.ID, "restart")
	if err != nil {
		return "", err
	}
	defer release()
	if rec, err = o.load(ctx); err != nil {
		return "", err
	}
	return o.restart(ctx, rec)
}

func (o *restartJob) load(ctx context.Context) (sessions.Record, error) {
	rec, err := o.c.o.Store.Load(ctx, o.row.Ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded):
		return sessions.Record{}, newSkipError("no session is registered as %s", o.row.Ref)
	case err != nil:
		return sessions.Record{}, err
	}
	o.row.Ref, o.row.ID, o.rec = rec.Ref, rec.ID, rec
	return rec, nil
}

// roll decides, and does it. The caller has the session's locks, or it is a dry run.
func (o *restartJob) restart(ctx context.Context, rec sessions.Record) (sessions.Outcome, error) {
	panes, err := o.c.listPanes(ctx, rec)
	if err != nil {
		return "", fmt.Errorf("look for the running session: %w", err)
	}
	own, there := paneOf(panes, rec.ID)
	if !there || own.Dead && rec.ReplacesPID == 0 {
		return "", newSkipError("it is not running")
	}
	r, err := o.newLauncher(ctx, rec, own)
	if err != nil {
		return "", err
	}
	want := o.c.expectedEnv(ctx, rec, o.env.Values)
	current := o.inspectOldEnv(ctx, own, want)
	switch {
	case o.onlyStale && current:
		return "", newSkipError("it holds what the env file declares")
	case o.dryRun:
		return sessions.OutcomeWouldRestart, nil
	}
	o.started = true
	defer func() { o.rec = r.rec }()
	if err := r.resumeInPane(ctx, own); err != nil {
		return "", err
	}
	outcome := o.verify(context.WithoutCancel(ctx), r.rec, want)
	o.row.Detail = r.detail
	return outcome, nil
}

// ready is the run of a session that can be resumed; all that can be told without touching the agent is told here.
func (o *restartJob) newLauncher(ctx context.Context, rec sessions.Record, own sessions.Pane) (*launcher, error) {
	def, declared := o.c.findDeclared(rec.Ref)
	if !declared {
		def = rec.Definition.Clone()
	}
	r, err := o.c.newLauncherWith(def, o.c.o.Config(), o.env.Values, "")
	if err != nil {
		return nil, err
	}
	r.prepareFor(ctx, def, rec, own)
	if err := r.checkResumable(); err != nil {
		return nil, newSkipError("%w", err)
	}
	_, err = r.harness.Command(sessions.Launch{Conversation: r.rec.Conversation, Resume: true, Args: def.HarnessArgs, Cwd: def.Cwd})
	if errors.Is(err, sessions.ErrCannotResume) {
		return nil, newSkipError("%w", err)
	}
	return r, err
}

// look sees what the process that is to be replaced holds, and reports whether that is what is declared.
func (o *restartJob) inspectOldEnv(ctx context.Context, own sessions.Pane, want expectedEnv) bool {
	actual, known := envstate.ProcessEnviron(ctx, own.PID)
	if !known || own.Dead {
		return false
	}
	o.oldValues = map[string]string{}
	for _, name := range want.names(own) {
		o.oldValues[name] = actual[name]
	}
	o.row.Stale = want.diff(own, actual)
	return len(o.row.Stale) == 0
}

// envStabiliseTime is how long a process that was just started may take until it holds what it was given: between fork and exec it
// still shows what tmux holds.
const envStabiliseTime = time.Second

// verify looks what the new process holds.
func (o *restartJob) verify(ctx context.Context, rec sessions.Record, want expectedEnv) sessions.Outcome {
	o.row.Stale = []string{}
	panes, err := o.c.listPanes(ctx, rec)
	own, there := paneOf(panes, rec.ID)
	if err != nil || !there || own.Dead {
		return sessions.OutcomeUnverified
	}
	differ, known := want.awaitMatch(ctx, own, envStabiliseTime)
	switch {
	case !known:
		return sessions.OutcomeUnverified
	case len(differ) > 0:
		o.row.Stale = differ
		return sessions.OutcomeStale
	}
	return sessions.OutcomeVerified
}

// expectedEnv is what the process of one session should hold of what the env file declares.
type expectedEnv struct{ values map[string]string }

// expectedEnv leaves out the names that the product or the session's harness gives another value.
func (c *Core) expectedEnv(ctx context.Context, rec sessions.Record, declared map[string]string) expectedEnv {
	var own map[string]string
	if h, err := c.o.Harnesses(rec.Definition.Harness); err == nil {
		cmd, err := h.Command(sessions.Launch{Conversation: rec.Conversation, Resume: true, Args: rec.Definition.HarnessArgs, Cwd: rec.Definition.Cwd})
		if err == nil {
			own = cmd.Env
		}
	}
	return expectedEnv{passedValues(declared, c.o.Config().paneEnvironment(rec, declared, own))}
}

// names are those that count for the pane's process: what is declared, and what was when it was started.
func (w expectedEnv) names(p sessions.Pane) []string {
	names := declaredNames(p)
	for name := range w.values {
		names = append(names, name)
	}
	return names
}

// diff are the names whose values the process lacks, holds otherwise, or holds though they are declared no more.
func (w expectedEnv) diff(p sessions.Pane, actual map[string]string) []string {
	differ := envstate.Compare(w.values, actual)
	for _, name := range declaredNames(p) {
		if _, still := w.values[name]; !still {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return slices.Compact(append([]string{}, differ...))
}

// settle looks until nothing differs, or the time is over; false: it cannot be known.
func (w expectedEnv) awaitMatch(ctx context.Context, p sessions.Pane, limit time.Duration) (differ []string, known bool) {
	over := time.Now().Add(limit)
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
		actual, ok := envstate.ProcessEnviron(ctx, p.PID)
		if differ, known = w.diff(p, actual), ok; known && len(differ) == 0 || time.Now().After(over) {
			return differ, known
		}
		if !loop.Sleep(ctx, pause) {
			return differ, known
		}
	}
}
