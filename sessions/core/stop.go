package core

import (
	"context"
	"fmt"
	"log/slog"

	"the-loop/sessions"
)

// Stop ends the session's agent and its pane. A session that does not run is [sessions.OutcomeAlreadyStopped]. It need not be
// declared any more.
func (lc *Lifecycle) Stop(ctx context.Context, q sessions.StopRequest) (sessions.Row, error) {
	release, err := lc.records.lockName(ctx, q.Ref, "stop")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	def, rec, err := lc.records.findExact(ctx, q.Ref, q.ID)
	if err != nil {
		return sessions.Row{}, err
	}
	if rec == nil {
		row := sessions.DeclaredRow(def)
		row.Outcome = sessions.OutcomeAlreadyStopped
		return row, nil
	}
	release, err = lc.records.lockID(ctx, rec.ID, "stop")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	if rec, err = lc.records.reload(ctx, rec); err != nil {
		return sessions.Row{}, err
	}
	return lc.stop(ctx, *rec)
}

// stop ends the session and records it as stopped. The caller holds its locks.
func (lc *Lifecycle) stop(ctx context.Context, rec sessions.Record) (sessions.Row, error) {
	down, outcome, err := lc.takeDown(ctx, rec, sessions.StatusStopped)
	if err != nil {
		lc.events.emit(ctx, sessions.EventStopFailed, slog.LevelError, rec, map[string]any{"reason": err.Error()})
		return sessions.Row{}, fmt.Errorf("stop %s: %w", rec.Ref, err)
	}
	row := sessions.RowOf(down, sessions.StateStopped)
	row.Outcome = outcome
	return row, nil
}

// takeDown ends the agent and its pane, and records that status.
func (lc *Lifecycle) takeDown(ctx context.Context, rec sessions.Record, as sessions.Status) (sessions.Record, sessions.Outcome, error) {
	panes, err := lc.panes.list(ctx, rec)
	if err != nil {
		return rec, "", fmt.Errorf("find the session's pane: %w", err)
	}
	p, there := sessions.FindPane(panes, rec.ID)
	if there {
		if h, err := lc.agents.harness(rec.Definition.Harness); err == nil {
			rec.Conversation = lc.agents.currentConversation(ctx, h, rec)
		}
		if err := lc.starter.endPane(ctx, rec, p.Target()); err != nil {
			return rec, "", err
		}
	}
	outcome := sessions.OutcomeAlreadyStopped
	if there && !p.Dead {
		outcome = sessions.OutcomeStopped
	}
	if was := rec.Status; there || was != as {
		rec.Status, rec.Changed, rec.Pane, rec.ReplacesPID = as, lc.now(), "", 0
		if err := lc.store.Save(ctx, rec); err != nil {
			return rec, "", fmt.Errorf("record that the session is stopped: %w", err)
		}
		if there || was != sessions.StatusStopped {
			lc.events.emit(ctx, sessions.EventStopped, slog.LevelInfo, rec, map[string]any{"conversation": rec.Conversation})
		}
	}
	return rec, outcome, nil
}
