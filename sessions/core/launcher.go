package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
	"the-loop/sessions/loop"
)

// launcher brings one session up in a pane.
type launcher struct {
	starter       *starter
	cfg           Config
	harness       sessions.Harness
	prompt        string            // the first message of a fresh conversation
	opening       *openingEvent     // the event that it is started with; nil: none
	declared      map[string]string // values of the env file
	rec           sessions.Record   // as it will be
	prior         *sessions.Record  // as it is on disk; nil: there is none
	keptPane      *sessions.Pane    // the dead pane in which the agent comes up; nil: it gets a new one
	sharedSession string            // the tmux session in which others have panes; empty: it gets its own
	detail        string            // what a person should know of a start that succeeded
}

// errResumeAbandoned marks errors after which a fresh conversation is started. After any other error the start fails.
var errResumeAbandoned = errors.New("the conversation cannot be resumed")

// launch resumes the recorded conversation, or starts a fresh one.
func (r *launcher) launch(ctx context.Context) (sessions.Row, error) {
	if r.prior != nil && r.prior.Status == sessions.StatusRunning && r.prior.Definition.Harness == r.rec.Definition.Harness {
		// It ended on its own, so that no stop recorded its last conversation.
		r.rec.Conversation = r.starter.agents.currentConversation(ctx, r.harness, *r.prior)
		r.prior.Conversation = r.rec.Conversation
	}
	if r.hasConversation() {
		row, err := r.resume(ctx)
		switch {
		case err == nil || !errors.Is(err, errResumeAbandoned):
			return row, err
		case r.hasAcceptedOpening(ctx): // it did resume, and must not get the event twice
			row = sessions.RowOf(r.rec, sessions.StateEnded)
			row.Outcome, row.Detail = sessions.OutcomeResumed, "it accepted the event, and then ended"
			return row, nil
		}
		r.starter.events.emit(ctx, sessions.EventResumeFailed, slog.LevelWarn, r.rec, map[string]any{"reason": err.Error(), "conversation": r.prior.Conversation})
	}
	r.rec.Conversation = newID()
	if err := r.spawn(ctx, r.withOpening(sessions.Launch{Prompt: r.prompt})); err != nil {
		return sessions.Row{}, err
	}
	return r.resultRow(sessions.OutcomeStarted), nil
}

// hasConversation reports whether a conversation is recorded. A work item's session that has run should have one.
func (r *launcher) hasConversation() bool {
	return r.prior != nil && (r.prior.Conversation != "" || r.rec.Ref.Kind() == sessions.KindWorkItem && r.prior.HasRun())
}

func (r *launcher) resultRow(o sessions.Outcome) sessions.Row {
	row := sessions.RowOf(r.rec, sessions.StateRunning)
	row.Outcome, row.Detail = o, r.detail
	return row
}

// resume continues the recorded conversation, and checks after the probe time that the agent still runs. An agent that takes
// longer to fail counts as resumed.
func (r *launcher) resume(ctx context.Context) (sessions.Row, error) {
	if err := r.checkResumable(); err != nil {
		return sessions.Row{}, err
	}
	if err := r.spawn(ctx, r.withOpening(sessions.Launch{Resume: true})); err != nil {
		if errors.Is(err, sessions.ErrCannotResume) {
			err = fmt.Errorf("%w: %w", errResumeAbandoned, err)
		}
		return sessions.Row{}, err
	}
	if err := r.probeAndClear(ctx); err != nil {
		return sessions.Row{}, err
	}
	return r.resultRow(sessions.OutcomeResumed), nil
}

// checkResumable returns why the recorded conversation cannot be resumed, as far as that is known without trying.
func (r *launcher) checkResumable() error {
	if !r.cfg.Resume {
		return fmt.Errorf("%w: routing.tmux.resumeOnRespawn is off", errResumeAbandoned)
	}
	if err := sessions.CheckResumable(*r.prior, r.harness); err != nil {
		return fmt.Errorf("%w: %w", errResumeAbandoned, err)
	}
	return nil
}

