package bot

import (
	"context"
	"errors"
	"strings"

	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/bot/slack"
)

// openCreateForm opens the form that creates a session.
func (b *Bot) openCreateForm(ctx context.Context, a Interaction) error {
	cfg := b.o.Config()
	names := cfg.Create.AllowedHarnesses(cfg.Harnesses)
	if len(names) == 0 {
		return errors.New("no harness may be used for sessions created from Slack: check channels.slack.create.harnesses")
	}
	form := render.CreateForm{Harnesses: names, Harness: cfg.DefaultHarness, Cwd: cfg.DefaultCwd, Channel: cfg.Channel}
	_, err := b.openView(ctx, a, form.View())
	return explainExpiredTrigger(err)
}

// submitCreateForm creates the session of a submitted form. A refusal is shown at its field.
func (b *Bot) submitCreateForm(ctx context.Context, a Interaction) any {
	q := parseCreateForm(slack.ParseObject(a.Payload).Obj("view"))
	return b.ackWhenDone(ctx, a, "Creating "+render.Name(q.Name)+" …", func(ctx context.Context) (string, error) {
		return b.actions.Create(ctx, q)
	})
}

// parseCreateForm reads a submitted form.
func parseCreateForm(view slack.RawObject) command.CreateRequest {
	fields := view.Obj("state").Obj("values")
	field := func(id string) slack.RawObject { return fields.Obj(id).Obj(render.FieldValue) }
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
