package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// RegisterRequest makes a work item's session known. What is left out comes from [Config.Defaults].
type RegisterRequest struct {
	Ref          Ref
	Harness      string
	Cwd          string // absolute
	Conversation string // the harness's id of one to go on with; empty: the first event begins one
	Chat         ChatDefinition
}

// Register records a work item's session. It starts nothing: the first event does, see [Core.Deliver]. A ref that is
// registered is refused, and so is one whose name in tmux another ref has.
func (c *Core) Register(ctx context.Context, q RegisterRequest) (Row, error) {
	if _, err := ParseWorkItem(string(q.Ref)); err != nil {
		return Row{}, err
	}
	release, err := c.lockName(ctx, q.Ref, "register")
	if err != nil {
		return Row{}, err
	}
	defer release()
	rec := c.newRecord(q.definition(c.o.Config().Defaults))
	rec.Status, rec.Conversation, rec.Changed = StatusNew, q.Conversation, rec.Created
	if err := c.register(ctx, rec); err != nil {
		return Row{}, c.failCreate(ctx, rec, err)
	}
	c.emitCreated(ctx, rec)
	row := rowOf(rec, StateNew)
	row.Outcome = OutcomeRegistered
	return row, nil
}

func (q RegisterRequest) definition(d Defaults) Definition {
	def := CreateRequest{Name: q.Ref.Name(), Harness: q.Harness, Cwd: q.Cwd, Chat: q.Chat}.definition(d)
	def.Source, def.AutoStart, def.HarnessArgs = SourceRegistered, false, slices.Clone(def.HarnessArgs)
	return def
}

func (c *Core) register(ctx context.Context, rec Record) error {
	known, err := c.o.Store.Load(ctx, rec.Ref)
	switch {
	case err == nil:
		return &Refusal{Cause: ErrNameTaken, What: fmt.Sprintf("%s is registered already", known.Ref),
			Remedy: "close it first: the-loop sessions close " + string(known.Ref)}
	case !errors.Is(err, ErrNotRecorded):
		return err
	}
	if err := rec.Definition.validate(); err != nil {
		return err
	}
	if _, err := c.newLauncher(rec.Definition); err != nil {
		return err
	}
	if err := c.checkResumable(rec); err != nil {
		return err
	}
	if err := c.o.Store.Save(ctx, rec); err != nil {
		return fmt.Errorf("record the session: %w", err)
	}
	return nil
}

// checkResumable refuses a conversation that could never be resumed.
func (c *Core) checkResumable(rec Record) error {
	h, err := c.o.Harnesses(rec.Definition.Harness)
	switch {
	case err != nil:
		return err
	case rec.Conversation == "":
		return nil
	case !ValidConversation(rec.Conversation):
		return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("%q does not have the shape of a conversation's id", rec.Conversation),
			Remedy: "use one that matches " + conversationPattern().String()}
	case !h.Capabilities().CanResume:
		return &Refusal{Cause: ErrCannotResume, What: fmt.Sprintf("%s has no way to resume a conversation", h.Name()), Remedy: "leave its id out"}
	}
	return nil
}
