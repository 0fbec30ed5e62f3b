package bot

import (
	"context"
	"errors"
	"strings"

	"the-loop/bot/command"
	"the-loop/bot/render"
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
	q := parseCreateForm(parseObject(a.Payload).obj("view"))
	return b.ackWhenDone(ctx, a, "Creating "+render.Name(q.Name)+" …", func(ctx context.Context) (string, error) {
		return b.actions.Create(ctx, q)
	})
}

// parseCreateForm reads a submitted form.
func parseCreateForm(view rawObject) command.CreateRequest {
	fields := view.obj("state").obj("values")
	field := func(id string) rawObject { return fields.obj(id).obj(render.FieldValue) }
	q := command.CreateRequest{
		Name:    strings.TrimSpace(field(render.FieldName).str("value")),
		Harness: field(render.FieldHarness).obj("selected_option").str("value"),
		Cwd:     strings.TrimSpace(field(render.FieldCwd).str("value")),
		Brief:   strings.TrimSpace(field(render.FieldBrief).str("value")),
		Channel: field(render.FieldChannel).str("selected_conversation"),
		NoStart: true,
	}
	for _, o := range field(render.FieldStart).objects("selected_options") {
		q.NoStart = q.NoStart && o.str("value") != render.StartNow
	}
	return q
}
