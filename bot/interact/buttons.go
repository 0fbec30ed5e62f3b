package interact

import (
	"cmp"
	"context"
	"strconv"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/permission"
)

// ShortcutSession is the callback id of the message shortcut.
const ShortcutSession = "session_menu"

// register registers the handlers with the router.
func (h *handlers) register(r *InteractionRouter) {
	r.OnResend(h.o.Resender)
	r.OnAction(chat.ActionAllow, h.permissionHandler(sessions.VerdictAllow))
	r.OnAction(chat.ActionDeny, h.permissionHandler(sessions.VerdictDeny))
	r.OnAction(chat.ActionReason, h.openReasonModal)
	r.OnView(render.ViewReason, h.submitReason)
	r.OnAction(chat.ActionApproveEdits, h.approveEdits)
	for i := range permission.MaxChoiceButtons {
		r.OnAction(chat.ActionChoose+strconv.Itoa(i+1), h.chooseHandler(i))
	}
	r.OnAction(chat.ActionAnswer, h.openAnswerModal)
	r.OnView(render.ViewAnswer, h.submitAnswers)
	r.OnAction(render.ActionPeek, h.handlePeek)
	r.OnAction(render.ActionRestart, h.lifecycleHandler(command.VerbRestart))
	r.OnAction(render.ActionStop, h.lifecycleHandler(command.VerbStop))
	r.OnAction(render.ActionStart, h.lifecycleHandler(command.VerbStart))
	r.OnAction(render.ActionDelete, func(ctx context.Context, a Interaction) (string, error) {
		return "", h.openDeleteModal(ctx, a, a.Value)
	})
	r.OnAction(render.ActionDeleteNow, h.handleDelete)
	r.OnAction(render.ActionRestartAll, func(ctx context.Context, a Interaction) (string, error) {
		return h.o.Restarter.RestartStale(ctx, a.Actor.User)
	})
	r.OnShortcut(ShortcutSession, h.openSessionMenu)
	r.OnView(render.ViewCreate, h.submitCreateForm)
	r.OnView(render.ViewDelete, h.submitDelete)
}

// lifecycleHandler is a button that changes a session's state. Its value is the session's id, so it never acts on another session.
func (h *handlers) lifecycleHandler(verb string) Handler {
	return func(ctx context.Context, a Interaction) (string, error) {
		row, err := h.o.Actions.Find(ctx, a.Value)
		if err != nil {
			return "", err
		}
		row, err = h.o.Actions.ChangeState(ctx, verb, row.Ref, row.ID)
		if err != nil {
			return "", err
		}
		return render.SessionLine(row), nil
	}
}

func (h *handlers) handlePeek(ctx context.Context, a Interaction) (string, error) {
	peek := func(ctx context.Context) (string, error) {
		row, err := h.o.Actions.Find(ctx, a.Value)
		if err != nil {
			return "", err
		}
		return h.o.Actions.Peek(ctx, row.Ref, a.Actor.User, false)
	}
	if a.View.Kind != kindHome {
		return peek(ctx)
	}
	return "", h.modals.open(ctx, a, "Peek", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		text, err := peek(ctx)
		return h.modals.text("Peek", text), err
	})
}

// openDeleteModal opens the modal that asks before a session is deleted. A session that cannot be deleted is refused there.
func (h *handlers) openDeleteModal(ctx context.Context, a Interaction, handle string) error {
	return h.modals.open(ctx, a, "Delete a session", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		row, err := h.o.Actions.FindDeletable(ctx, handle)
		if err != nil {
			return slackgo.ModalViewRequest{}, err
		}
		return render.DeleteModal(row, render.SessionHandle(row)), nil
	})
}

func (h *handlers) submitDelete(ctx context.Context, a Interaction) any {
	return h.modals.ackWhenDone(ctx, a, "Deleting …", func(ctx context.Context) (string, error) {
		return h.o.Actions.Delete(ctx, a.View.Meta)
	})
}

// handleDelete deletes a session: its button stands below the question.
func (h *handlers) handleDelete(ctx context.Context, a Interaction) (string, error) {
	return h.o.Actions.Delete(ctx, a.Value)
}

// openSessionMenu handles the message shortcut: it shows the session of the thread, with its buttons.
func (h *handlers) openSessionMenu(ctx context.Context, a Interaction) (string, error) {
	return "", h.modals.open(ctx, a, "Session", func(ctx context.Context) (slackgo.ModalViewRequest, error) {
		id, _, ok := h.o.Threads.SessionAt(a.Channel, cmp.Or(a.Root, a.TS))
		if !ok {
			return h.modals.text("Session", "This message is not in a session's thread. A session's thread is the one under its announcement."), nil
		}
		row, err := h.o.Actions.Find(ctx, id)
		if err != nil {
			return slackgo.ModalViewRequest{}, err
		}
		return h.modals.text(row.Name, render.Announcement(row), render.SessionButtons(row)...), nil
	})
}
