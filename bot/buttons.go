package bot

import (
	"cmp"
	"context"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
)

// shortcutSession is the callback id of the message shortcut.
const shortcutSession = "session_menu"

// registerInteractions opens the doors to everything that there is.
func (b *Bot) registerInteractions(d *InteractionRouter) {
	d.OnResend(b.threads)
	d.OnAction(threads.ActionAllow, b.permissionHandler(sessions.VerdictAllow))
	d.OnAction(threads.ActionDeny, b.permissionHandler(sessions.VerdictDeny))
	d.OnAction(threads.ActionReason, b.openReasonModal)
	d.OnView(render.ViewReason, b.submitReason)
	d.OnAction(render.ActionPeek, b.handlePeek)
	d.OnAction(render.ActionRestart, b.lifecycleHandler(verbRestart))
	d.OnAction(render.ActionStop, b.lifecycleHandler(verbStop))
	d.OnAction(render.ActionStart, b.lifecycleHandler(verbStart))
	d.OnAction(render.ActionDelete, func(ctx context.Context, a Interaction) (string, error) {
		return "", b.openDeleteModal(ctx, a, a.Value)
	})
	d.OnAction(render.ActionDeleteNow, b.handleDelete)
	d.OnAction(render.ActionRoll, b.driftNotice.handleButton)
	d.OnShortcut(shortcutSession, b.openSessionMenu)
	d.OnView(render.ViewCreate, b.submitCreateForm)
	d.OnView(render.ViewDelete, b.submitDelete)
	d.OnHome(b.home.handleOpened)
}

// lifecycleHandler is a button that changes how a session is. It holds nothing but the session's id, so it works as long as it is
// there, and never on another session.
func (b *Bot) lifecycleHandler(verb string) Handler {
	return func(ctx context.Context, a Interaction) (string, error) {
		row, err := b.findSession(ctx, a.Value)
		if err != nil {
			return "", err
		}
		row, err = b.changeState(ctx, verb, row.Ref, row.ID)
		if err != nil {
			return "", err
		}
		return render.Line(row), nil
	}
}

func (b *Bot) handlePeek(ctx context.Context, a Interaction) (string, error) {
	look := func(ctx context.Context) (string, error) {
		row, err := b.findSession(ctx, a.Value)
		if err != nil {
			return "", err
		}
		return b.peek(ctx, row.Ref, a.Actor.User, false)
	}
	if a.View.Kind != kindHome {
		return look(ctx)
	}
	return "", b.openModal(ctx, a, "Peek", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		text, err := look(ctx)
		return b.textModal("Peek", text), err
	})
}

// openDeleteModal opens the modal that asks. A session that will not be deleted is refused there, before anybody is asked.
func (b *Bot) openDeleteModal(ctx context.Context, a Interaction, handle string) error {
	return b.openModal(ctx, a, "Delete a session", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		row, err := b.findDeletable(ctx, handle)
		if err != nil {
			return slackgo.ModalViewRequest{}, err
		}
		return render.Confirm(row, render.Handle(row)), nil
	})
}

func (b *Bot) findDeletable(ctx context.Context, handle string) (sessions.Row, error) {
	row, err := b.findSession(ctx, handle)
	if err != nil {
		return sessions.Row{}, err
	}
	return row, b.o.Core.CheckDeletable(sessions.DeleteRequest{Ref: row.Ref})
}

func (b *Bot) submitDelete(ctx context.Context, a Interaction) any {
	return b.ackWhenDone(ctx, a, "Deleting …", func(ctx context.Context) (string, error) {
		row, err := b.findSession(ctx, a.View.Meta)
		if err != nil {
			return "", err
		}
		return b.deleteSession(ctx, row.Ref, row.ID)
	})
}

// handleDelete deletes: its button stands under a question.
func (b *Bot) handleDelete(ctx context.Context, a Interaction) (string, error) {
	row, err := b.findSession(ctx, a.Value)
	if err != nil {
		return "", err
	}
	return b.deleteSession(ctx, row.Ref, row.ID)
}

// openSessionMenu is the message shortcut: what can be done to the session whose thread the message is in.
func (b *Bot) openSessionMenu(ctx context.Context, a Interaction) (string, error) {
	return "", b.openModal(ctx, a, "Session", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		id, _, ok := b.threads.SessionAt(a.Channel, cmp.Or(a.Root, a.TS))
		if !ok {
			return b.textModal("Session", "This message is in no session's thread. A session's thread is the one under its announcement."), nil
		}
		row, err := b.findSession(ctx, id)
		if err != nil {
			return slackgo.ModalViewRequest{}, err
		}
		return b.textModal(row.Name, render.Announcement(row), render.Buttons(row)...), nil
	})
}