// probeAndClear waits for the probe and removes the pane of an agent that ended. Beside other panes it stays for the next
// attempt.
func (r *launcher) probeAndClear(ctx context.Context) error {
	p, err := r.probe(ctx)
	if r.keptPane = nil; r.sharedSession != "" && p.ID != "" {
		r.keptPane = &p
		return err
	}
	if err == nil || p.ID == "" {
		return err
	}
	if err := r.starter.endPane(context.WithoutCancel(ctx), r.rec, p.Target()); err != nil {
		return fmt.Errorf("clear the pane of an agent that did not resume: %w", err)
	}
	return err
}

// probe waits for the probe time and fails if the agent ended; it then returns the agent's pane, if that was kept. When tmux does
// not answer, the agent counts as alive. When ctx ends, probe checks at once.
func (r *launcher) probe(ctx context.Context) (sessions.Pane, error) {
	if r.cfg.Probe <= 0 {
		return sessions.Pane{}, nil
	}
	began := time.Now()
	loop.Sleep(ctx, r.cfg.Probe)
	panes, err := r.starter.panes.list(context.WithoutCancel(ctx), r.rec)
	if err != nil {
		r.detail = fmt.Sprintf("the agent may have ended after its start: %v", err)
		return sessions.Pane{}, nil
	}
	took := time.Since(began).Round(time.Millisecond)
	p, there := sessions.FindPane(panes, r.rec.ID)
	switch {
	case !there:
		return sessions.Pane{}, fmt.Errorf("%w: the agent ended within %s", errResumeAbandoned, took)
	case p.Dead:
		return p, fmt.Errorf("%w: the agent ended within %s, %s", errResumeAbandoned, took, p.ExitDescription())
	}
	return sessions.Pane{}, nil
}

// spawn records the session as starting, makes the pane, and records it as running. When it fails the record becomes what it was.
func (r *launcher) spawn(ctx context.Context, l sessions.Launch) error {
	r.readOffset(ctx)
	s, err := r.spawnRequest(ctx, l)
	if err != nil {
		return err
	}
	r.rec.Status, r.rec.Changed, r.rec.Pane, r.rec.TmuxSession, r.rec.Server = sessions.StatusStarting, r.starter.now(), "", "", sessions.Server{}
	r.rec.ReplacesPID, r.rec.FolderID = 0, sessions.FolderIDAt(s.Cwd)
	if err := r.starter.store.Save(ctx, r.rec); err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	if err := r.recordIntent(ctx); err != nil {
		return errors.Join(err, r.restoreRecord(context.WithoutCancel(ctx)))
	}
	pane, err := r.openPane(ctx, s)
	if err != nil {
		if pane, err = r.recoverFailedSpawn(context.WithoutCancel(ctx), err); err != nil {
			return err
		}
	}
	r.rec = r.rec.WithPane(pane, sessions.StatusRunning, r.starter.now())
	if err := r.starter.store.Save(context.WithoutCancel(ctx), r.rec); err != nil { // it runs, and is found by its mark
		r.detail = fmt.Sprintf("it runs, but that could not be recorded: %v", err)
		r.starter.log.Error("a session runs and its record could not be completed", "ref", r.rec.Ref, "err", err)
	}
	return nil
}

// spawnRequest prepares the harness and makes the request for the terminal.
func (r *launcher) spawnRequest(ctx context.Context, l sessions.Launch) (sessions.Spawn, error) {
	d := r.rec.Definition
	l.Session, l.Conversation, l.Args, l.Cwd = r.rec.ID, r.rec.Conversation, d.HarnessArgs, d.Cwd
	l.Env = r.cfg.paneEnvironment(r.rec, r.declared, nil)
	if prepare := r.harness.Capabilities().Prepare; prepare != nil {
		if err := prepare(ctx, l); err != nil {
			return sessions.Spawn{}, fmt.Errorf("prepare %s: %w", r.harness.Name(), err)
		}
	}
	cmd, err := r.harness.Command(l)
	if err != nil {
		return sessions.Spawn{}, err
	}
	env := r.cfg.paneEnvironment(r.rec, r.declared, cmd.Env)
	return sessions.Spawn{Name: r.rec.Ref.TmuxName(), Mark: r.rec.ID, Argv: cmd.Argv, Cwd: d.Cwd,
		Env: env, Declared: slices.Sorted(maps.Keys(envstate.Passed(r.declared, env))), RemainOnExit: r.cfg.RemainOnExit}, nil
}

