package interact

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/bot/slack/lenientjson"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/permission"
)

// permissionHandler is a button that decides a permission request.
func (h *handlers) permissionHandler(v sessions.Verdict) Handler {
	return func(ctx context.Context, a Interaction) (string, error) {
		return h.o.Permissions.DecidePermission(ctx, threads.PermissionDecision{Token: a.Value, Verdict: v, Actor: a.Actor, TS: a.TS})
	}
}

// openReasonModal opens the modal that asks for the reason of a denial, if the request can still be decided.
func (h *handlers) openReasonModal(ctx context.Context, a Interaction) (string, error) {
	r, why, ok := h.o.Permissions.Decidable(ctx, a.Value)
	if !ok {
		return why, ctx.Err()
	}
	_, err := h.modals.openView(ctx, a, render.ReasonModal(a.Value, r.Plan))
	return "", explainExpiredTrigger(err)
}

// approveEdits allows a plan, and edits without asking.
func (h *handlers) approveEdits(ctx context.Context, a Interaction) (string, error) {
	return h.o.Permissions.DecidePermission(ctx, threads.PermissionDecision{Token: a.Value, Verdict: sessions.VerdictAllow, AcceptEdits: true, Actor: a.Actor, TS: a.TS})
}

// chooseHandler is a button that answers the single question of a request with the option of that index.
func (h *handlers) chooseHandler(option int) Handler {
	return func(ctx context.Context, a Interaction) (string, error) {
		return h.o.Permissions.DecidePermission(ctx, threads.PermissionDecision{Token: a.Value, Verdict: sessions.VerdictAllow,
			Answers: []permission.Answer{{Options: []int{option}}}, Actor: a.Actor, TS: a.TS})
	}
}

// openAnswerModal opens the form with the questions of a request, if it can still be decided.
func (h *handlers) openAnswerModal(ctx context.Context, a Interaction) (string, error) {
	r, why, ok := h.o.Permissions.Decidable(ctx, a.Value)
	if !ok {
		return why, ctx.Err()
	}
	_, err := h.modals.openView(ctx, a, render.AnswerModal(a.Value, r.Questions))
	return "", explainExpiredTrigger(err)
}

// submitAnswers answers the questions of a request. A question without an answer is shown at its field.
func (h *handlers) submitAnswers(ctx context.Context, a Interaction) any {
	answers := parseAnswers(lenientjson.Parse(a.Payload).Obj("view").Obj("state").Obj("values"))
	return h.modals.ackWhenDone(ctx, a, "Telling the agent …", func(ctx context.Context) (string, error) {
		r, why, ok := h.o.Permissions.Decidable(ctx, a.View.Meta)
		if !ok {
			return why, ctx.Err()
		}
		var missing *permission.NoAnswerError
		if _, _, err := r.Choose(answers); errors.As(err, &missing) {
			return "", &command.FieldError{Field: render.QuestionField(missing.Question), Err: errChoose}
		}
		text, err := h.o.Permissions.DecidePermission(ctx, threads.PermissionDecision{Token: a.View.Meta, Verdict: sessions.VerdictAllow, Answers: answers, Actor: a.Actor})
		if errors.Is(err, threads.ErrDenied) { // removed from the list meanwhile
			return "", nil
		}
		return text, err
	})
}

var errChoose = errors.New("choose one of these, or write your own answer below, not both; where several may be chosen, both")

// parseAnswers reads the fields of the form, question by question.
func parseAnswers(values lenientjson.Object) (answers []permission.Answer) {
	for i := 0; ; i++ {
		if !values.Has(render.QuestionWordsField(i)) {
			return answers
		}
		choice := values.Obj(render.QuestionField(i)).Obj(render.FieldValue)
		answer := permission.Answer{Words: values.Obj(render.QuestionWordsField(i)).Obj(render.FieldValue).Str("value")}
		for _, o := range append(choice.Objects("selected_options"), choice.Obj("selected_option")) { // of checkboxes, and of radio buttons
			if n, err := strconv.Atoi(o.Str("value")); err == nil {
				answer.Options = append(answer.Options, n)
			}
		}
		answers = append(answers, answer)
	}
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
