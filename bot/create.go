package bot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"the-loop/bot/render"
	"the-loop/sessions"
)

// wish is a session that a member would like to have. Arguments of the agent's program and files with a brief are not
// theirs to choose.
type wish struct {
	name, harness, cwd, brief string
	channel                   string // where it is announced; empty: where all are
	idle                      bool   // not started now
}

// create makes a session within the limits.
func (b *Bot) create(ctx context.Context, w wish) (sessions.Row, error) {
	cfg := b.o.Config()
	harness := first(w.harness, cfg.DefaultHarness)
	cwd, err := cfg.Create.limited(harness, first(fromHome(w.cwd), cfg.DefaultCwd))
	if err != nil {
		return sessions.Row{}, err
	}
	defer b.announcer.poke()
	row, err := b.o.Core.Create(ctx, sessions.CreateRequest{Name: w.name, Harness: harness, Cwd: cwd, Prompt: w.brief, NoStart: w.idle,
		Slack: sessions.SlackDefinition{Enabled: true, Channel: w.channel}})
	if err != nil {
		return sessions.Row{}, &fieldError{fieldOf(err, w.name, cwd), err}
	}
	return row, nil
}

// fromHome completes a folder that begins with a tilde.
func fromHome(cwd string) string {
	rest, ok := strings.CutPrefix(cwd, "~")
	if dir, err := os.UserHomeDir(); ok && err == nil && (rest == "" || rest[0] == '/') {
		return filepath.Join(dir, rest)
	}
	return cwd
}

// fieldOf is the field of the form that a refusal of the core's is about.
func fieldOf(err error, name, cwd string) string {
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

// born tells who created a session what has become of it.
func (b *Bot) born(r sessions.Row) string {
	line := render.Line(r)
	if channel := b.channelOf(r); channel != "" && r.Running {
		line += "\nIt is announced in <#" + channel + ">."
	}
	return line
}

// openForm opens the form that creates a session. What it shows is at hand, so it is opened at once.
func (b *Bot) openForm(ctx context.Context, a Act) error {
	cfg := b.o.Config()
	names := cfg.Create.choices(cfg.Harnesses)
	if len(names) == 0 {
		return errors.New("there is no harness that a session could be created with from Slack: look at channels.slack.create.harnesses")
	}
	form := render.CreateForm{Harnesses: names, Harness: cfg.DefaultHarness, Cwd: cfg.DefaultCwd, Channel: cfg.Channel}
	_, err := b.o.Client.openView(ctx, a, form.View())
	return tooLate(err)
}

// submitForm creates the session of a filled-in form. Refusals are shown at their field.
func (b *Bot) submitForm(ctx context.Context, a Act) any {
	w := wishOf(loose(a.Payload).obj("view"))
	return b.soon(ctx, a, "Creating "+render.Name(w.name)+" …", func(ctx context.Context) (string, error) {
		row, err := b.create(ctx, w)
		if err != nil {
			return "", err
		}
		return b.born(row), nil
	})
}

// wishOf reads the form.
func wishOf(view object) wish {
	fields := view.obj("state").obj("values")
	field := func(id string) object { return fields.obj(id).obj(render.FieldValue) }
	w := wish{
		name:    strings.TrimSpace(field(render.FieldName).str("value")),
		harness: field(render.FieldHarness).obj("selected_option").str("value"),
		cwd:     strings.TrimSpace(field(render.FieldCwd).str("value")),
		brief:   strings.TrimSpace(field(render.FieldBrief).str("value")),
		channel: field(render.FieldChannel).str("selected_conversation"),
		idle:    true,
	}
	for _, o := range field(render.FieldStart).objects("selected_options") {
		w.idle = w.idle && o.str("value") != render.StartNow
	}
	return w
}
