package bot

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/sessions"
)

// createRequest is a session that a member would like to have. Arguments of the agent's program and files with a brief are not
// theirs to choose.
type createRequest struct {
	name, harness, cwd, brief string
	channel                   string // where it is announced; empty: where all are
	noStart                   bool   // not started now
}

// create makes a session within the limits.
func (b *Bot) create(ctx context.Context, w createRequest) (sessions.Row, error) {
	cfg := b.o.Config()
	harness := cmp.Or(w.harness, cfg.DefaultHarness)
	cwd, err := cfg.Create.apply(harness, cmp.Or(expandHome(w.cwd), cfg.DefaultCwd))
	if err != nil {
		return sessions.Row{}, err
	}
	defer b.announcer.wake()
	row, err := b.o.Core.Create(ctx, sessions.CreateRequest{Name: w.name, Harness: harness, Cwd: cwd, Prompt: w.brief, NoStart: w.noStart,
		Slack: sessions.SlackDefinition{Enabled: true, Channel: w.channel}})
	if err != nil {
		return sessions.Row{}, &fieldError{errorField(err, w.name, cwd), err}
	}
	return row, nil
}

// expandHome completes a folder that begins with a tilde.
func expandHome(cwd string) string {
	rest, ok := strings.CutPrefix(cwd, "~")
	if dir, err := os.UserHomeDir(); ok && err == nil && (rest == "" || rest[0] == '/') {
		return filepath.Join(dir, rest)
	}
	return cwd
}

// errorField is the field of the form that a refusal of the core's is about.
func errorField(err error, name, cwd string) string {
	info, statErr := os.Stat(cwd)
	switch {
	case !sessions.ValidName(name), errors.Is(err, sessions.ErrNameTaken):
		return render.FieldName
	case !filepath.IsAbs(cwd), statErr != nil, !info.IsDir():
		return render.FieldCwd
	case strings.Contains(err.Error(), "harness"):
		return render.FieldHarness
	}
	return render.FieldName
}

// createdMessage tells who created a session what has become of it.
func (b *Bot) createdMessage(r sessions.Row) string {
	line := render.Line(r)
	if channel := b.announceChannel(r); channel != "" && r.Running {
		line += "\nIt is announced in <#" + channel + ">."
	}
	return line
}

// openCreateForm opens the form that creates a session. What it shows is at hand, so it is opened at once.
func (b *Bot) openCreateForm(ctx context.Context, a Interaction) error {
	cfg := b.o.Config()
	names := cfg.Create.allowedHarnesses(cfg.Harnesses)
	if len(names) == 0 {
		return errors.New("there is no harness that a session could be created with from Slack: look at channels.slack.create.harnesses")
	}
	form := render.CreateForm{Harnesses: names, Harness: cfg.DefaultHarness, Cwd: cfg.DefaultCwd, Channel: cfg.Channel}
	_, err := b.openView(ctx, a, form.View())
	return explainExpiredTrigger(err)
}

// submitCreateForm creates the session of a filled-in form. Refusals are shown at their field.
func (b *Bot) submitCreateForm(ctx context.Context, a Interaction) any {
	w := parseCreateForm(slack.ParseObject(a.Payload).Obj("view"))
	return b.ackWhenDone(ctx, a, "Creating "+render.Name(w.name)+" …", func(ctx context.Context) (string, error) {
		row, err := b.create(ctx, w)
		if err != nil {
			return "", err
		}
		return b.createdMessage(row), nil
	})
}

// parseCreateForm reads the form.
func parseCreateForm(view slack.RawObject) createRequest {
	fields := view.Obj("state").Obj("values")
	field := func(id string) slack.RawObject { return fields.Obj(id).Obj(render.FieldValue) }
	w := createRequest{
		name:    strings.TrimSpace(field(render.FieldName).Str("value")),
		harness: field(render.FieldHarness).Obj("selected_option").Str("value"),
		cwd:     strings.TrimSpace(field(render.FieldCwd).Str("value")),
		brief:   strings.TrimSpace(field(render.FieldBrief).Str("value")),
		channel: field(render.FieldChannel).Str("selected_conversation"),
		noStart: true,
	}
	for _, o := range field(render.FieldStart).Objects("selected_options") {
		w.noStart = w.noStart && o.Str("value") != render.StartNow
	}
	return w
}
