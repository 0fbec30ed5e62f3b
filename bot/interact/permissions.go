package interact

import (
	"context"
	"errors"
	"strings"

	"the-loop/bot/render"
	"the-loop/bot/slack/lenientjson"
	"the-loop/sessions"
	"the-loop/threads"
)

// permissionHandler is a button that decides a permission request.
func (h *handlers) permissionHandler(v sessions.Verdict) Handler {
	return func(ctx context.Context, a Interaction) (string, error) {
		return h.o.Permissions.DecidePermission(ctx, threads.PermissionDecision{Token: a.Value, Verdict: v, Actor: a.Actor, TS: a.TS})
	}
}

// openReasonModal opens the modal that asks for the reason of a denial, if the request can still be decided.
func (h *handlers) openReasonModal(ctx context.Context, a Interaction) (string, error) {
	if why, ok := h.o.Permissions.CanDecide(ctx, a.Value); !ok {
		return why, ctx.Err()
	}
	_, err := h.modals.openView(ctx, a, render.ReasonModal(a.Value))
	return "", explainExpiredTrigger(err)
}

// submitReason denies the request with the given reason, and shows the result in the modal.
func (h *handlers) submitReason(ctx context.Context, a Interaction) any {
	field := lenientjson.Parse(a.Payload).Obj("view").Obj("state").Obj("values").Obj(render.FieldReason).Obj(render.FieldValue)
	return h.modals.ackWhenDone(ctx, a, "Telling the agent …", func(ctx context.Context) (string, error) {
		text, err := h.o.Permissions.DecidePermission(ctx, threads.PermissionDecision{Token: a.View.Meta, Verdict: sessions.VerdictDeny,
			Reason: strings.TrimSpace(field.Str("value")), Actor: a.Actor})
		if errors.Is(err, threads.ErrDenied) { // removed from the list meanwhile
			return "", nil
		}
		return text, err
	})
}
