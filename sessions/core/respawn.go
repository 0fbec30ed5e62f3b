package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// remainMargin is how much longer than the probe the pane of a new process is kept if it ends: whoever looks after the probe
// must find it.
const remainMargin = 2 * time.Second

// restartInPane restarts a session in the pane that it has: in its conversation, or where that does not work in a fresh one.
func (r *launcher) restartInPane(ctx context.Context, def sessions.Definition, rec sessions.Record, own sessions.Pane) (sessions.Row, error) {
	r.prepareFor(ctx, def, rec, own)
	err := r.checkResumable()
	if err == nil {
		err = r.resumeInPane(ctx, own)
	}
	switch {
	case err == nil:
		return r.resultRow(sessions.OutcomeResumed), nil
	case !errors.Is(err, errResumeAbandoned):
		return sessions.Row{}, err
	}
	r.starter.events.emit(ctx, sessions.EventResumeFailed, slog.LevelWarn, r.rec, map[string]any{"reason": err.Error(), "conversation": r.prior.Conversation})
	r.rec.Conversation = newID()
	if err := r.respawn(ctx, own, sessions.Launch{Prompt: r.prompt}); err != nil {
		return sessions.Row{}, err
	}
	return r.resultRow(sessions.OutcomeStarted), nil
}

// prepareFor makes the run one of a session that is in a pane. The conversation that the agent is in now is the one that is
// resumed; a restart that was cut short has recorded it already.
func (r *launcher) prepareFor(ctx context.Context, def sessions.Definition, rec sessions.Record, own sessions.Pane) {
	if h, err := r.starter.agents.harness(rec.Definition.Harness); err == nil && !own.Dead {
		rec.Conversation = r.starter.agents.currentConversation(ctx, h, rec)
	}
	prior := rec
	r.rec, r.prior = rec, &prior
	r.rec.Definition = def
}

// resumeInPane is [launcher.resume] in the pane that there is. A pane whose agent did not live through it stays.
func (r *launcher) resumeInPane(ctx context.Context, own sessions.Pane) error {
	if err := r.respawn(ctx, own, sessions.Launch{Resume: true}); err != nil {
		if errors.Is(err, sessions.ErrCannotResume) {
			err = fmt.Errorf("%w: %w", errResumeAbandoned, err)
		}
		return err
	}
	_, err := r.probe(ctx)
	return err
}

// respawn ends what runs in the pane and starts the agent in its place. The record says before that a restart is under way,
// and of which process, so that one which is cut short is finished by the next start.
func (r *launcher) respawn(ctx context.Context, own sessions.Pane, l sessions.Launch) error {
	s, err := r.spawnRequest(ctx, l)
	if err != nil {
		return err
	}
	r.rec = r.rec.WithPane(own, sessions.StatusStarting, r.starter.now())
	r.rec.ReplacesPID, r.rec.FolderID = own.PID, sessions.FolderIDAt(s.Cwd)
	if err := r.starter.store.Save(ctx, r.rec); err != nil {
		return fmt.Errorf("record the restart: %w", err)
	}
	pane, err := r.starter.panes.terminalOf(r.rec).Respawn(ctx, sessions.Respawn{Spawn: s, Pane: own.ID, Grace: r.cfg.KillGrace, RemainFor: r.cfg.Probe + remainMargin})
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		if pane, err = r.recoverFailedRespawn(ctx, own, err); err != nil {
			return err
		}
	}
	r.rec = r.rec.WithPane(pane, sessions.StatusRunning, r.starter.now())
	if err := r.starter.store.Save(ctx, r.rec); err != nil { // it runs, and is found by its mark
		r.detail = fmt.Sprintf("it runs, but that could not be recorded: %v", err)
		r.starter.log.Error("a session runs and its record could not be completed", "ref", r.rec.Ref, "err", err)
	}
	return nil
}

// recoverFailedRespawn looks what became of a pane in which tmux did not start the agent, or may not have. An agent that runs on as
// it was is recorded as running again; one that was ended is left for the next start to finish.
func (r *launcher) recoverFailedRespawn(ctx context.Context, own sessions.Pane, cause error) (sessions.Pane, error) {
	panes, err := r.starter.panes.list(ctx, r.rec)
	if err != nil {
		return sessions.Pane{}, errors.Join(cause, err)
	}
	now, there := sessions.FindPane(panes, r.rec.ID)
	switch {
	case !there:
		rec := r.rec
		rec.Status, rec.Changed, rec.Pane, rec.ReplacesPID = sessions.StatusStopped, r.starter.now(), "", 0
		return sessions.Pane{}, errors.Join(cause, r.starter.store.Save(ctx, rec))
	case now.Dead:
		return sessions.Pane{}, cause
	case now.PID != own.PID:
		return now, nil
	}
	rec := *r.prior
	return sessions.Pane{}, errors.Join(cause, r.starter.store.Save(ctx, rec.WithPane(now, sessions.StatusRunning, r.prior.Changed)))
}
