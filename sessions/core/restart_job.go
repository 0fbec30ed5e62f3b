package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

func levelOf(r sessions.RestartRow) slog.Level {
	if r.Outcome == sessions.OutcomeFailed || r.Outcome == sessions.OutcomeStale {
		return slog.LevelError
	}
	return slog.LevelInfo
}

// skipError says why a session is not restarted.
type skipError struct{ error }

func (e *skipError) Unwrap() error { return e.error }

func newSkipError(format string, args ...any) error { return &skipError{fmt.Errorf(format, args...)} }

// restartJob restarts one session onto another environment.
type restartJob struct {
	part      *Restarts
	row       sessions.RestartRow
	env       sessions.EnvFile
	rec       sessions.Record
	oldValues map[string]string // of the declared and removed names, in the process that is replaced

	dryRun, onlyStale bool
	started           bool // the agent was touched
}

func (o *restartJob) run(ctx context.Context) (sessions.Outcome, error) {
	if o.dryRun { // reading needs no lock
		rec, err := o.load(ctx)
		if err != nil {
			return "", err
		}
		return o.restart(ctx, rec)
	}
	release, err := o.part.records.lockName(ctx, o.row.Ref, "restart")
	if err != nil {
		return "", err
	}
	defer release()
	rec, err := o.load(ctx)
	if err != nil {
		return "", err
	}
	release, err = o.part.records.lockID(ctx, rec.ID, "restart")
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
	rec, err := o.part.store.Load(ctx, o.row.Ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded):
		return sessions.Record{}, newSkipError("no session is registered as %s", o.row.Ref)
	case err != nil:
		return sessions.Record{}, err
	}
	o.row.Ref, o.row.ID, o.rec = rec.Ref, rec.ID, rec
	return rec, nil
}

// restart restarts the session, if it should be and can be. The caller holds the session's locks, or it is a dry run.
func (o *restartJob) restart(ctx context.Context, rec sessions.Record) (sessions.Outcome, error) {
	panes, err := o.part.panes.list(ctx, rec)
	if err != nil {
		return "", fmt.Errorf("find the session's pane: %w", err)
	}
	own, there := sessions.FindPane(panes, rec.ID)
	if !there || own.Dead && rec.ReplacesPID == 0 {
		return "", newSkipError("it is not running")
	}
	r, err := o.newLauncher(ctx, rec, own)
	if err != nil {
		return "", err
	}
	want := o.part.expectedEnv(ctx, rec, own, o.env)
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

// newLauncher prepares the launcher of a session that can be resumed. Everything that can be checked without touching the agent
// is checked here.
func (o *restartJob) newLauncher(ctx context.Context, rec sessions.Record, own sessions.Pane) (*launcher, error) {
	def, declared := o.part.records.findDeclared(rec.Ref)
	if !declared {
		def = rec.Definition.Clone()
	}
	r, err := o.part.starter.newLauncherWith(def, o.part.config(), o.env.Values, "")
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

// inspectOldEnv reads the environment of the process that is to be replaced, and reports whether it is as expected.
func (o *restartJob) inspectOldEnv(ctx context.Context, own sessions.Pane, want envstate.Expected) bool {
	actual, known := envstate.ProcessEnviron(ctx, own.PID)
	if !known || own.Dead {
		return false
	}
	o.oldValues = map[string]string{}
	for _, name := range want.Names() {
		o.oldValues[name] = actual[name]
	}
	o.row.Stale = want.Diff(actual)
	return len(o.row.Stale) == 0
}

// envStabiliseTime is how long a new process may take until it shows its environment: between fork and exec it still shows
// tmux's.
const envStabiliseTime = time.Second

// verify compares the environment of the new process with the expected one.
func (o *restartJob) verify(ctx context.Context, rec sessions.Record, want envstate.Expected) sessions.Outcome {
	o.row.Stale = []string{}
	panes, err := o.part.panes.list(ctx, rec)
	own, there := sessions.FindPane(panes, rec.ID)
	if err != nil || !there || own.Dead {
		return sessions.OutcomeUnverified
	}
	want.Started = startedNames(own, o.env)
	differ, known := want.AwaitMatch(ctx, own.PID, envStabiliseTime)
	switch {
	case !known:
		return sessions.OutcomeUnverified
	case len(differ) > 0:
		o.row.Stale = differ
		return sessions.OutcomeStale
	}
	return sessions.OutcomeVerified
}
