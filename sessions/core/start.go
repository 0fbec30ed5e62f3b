package core

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
)

// Start starts a session. A running one is left alone ([sessions.OutcomeAlreadyRunning]). A recorded conversation is resumed;
// when the agent does not survive that, a fresh one is started.
func (lc *Lifecycle) Start(ctx context.Context, q sessions.StartRequest) (sessions.Row, error) {
	release, err := lc.records.lockName(ctx, q.Ref, "start")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	def, rec, err := lc.records.findExact(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.Row{}, err
	}
	return lc.startLocked(ctx, def, rec)
}

// startLocked starts the session under its own lock. The caller holds the lock of the name.
func (lc *Lifecycle) startLocked(ctx context.Context, def sessions.Definition, known *sessions.Record) (sessions.Row, error) {
	rec := lc.records.newRecord(def)
	if known != nil {
		rec = *known
	}
	release, err := lc.records.lockID(ctx, rec.ID, "start")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	if known, err = lc.records.reload(ctx, known); err != nil {
		return sessions.Row{}, err
	}
	if known != nil {
		rec = *known
	}
	return lc.starter.startAndReport(ctx, rec, func() (sessions.Row, error) { return lc.starter.startOrAdopt(ctx, def, rec, known) })
}

// Restart ends a session's agent and starts it again under one lock, so that replies wait meanwhile. A conversation that can be
// resumed is resumed in the same pane: the tmux session and its clients stay. What a start would refuse is refused before the
// running agent is touched. A session that does not run is started.
func (lc *Lifecycle) Restart(ctx context.Context, q sessions.RestartRequest) (sessions.Row, error) {
	release, err := lc.records.lockName(ctx, q.Ref, "restart")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	def, rec, err := lc.records.findExact(ctx, q.Ref, q.ID)
	switch {
	case err != nil:
		return sessions.Row{}, err
	case rec == nil:
		return lc.startLocked(ctx, def, nil)
	}
	release, err = lc.records.lockID(ctx, rec.ID, "restart")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	if rec, err = lc.records.reload(ctx, rec); err != nil {
		return sessions.Row{}, err
	}
	return lc.starter.startAndReport(ctx, *rec, func() (sessions.Row, error) { return lc.restart(ctx, def, *rec) })
}

func (lc *Lifecycle) restart(ctx context.Context, def sessions.Definition, rec sessions.Record) (sessions.Row, error) {
	r, err := lc.starter.newLauncher(def)
	if err != nil {
		return sessions.Row{}, err
	}
	panes, err := lc.panes.list(ctx, rec)
	if err != nil {
		return sessions.Row{}, fmt.Errorf("find the session's pane: %w", err)
	}
	own, there := sessions.FindPane(panes, rec.ID)
	if there && (!own.Dead || rec.ReplacesPID != 0) && lc.panes.terminalOf(rec) == lc.panes.own {
		return r.restartInPane(ctx, def, rec, own)
	}
	rec, _, err = lc.takeDown(ctx, rec, sessions.StatusStarting)
	if err != nil {
		return sessions.Row{}, err
	}
	row, err := lc.starter.startOrAdopt(ctx, def, rec, &rec)
	if err != nil {
		return sessions.Row{}, errors.Join(err, lc.reconcileFailedRestart(context.WithoutCancel(ctx), rec.Ref))
	}
	return row, nil
}

// reconcileFailedRestart records as stopped a session that a restart ended and could not start again.
func (lc *Lifecycle) reconcileFailedRestart(ctx context.Context, ref sessions.Ref) error {
	rec, err := lc.store.Load(ctx, ref)
	if err != nil || rec.Status != sessions.StatusStarting {
		return err
	}
	if panes, err := lc.panes.list(ctx, rec); err != nil {
		return err
	} else if _, there := sessions.FindPane(panes, rec.ID); there {
		return nil
	}
	rec.Status, rec.Changed = sessions.StatusStopped, lc.now()
	return lc.store.Save(ctx, rec)
}
