package command

import (
	"context"

	"the-loop/bot/render"
	"the-loop/threads"
)

// Mentions runs the commands that members give in a session's thread after a mention of the bot. It implements [threads.Commander].
type Mentions struct{ c *Commands }

// Mentions are the commands of the threads.
func (c *Commands) Mentions() Mentions { return Mentions{c} }

// Command implements [threads.Commander]. In a channel that another organisation reads, the answer is for the member alone.
func (m Mentions) Command(ctx context.Context, q threads.CommandRequest) string {
	answer, err := m.c.Run(ctx, Call{Command: q.Command, Role: Member, User: q.User, Channel: q.Channel, Session: q.ID, Ref: q.Ref, Prompter: threadPrompter{m.c, q}})
	if err != nil {
		answer = Answer{Text: notDone(err)}
	}
	if answer.Text == "" || !answer.Private && !m.c.o.Channels.IsShared(ctx, q.Channel) {
		return answer.Text
	}
	if err := m.c.o.Poster.PostEphemeral(ctx, q.Channel, q.Root, q.User, answer.Text); err != nil {
		return notDone(err)
	}
	return ""
}

func notDone(err error) string { return "Not done: " + render.Escape(err.Error()) }

// threadPrompter asks with a message that only the member sees: a mention opens no modal.
type threadPrompter struct {
	c *Commands
	q threads.CommandRequest
}

func (p threadPrompter) OpenCreateForm(context.Context) error { return errUsage }

func (p threadPrompter) ConfirmDelete(ctx context.Context, handle string) error {
	row, err := p.c.o.Actions.FindDeletable(ctx, handle)
	if err != nil {
		return err
	}
	return p.c.o.Poster.PostEphemeral(ctx, p.q.Channel, p.q.Root, p.q.User, render.DeletePrompt(row),
		render.Button{Label: "Delete it", Action: render.ActionDeleteNow, Value: render.SessionHandle(row), Style: "danger"})
}
