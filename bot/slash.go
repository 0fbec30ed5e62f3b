package bot

import (
	"context"

	"the-loop/bot/command"
	"the-loop/threads/chat"
)

// HandleCommand implements [CommandHandler].
func (b *Bot) HandleCommand(ctx context.Context, a Interaction) (string, error) {
	answer, err := b.commands.Run(ctx, command.Call{Command: *chat.ParseCommand(a.Text), Prefix: a.Name, Role: command.Member,
		User: a.Actor.User, Channel: a.Channel, Prompter: modalPrompter{b, a}})
	return answer.Text, err
}

// modalPrompter asks with modals, which the trigger of an interaction opens.
type modalPrompter struct {
	b *Bot
	a Interaction
}

// OpenCreateForm implements [command.Prompter].
func (p modalPrompter) OpenCreateForm(ctx context.Context) error { return p.b.openCreateForm(ctx, p.a) }

// ConfirmDelete implements [command.Prompter].
func (p modalPrompter) ConfirmDelete(ctx context.Context, handle string) error {
	return p.b.openDeleteModal(ctx, p.a, handle)
}
