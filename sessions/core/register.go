package core

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
)

// Register records a work item's session. It starts nothing: the first event does, see [Deliveries.Deliver]. A ref that is
// registered already is refused, and so is one whose tmux name another ref has.
func (lc *Lifecycle) Register(ctx context.Context, q sessions.RegisterRequest) (sessions.Row, error) {
	if _, err := sessions.ParseWorkItem(string(q.Ref)); err != nil {
		return sessions.Row{}, err
	}
	release, err := lc.records.lockName(ctx, q.Ref, "register")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	rec := lc.records.newRecord(sessions.RegisteredDefinition(q, lc.config().Defaults))
	rec.Status, rec.Conversation, rec.Changed = sessions.StatusNew, q.Conversation, rec.Created
	if err := lc.register(ctx, rec); err != nil {
		return sessions.Row{}, lc.failCreate(ctx, rec, err)
	}
	lc.emitCreated(ctx, rec)
	row := sessions.RowOf(rec, sessions.StateNew)
	row.Outcome = sessions.OutcomeRegistered
	return row, nil
}

func (lc *Lifecycle) register(ctx context.Context, rec sessions.Record) error {
	known, err := lc.store.Load(ctx, rec.Ref)
	switch {
	case err == nil:
		return sessions.NameRecorded(known.Ref)
	case !errors.Is(err, sessions.ErrNotRecorded):
		return err
	}
	if err := rec.Definition.Validate(); err != nil {
		return err
	}
	r, err := lc.starter.newLauncher(rec.Definition)
	if err != nil {
		return err
	}
	if err := sessions.CheckConversation(r.harness, rec.Conversation); err != nil {
		return err
	}
	if err := lc.store.Save(ctx, rec); err != nil {
		return fmt.Errorf("record the session: %w", err)
	}
	return nil
}