// recoverFailedSpawn returns the pane of a failed spawn that was made all the same. If there is none, it restores the record;
// when tmux does not answer, the record stays as starting, and the next start finds the pane by its mark.
func (r *launcher) recoverFailedSpawn(ctx context.Context, cause error) (sessions.Pane, error) {
	switch {
	case errors.Is(cause, sessions.ErrInDoubt):
		panes, err := r.starter.panes.list(ctx, r.rec)
		if err != nil {
			return sessions.Pane{}, errors.Join(cause, err)
		}
		if p, there := sessions.FindPane(panes, r.rec.ID); there && (r.keptPane == nil || p.PID != r.keptPane.PID) {
			return p, nil
		}
	case errors.Is(cause, sessions.ErrNameTaken): // by another process, meanwhile
		found, err := r.starter.panes.findOccupancy(ctx, r.rec)
		switch {
		case errors.Is(err, sessions.ErrNameTaken):
			cause = err
		case found.own != nil && !found.own.Dead && r.prior != nil:
			return sessions.Pane{}, &alreadyRunningError{pane: *found.own, err: errors.Join(cause, r.restoreRecord(ctx))}
		}
	}
	return sessions.Pane{}, errors.Join(cause, r.restoreRecord(ctx))
}

// alreadyRunningError says that the session's own agent runs already: a start that was interrupted made its pane meanwhile.
type alreadyRunningError struct {
	pane sessions.Pane
	err  error
}

func (e *alreadyRunningError) Error() string { return e.err.Error() }
func (e *alreadyRunningError) Unwrap() error { return e.err }

func (r *launcher) restoreRecord(ctx context.Context) error {
	if r.prior == nil {
		return r.starter.removeState(ctx, r.rec)
	}
	rec := *r.prior
	if rec.Status != sessions.StatusNew {
		rec.Status = sessions.StatusStopped
	}
	rec.Changed, rec.Pane, rec.ReplacesPID = r.starter.now(), "", 0
	return r.starter.store.Save(ctx, rec)
}

// openPane makes the session's pane: in its own dead pane if that was kept, else in the tmux session in which others have panes,
// else in a new tmux session.
func (r *launcher) openPane(ctx context.Context, s sessions.Spawn) (pane sessions.Pane, err error) {
	err = r.starter.panes.limited(ctx, func() error {
		if r.keptPane != nil {
			pane, err = r.starter.panes.own.Respawn(ctx, sessions.Respawn{Spawn: s, Pane: r.keptPane.ID, Grace: r.cfg.KillGrace, RemainFor: r.cfg.Probe + remainMargin})
			return err
		}
		s.Session = r.sharedSession
		pane, err = r.starter.panes.own.Spawn(ctx, s)
		return err
	})
	return pane, err
}

// checkProgram refuses a harness whose program is missing, before anything is changed: a restart must not end an agent that it
// cannot start again.
func (r *launcher) checkProgram(def sessions.Definition) error {
	cmd, err := r.harness.Command(sessions.Launch{Conversation: newID(), Args: def.HarnessArgs, Cwd: def.Cwd, Prompt: r.prompt})
	if err != nil {
		return err
	}
	return sessions.CheckProgram(r.harness.Name(), cmd.Argv, r.cfg.paneEnvironment(sessions.Record{}, r.declared, cmd.Env)["PATH"], def.Cwd)
}
