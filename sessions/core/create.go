package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"the-loop/sessions"
)

// Create records the whole definition of a session and starts it. A name that is declared or recorded is refused: a name
// is one session. When the start fails there is no record.
func (lc *Lifecycle) Create(ctx context.Context, q sessions.CreateRequest) (sessions.Row, error) {
	ref := sessions.StandingRef(q.Name)
	if !sessions.ValidName(q.Name) {
		return sessions.Row{}, lc.failCreate(ctx, sessions.Record{}, sessions.InvalidName(q.Name))
	}
	release, err := lc.records.lockName(ctx, ref, "create")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	rec := lc.records.newRecord(sessions.CreatedDefinition(q, lc.config().Defaults))
	row, err := lc.create(ctx, q, rec)
	if err != nil {
		return sessions.Row{}, lc.failCreate(ctx, rec, err)
	}
	return row, nil
}

// failCreate writes the event of a session that could not be made, and wraps the reason.
func (lc *Lifecycle) failCreate(ctx context.Context, rec sessions.Record, why error) error {
	lc.events.emit(ctx, sessions.EventCreateFailed, slog.LevelError, rec, map[string]any{"reason": why.Error()})
	if rec.Ref == "" {
		return fmt.Errorf("create a session: %w", why)
	}
	return fmt.Errorf("create %s: %w", rec.Ref, why)
}

func (lc *Lifecycle) create(ctx context.Context, q sessions.CreateRequest, rec sessions.Record) (sessions.Row, error) {
	def := rec.Definition
	if err := lc.checkNameFree(ctx, rec.Ref); err != nil {
		return sessions.Row{}, err
	}
	if err := def.Validate(); err != nil {
		return sessions.Row{}, err
	}
	release, err := lc.records.lockID(ctx, rec.ID, "create")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	if q.NoStart {
		return lc.saveUnstarted(ctx, rec)
	}
	row, err := lc.starter.startOrAdopt(ctx, def, rec, nil)
	if err != nil {
		return sessions.Row{}, err
	}
	lc.emitCreated(ctx, rec)
	lc.events.emit(ctx, sessions.EventStarted, slog.LevelInfo, rec, map[string]any{"pane": row.Pane, "conversation": row.Conversation, "harness": row.Harness})
	return row, nil
}

func (lc *Lifecycle) emitCreated(ctx context.Context, rec sessions.Record) {
	lc.events.emit(ctx, sessions.EventCreated, slog.LevelInfo, rec, map[string]any{"harness": rec.Definition.Harness, "cwd": rec.Definition.Cwd})
}

// saveUnstarted records a new session without starting it.
func (lc *Lifecycle) saveUnstarted(ctx context.Context, rec sessions.Record) (sessions.Row, error) {
	if _, err := lc.starter.newLauncher(rec.Definition); err != nil {
		return sessions.Row{}, err
	}
	rec.Status, rec.Changed = sessions.StatusStopped, lc.now()
	if err := lc.store.Save(ctx, rec); err != nil {
		return sessions.Row{}, fmt.Errorf("record the session: %w", err)
	}
	lc.emitCreated(ctx, rec)
	row := sessions.RowOf(rec, sessions.StateStopped)
	row.Outcome = sessions.OutcomeCreated
	return row, nil
}

// checkNameFree refuses a name that is declared or recorded.
func (lc *Lifecycle) checkNameFree(ctx context.Context, ref sessions.Ref) error {
	if _, i := lc.config().findDeclared(ref); i >= 0 {
		return sessions.NameDeclared(ref, declaredKey(i))
	}
	_, err := lc.store.Load(ctx, ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded):
		return nil
	case err != nil:
		return fmt.Errorf("read the record of %s: %w", ref, err)
	}
	return sessions.NameRecorded(ref)
}

// Delete stops a session and removes its record; a work item's session is closed that way. A declared session is refused: the
// configuration would make it again.
func (lc *Lifecycle) Delete(ctx context.Context, q sessions.DeleteRequest) (sessions.Row, error) {
	release, err := lc.records.lockName(ctx, q.Ref, "delete")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	if err := lc.CheckDeletable(q); err != nil {
		return sessions.Row{}, err
	}
	rec, err := lc.store.Load(ctx, q.Ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded):
		return sessions.Row{}, sessions.NotRecorded(q.Ref)
	case err != nil:
		return sessions.Row{}, fmt.Errorf("read the record of %s: %w", q.Ref, err)
	case q.ID != "" && rec.ID != q.ID:
		return sessions.Row{}, sessions.Replaced(q.Ref)
	}
	return lc.remove(ctx, rec)
}

func (lc *Lifecycle) remove(ctx context.Context, rec sessions.Record) (sessions.Row, error) {
	release, err := lc.records.lockID(ctx, rec.ID, "delete")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	now, err := lc.records.reload(ctx, &rec)
	if err != nil {
		return sessions.Row{}, err
	}
	row, err := lc.stop(ctx, *now)
	if err != nil {
		return sessions.Row{}, fmt.Errorf("delete %s: %w", rec.Ref, err)
	}
	if err := lc.starter.removeState(ctx, *now); err != nil {
		return sessions.Row{}, fmt.Errorf("delete %s, which is stopped: %w", rec.Ref, err)
	}
	lc.events.emit(ctx, sessions.EventDeleted, slog.LevelInfo, *now, map[string]any{"conversation": row.Conversation})
	row.Outcome = sessions.OutcomeDeleted
	if rec.Ref.Kind() == sessions.KindWorkItem {
		row.Outcome = sessions.OutcomeClosed
	}
	return row, nil
}

// CheckDeletable returns the refusal with which [Lifecycle.Delete] would answer for a declared session, or nil. Surfaces call it
// before they ask for a confirmation.
func (lc *Lifecycle) CheckDeletable(q sessions.DeleteRequest) error {
	_, i := lc.config().findDeclared(q.Ref)
	if i < 0 {
		return nil
	}
	return sessions.DeleteDeclared(q.Ref, declaredKey(i))
}
