package interact

import (
	"context"
	"errors"
	"strings"

	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/bot/slack/lenientjson"
)

// openCreateForm opens the form that creates a session.
func (h *handlers) openCreateForm(ctx context.Context, a Interaction) error {
	form := h.o.CreateForm()
	if len(form.Harnesses) == 0 {
		return errors.New("no harness may be used for sessions created from Slack: check channels.slack.create.harnesses")
	}
	_, err := h.modals.openView(ctx, a, form.View())
	return explainExpiredTrigger(err)
}

// submitCreateForm creates the session of a submitted form. A refusal is shown at its field.
func (h *handlers) submitCreateForm(ctx context.Context, a Interaction) any {
	q := parseCreateForm(lenientjson.Parse(a.Payload).Obj("view"))
	return h.modals.ackWhenDone(ctx, a, "Creating "+render.EscapeName(q.Name)+" …", func(ctx context.Context) (string, error) {
		return h.o.Actions.Create(ctx, q)
	})
}

// parseCreateForm reads a submitted form.
func parseCreateForm(view lenientjson.Object) command.CreateRequest {
	fields := view.Obj("state").Obj("values")
	field := func(id string) lenientjson.Object { return fields.Obj(id).Obj(render.FieldValue) }
	q := command.CreateRequest{
		Name:    strings.TrimSpace(field(render.FieldName).Str("value")),
		Harness: field(render.FieldHarness).Obj("selected_option").Str("value"),
		Cwd:     strings.TrimSpace(field(render.FieldCwd).Str("value")),
		Brief:   strings.TrimSpace(field(render.FieldBrief).Str("value")),
		Channel: field(render.FieldChannel).Str("selected_conversation"),
		NoStart: true,
	}
	for _, o := range field(render.FieldStart).Objects("selected_options") {
		q.NoStart = q.NoStart && o.Str("value") != render.StartNow
	}
	return q
}
