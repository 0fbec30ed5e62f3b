package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// remainMargin is how much longer than the probe the pane of a process that ends is kept, so that the probe finds it.
const remainMargin = 2 * time.Second

// restartInPane restarts the session in its pane: in its conversation, or where that fails in a fresh one.
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

// prepareFor prepares a restart in the pane own. The conversation that the agent is in now is resumed; an interrupted restart has
// recorded it already.
func (r *launcher) prepareFor(ctx context.Context, def sessions.Definition, rec sessions.Record, own sessions.Pane) {
	if h, err := r.starter.agents.harness(rec.Definition.Harness); err == nil && !own.Dead {
		rec.Conversation = r.starter.agents.currentConversation(ctx, h, rec)
	}
	prior := rec
	r.rec, r.prior = rec, &prior
	r.rec.Definition = def
}

// resumeInPane is [launcher.resume] in the existing pane, which stays when the agent ends.
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

// respawn ends the process in the pane and starts the agent in its place. It first records which process is replaced, so that the
// next start finishes an interrupted restart.
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

// recoverFailedRespawn finds out what became of a pane after a failed respawn. An agent that was not touched is recorded as
// running again; one that was ended is left to the next start.
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
