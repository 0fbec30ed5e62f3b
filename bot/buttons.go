package bot

import (
	"context"

	"github.com/slack-go/slack"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
)

// shortcutSession is the callback id of the message shortcut.
const shortcutSession = "session_menu"

// register opens the doors to everything that there is.
func (b *Bot) register(d *Doors) {
	d.OnDecision(b.threads)
	d.OnAction(threads.ActionAllow, b.rule(sessions.VerdictAllow))
	d.OnAction(threads.ActionDeny, b.rule(sessions.VerdictDeny))
	d.OnAction(threads.ActionReason, b.askReason)
	d.OnView(render.ViewReason, b.submitReason)
	d.OnAction(render.ActionPeek, b.pressPeek)
	d.OnAction(render.ActionRestart, b.press(verbRestart))
	d.OnAction(render.ActionStop, b.press(verbStop))
	d.OnAction(render.ActionStart, b.press(verbStart))
	d.OnAction(render.ActionDelete, func(ctx context.Context, a Act) (string, error) { return "", b.askDelete(ctx, a, a.Value) })
	d.OnAction(render.ActionDeleteNow, b.pressDelete)
	d.OnAction(render.ActionRoll, b.rotation.pressed)
	d.OnShortcut(shortcutSession, b.menu)
	d.OnView(render.ViewCreate, b.submitForm)
	d.OnView(render.ViewDelete, b.submitDelete)
	d.OnHome(b.home.opened)
}

// press is a button that changes how a session is. It holds nothing but the session's id, so it works as long as it is
// there, and never on another session.
func (b *Bot) press(verb string) Handler {
	return func(ctx context.Context, a Act) (string, error) {
		row, err := b.find(ctx, a.Value)
		if err != nil {
			return "", err
		}
		row, err = b.change(ctx, verb, row.Ref, row.ID)
		if err != nil {
			return "", err
		}
		return render.Line(row), nil
	}
}

func (b *Bot) pressPeek(ctx context.Context, a Act) (string, error) {
	look := func(ctx context.Context) (string, error) {
		row, err := b.find(ctx, a.Value)
		if err != nil {
			return "", err
		}
		return b.peek(ctx, row.Ref, a.Actor.User, false)
	}
	if a.View.Kind != kindHome {
		return look(ctx)
	}
	return "", b.modal(ctx, a, "Peek", func(ctx context.Context) (slack.ModalViewRequest, error) {
		text, err := look(ctx)
		return b.notice("Peek", text), err
	})
}

// askDelete opens the modal that asks. A session that will not be deleted is refused there, before anybody is asked.
func (b *Bot) askDelete(ctx context.Context, a Act, handle string) error {
	return b.modal(ctx, a, "Delete a session", func(ctx context.Context) (slack.ModalViewRequest, error) {
		row, err := b.deletable(ctx, handle)
		if err != nil {
			return slack.ModalViewRequest{}, err
		}
		return render.Confirm(row, render.Handle(row)), nil
	})
}

func (b *Bot) deletable(ctx context.Context, handle string) (sessions.Row, error) {
	row, err := b.find(ctx, handle)
	if err != nil {
		return sessions.Row{}, err
	}
	return row, b.o.Core.Deletable(sessions.DeleteRequest{Ref: row.Ref})
}

func (b *Bot) submitDelete(ctx context.Context, a Act) any {
	return b.soon(ctx, a, "Deleting …", func(ctx context.Context) (string, error) {
		row, err := b.find(ctx, a.View.Meta)
		if err != nil {
			return "", err
		}
		return b.remove(ctx, row.Ref, row.ID)
	})
}

// pressDelete deletes: its button stands under a question.
func (b *Bot) pressDelete(ctx context.Context, a Act) (string, error) {
	row, err := b.find(ctx, a.Value)
	if err != nil {
		return "", err
	}
	return b.remove(ctx, row.Ref, row.ID)
}

// menu is the message shortcut: what can be done to the session whose thread the message is in.
func (b *Bot) menu(ctx context.Context, a Act) (string, error) {
	return "", b.modal(ctx, a, "Session", func(ctx context.Context) (slack.ModalViewRequest, error) {
		id, _, ok := b.threads.SessionAt(a.Channel, first(a.Root, a.TS))
		if !ok {
			return b.notice("Session", "This message is in no session's thread. A session's thread is the one under its announcement."), nil
		}
		row, err := b.find(ctx, id)
		if err != nil {
			return slack.ModalViewRequest{}, err
		}
		return b.notice(row.Name, render.Announcement(row), render.Buttons(row)...), nil
	})
}
