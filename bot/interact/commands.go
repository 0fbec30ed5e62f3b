package interact

import (
	"context"

	"the-loop/bot/command"
	"the-loop/threads/chat"
)

// HandleCommand implements [CommandHandler].
func (h *handlers) HandleCommand(ctx context.Context, a Interaction) (string, error) {
	answer, err := h.o.Commands.Run(ctx, command.Call{Command: *chat.ParseCommand(a.Text), Prefix: a.Name, Role: command.Member,
		User: a.Actor.User, Channel: a.Channel, Prompter: modalPrompter{h, a}})
	return answer.Text, err
}

// modalPrompter asks with modals, which the trigger of an interaction opens.
type modalPrompter struct {
	h *handlers
	a Interaction
}

// OpenCreateForm implements [command.Prompter].
func (p modalPrompter) OpenCreateForm(ctx context.Context) error { return p.h.openCreateForm(ctx, p.a) }

// ConfirmDelete implements [command.Prompter].
func (p modalPrompter) ConfirmDelete(ctx context.Context, handle string) error {
	return p.h.openDeleteModal(ctx, p.a, handle)
}
