package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// holdBeyond is how much longer than the probe the pane of a new process is kept if it ends: whoever looks after the probe
// must find it.
const holdBeyond = 2 * time.Second

// inPlace restarts a session in the pane that it has: in its conversation, or where that does not work in a fresh one.
func (r *run) inPlace(ctx context.Context, def Definition, rec Record, own Pane) (Row, error) {
	r.prepareFor(ctx, def, rec, own)
	err := r.resumable()
	if err == nil {
		err = r.resumeInPlace(ctx, own)
	}
	switch {
	case err == nil:
		return r.row(OutcomeResumed), nil
	case !errors.Is(err, errResumeAbandoned):
		return Row{}, err
	}
	r.c.emit(ctx, EventResumeFailed, slog.LevelWarn, r.rec, map[string]any{"reason": err.Error(), "conversation": r.prior.Conversation})
	r.rec.Conversation = newID()
	if err := r.replace(ctx, own, Launch{Prompt: r.prompt}); err != nil {
		return Row{}, err
	}
	return r.row(OutcomeStarted), nil
}

// prepareFor makes the run one of a session that is in a pane. The conversation that the agent is in now is the one that is
// resumed; a restart that was cut short has recorded it already.
func (r *run) prepareFor(ctx context.Context, def Definition, rec Record, own Pane) {
	if h, err := r.c.o.Harnesses(rec.Definition.Harness); err == nil && !own.Dead {
		rec.Conversation = r.c.conversation(ctx, h, rec)
	}
	prior := rec
	r.rec, r.prior = rec, &prior
	r.rec.Definition = def
}

// resumeInPlace is [run.resume] in the pane that there is. A pane whose agent did not live through it stays.
func (r *run) resumeInPlace(ctx context.Context, own Pane) error {
	if err := r.replace(ctx, own, Launch{Resume: true}); err != nil {
		if errors.Is(err, ErrCannotResume) {
			err = fmt.Errorf("%w: %w", errResumeAbandoned, err)
		}
		return err
	}
	_, err := r.outlived(ctx)
	return err
}

// replace ends what runs in the pane and starts the agent in its place. The record says before that a restart is under way,
// and of which process, so that one which is cut short is finished by the next start.
func (r *run) replace(ctx context.Context, own Pane, l Launch) error {
	s, err := r.order(ctx, l)
	if err != nil {
		return err
	}
	r.rec = r.rec.at(own, StatusStarting, r.c.o.Now())
	r.rec.Replaces, r.rec.FolderID = own.PID, folderID(s.Cwd)
	if err := r.c.o.Store.Save(ctx, r.rec); err != nil {
		return fmt.Errorf("record the restart: %w", err)
	}
	pane, err := r.c.terminal(r.rec).Respawn(ctx, Respawn{Spawn: s, Pane: own.ID, Grace: r.cfg.KillGrace, Hold: r.cfg.Probe + holdBeyond})
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		if pane, err = r.unreplaced(ctx, own, err); err != nil {
			return err
		}
	}
	r.rec = r.rec.at(pane, StatusRunning, r.c.o.Now())
	if err := r.c.o.Store.Save(ctx, r.rec); err != nil { // it runs, and is found by its mark
		r.detail = fmt.Sprintf("it runs, but that could not be recorded: %v", err)
		r.c.o.Log.Error("a session runs and its record could not be completed", "ref", r.rec.Ref, "err", err)
	}
	return nil
}

// unreplaced looks what became of a pane in which tmux did not start the agent, or may not have. An agent that runs on as
// it was is recorded as running again; one that was ended is left for the next start to finish.
func (r *run) unreplaced(ctx context.Context, own Pane, cause error) (Pane, error) {
	panes, err := r.c.look(ctx, r.rec)
	if err != nil {
		return Pane{}, errors.Join(cause, err)
	}
	now, there := paneOf(panes, r.rec.ID)
	switch {
	case !there:
		rec := r.rec
		rec.Status, rec.Changed, rec.Pane, rec.Replaces = StatusStopped, r.c.o.Now(), "", 0
		return Pane{}, errors.Join(cause, r.c.o.Store.Save(ctx, rec))
	case now.Dead:
		return Pane{}, cause
	case now.PID != own.PID:
		return now, nil
	}
	rec := *r.prior
	return Pane{}, errors.Join(cause, r.c.o.Store.Save(ctx, rec.at(now, StatusRunning, r.prior.Changed)))
}
