package bot

import (
	"cmp"
	"context"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// shortcutSession is the callback id of the message shortcut.
const shortcutSession = "session_menu"

// registerInteractions opens the doors to everything that there is.
func (b *Bot) registerInteractions(d *InteractionRouter) {
	d.OnResend(b.threads)
	d.OnAction(chat.ActionAllow, b.permissionHandler(sessions.VerdictAllow))
	d.OnAction(chat.ActionDeny, b.permissionHandler(sessions.VerdictDeny))
	d.OnAction(chat.ActionReason, b.openReasonModal)
	d.OnView(render.ViewReason, b.submitReason)
	d.OnAction(render.ActionPeek, b.handlePeek)
	d.OnAction(render.ActionRestart, b.lifecycleHandler(command.VerbRestart))
	d.OnAction(render.ActionStop, b.lifecycleHandler(command.VerbStop))
	d.OnAction(render.ActionStart, b.lifecycleHandler(command.VerbStart))
	d.OnAction(render.ActionDelete, func(ctx context.Context, a Interaction) (string, error) {
		return "", b.openDeleteModal(ctx, a, a.Value)
	})
	d.OnAction(render.ActionDeleteNow, b.handleDelete)
	d.OnAction(render.ActionRoll, func(ctx context.Context, a Interaction) (string, error) {
		return b.driftNotice.RestartStale(ctx, a.Actor.User)
	})
	d.OnShortcut(shortcutSession, b.openSessionMenu)
	d.OnView(render.ViewCreate, b.submitCreateForm)
	d.OnView(render.ViewDelete, b.submitDelete)
	d.OnHome(b.home.handleOpened)
}

// lifecycleHandler is a button that changes a session's state. Its value is the session's id, so it never acts on another session.
func (b *Bot) lifecycleHandler(verb string) Handler {
	return func(ctx context.Context, a Interaction) (string, error) {
		row, err := b.actions.Find(ctx, a.Value)
		if err != nil {
			return "", err
		}
		row, err = b.actions.ChangeState(ctx, verb, row.Ref, row.ID)
		if err != nil {
			return "", err
		}
		return render.Line(row), nil
	}
}

func (b *Bot) handlePeek(ctx context.Context, a Interaction) (string, error) {
	peek := func(ctx context.Context) (string, error) {
		row, err := b.actions.Find(ctx, a.Value)
		if err != nil {
			return "", err
		}
		return b.actions.Peek(ctx, row.Ref, a.Actor.User, false)
	}
	if a.View.Kind != kindHome {
		return peek(ctx)
	}
	return "", b.openModal(ctx, a, "Peek", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		text, err := peek(ctx)
		return b.textModal("Peek", text), err
	})
}

// openDeleteModal opens the modal that asks before a session is deleted. A session that cannot be deleted is refused there.
func (b *Bot) openDeleteModal(ctx context.Context, a Interaction, handle string) error {
	return b.openModal(ctx, a, "Delete a session", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		row, err := b.actions.FindDeletable(ctx, handle)
		if err != nil {
			return slackgo.ModalViewRequest{}, err
		}
		return render.Confirm(row, render.Handle(row)), nil
	})
}

func (b *Bot) submitDelete(ctx context.Context, a Interaction) any {
	return b.ackWhenDone(ctx, a, "Deleting …", func(ctx context.Context) (string, error) {
		return b.actions.Delete(ctx, a.View.Meta)
	})
}

// handleDelete deletes a session: its button stands below the question.
func (b *Bot) handleDelete(ctx context.Context, a Interaction) (string, error) {
	return b.actions.Delete(ctx, a.Value)
}

// openSessionMenu is the message shortcut: what can be done to the session whose thread the message is in.
func (b *Bot) openSessionMenu(ctx context.Context, a Interaction) (string, error) {
	return "", b.openModal(ctx, a, "Session", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		id, _, ok := b.threads.SessionAt(a.Channel, cmp.Or(a.Root, a.TS))
		if !ok {
			return b.textModal("Session", "This message is in no session's thread. A session's thread is the one under its announcement."), nil
		}
		row, err := b.actions.Find(ctx, id)
		if err != nil {
			return slackgo.ModalViewRequest{}, err
		}
		return b.textModal(row.Name, render.Announcement(row), render.Buttons(row)...), nil
	})
}

// MessageShortcuts are the app's entries in the menu of a message: their names, by callback id.
func MessageShortcuts() map[string]string {
	names := map[string]string{}
	for _, s := range shortcuts {
		if s.Type == "message" {
			names[s.CallbackID] = s.Name
		}
	}
	return names
}
