package bot

import (
	"context"
	"errors"
	"strings"

	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/threads"
)

// permissionHandler is a button that decides a question of an agent's.
func (b *Bot) permissionHandler(v sessions.Verdict) Handler {
	return func(ctx context.Context, a Interaction) (string, error) {
		return b.threads.DecidePermission(ctx, threads.PermissionDecision{Token: a.Value, Verdict: v, Actor: a.Actor, TS: a.TS})
	}
}

// openReasonModal opens the modal that asks for the reason. Of a question that is not open any more it is said so instead.
func (b *Bot) openReasonModal(ctx context.Context, a Interaction) (string, error) {
	if why, ok := b.threads.CanDecide(ctx, a.Value); !ok {
		return why, ctx.Err()
	}
	_, err := b.openView(ctx, a, render.Reason(a.Value))
	return "", explainExpiredTrigger(err)
}

// submitReason decides with the reason that was given. What came of it is shown in the modal.
func (b *Bot) submitReason(ctx context.Context, a Interaction) any {
	field := slack.ParseObject(a.Payload).Obj("view").Obj("state").Obj("values").Obj(render.FieldReason).Obj(render.FieldValue)
	return b.ackWhenDone(ctx, a, "Telling the agent …", func(ctx context.Context) (string, error) {
		text, err := b.threads.DecidePermission(ctx, threads.PermissionDecision{Token: a.View.Meta, Verdict: sessions.VerdictDeny,
			Reason: strings.TrimSpace(field.Str("value")), Actor: a.Actor})
		if errors.Is(err, threads.ErrDenied) { // taken off the list meanwhile
			return "", nil
		}
		return text, err
	})
}
