package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"the-loop/sessions"
)

// Register records a work item's session. It starts nothing: the first event does, see [Core.Deliver]. A ref that is
// registered is refused, and so is one whose name in tmux another ref has.
func (lc *Lifecycle) Register(ctx context.Context, q sessions.RegisterRequest) (sessions.Row, error) {
	if _, err := sessions.ParseWorkItem(string(q.Ref)); err != nil {
		return sessions.Row{}, err
	}
	release, err := lc.records.lockName(ctx, q.Ref, "register")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	rec := lc.records.newRecord(registeredDefinition(q, lc.config().Defaults))
	rec.Status, rec.Conversation, rec.Changed = sessions.StatusNew, q.Conversation, rec.Created
	if err := lc.register(ctx, rec); err != nil {
		return sessions.Row{}, lc.failCreate(ctx, rec, err)
	}
	lc.emitCreated(ctx, rec)
	row := rowOf(rec, sessions.StateNew)
	row.Outcome = sessions.OutcomeRegistered
	return row, nil
}

// registeredDefinition is the definition of a work item's session.
func registeredDefinition(q sessions.RegisterRequest, d Defaults) sessions.Definition {
	def := createdDefinition(sessions.CreateRequest{Name: q.Ref.Name(), Harness: q.Harness, Cwd: q.Cwd, Chat: q.Chat}, d)
	def.Source, def.AutoStart, def.HarnessArgs = sessions.SourceRegistered, false, slices.Clone(def.HarnessArgs)
	return def
}

func (lc *Lifecycle) register(ctx context.Context, rec sessions.Record) error {
	known, err := lc.store.Load(ctx, rec.Ref)
	switch {
	case err == nil:
		return &sessions.Refusal{Cause: sessions.ErrNameTaken, What: fmt.Sprintf("%s is registered already", known.Ref),
			Remedy: "close it first: the-loop sessions close " + string(known.Ref)}
	case !errors.Is(err, sessions.ErrNotRecorded):
		return err
	}
	if err := rec.Definition.Validate(); err != nil {
		return err
	}
	if _, err := lc.starter.newLauncher(rec.Definition); err != nil {
		return err
	}
	if err := lc.checkResumable(rec); err != nil {
		return err
	}
	if err := lc.store.Save(ctx, rec); err != nil {
		return fmt.Errorf("record the session: %w", err)
	}
	return nil
}

// checkResumable refuses a conversation that could never be resumed.
func (lc *Lifecycle) checkResumable(rec sessions.Record) error {
	h, err := lc.agents.harness(rec.Definition.Harness)
	switch {
	case err != nil:
		return err
	case rec.Conversation == "":
		return nil
	case !sessions.ValidConversation(rec.Conversation):
		return &sessions.Refusal{Cause: sessions.ErrRefused, What: fmt.Sprintf("%q does not have the shape of a conversation's id", rec.Conversation),
			Remedy: "use one that matches " + sessions.ConversationPattern().String()}
	case !h.Capabilities().CanResume:
		return &sessions.Refusal{Cause: sessions.ErrCannotResume, What: fmt.Sprintf("%s has no way to resume a conversation", h.Name()), Remedy: "leave its id out"}
	}
	return nil
}
