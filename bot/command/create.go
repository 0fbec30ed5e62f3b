package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"the-loop/bot/render"
	"the-loop/sessions"
)

// CreateRequest is a session that a member wants. Members choose neither arguments of the agent's program nor files with a brief.
type CreateRequest struct {
	Name, Harness, Cwd, Brief string
	Channel                   string // where it is announced; empty: the configured channel
	NoStart                   bool   // do not start it now
}

// Create creates a session within the limits, and returns how it is. A refusal of one field is a [*FieldError].
func (a *Actions) Create(ctx context.Context, q CreateRequest) (string, error) {
	o := a.o.Create()
	if q.Harness == "" {
		q.Harness = o.DefaultHarness
	}
	cwd := expandHome(q.Cwd)
	if cwd == "" {
		cwd = o.DefaultCwd
	}
	cwd, err := o.Limits.apply(q.Harness, cwd)
	if err != nil {
		return "", err
	}
	defer a.o.OnChange()
	row, err := a.o.Creator.Create(ctx, sessions.CreateRequest{Name: q.Name, Harness: q.Harness, Cwd: cwd, Prompt: q.Brief, NoStart: q.NoStart,
		Chat: sessions.ChatDefinition{Enabled: true, Channel: q.Channel}})
	if err != nil {
		return "", &FieldError{errorField(err, q.Name, cwd), err}
	}
	return a.createdMessage(row), nil
}

// expandHome replaces a leading tilde of a folder.
func expandHome(cwd string) string {
	rest, ok := strings.CutPrefix(cwd, "~")
	if dir, err := os.UserHomeDir(); ok && err == nil && (rest == "" || rest[0] == '/') {
		return filepath.Join(dir, rest)
	}
	return cwd
}

// errorField is the field of the form that a refusal of the core is about.
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

func (a *Actions) createdMessage(r sessions.Row) string {
	text := render.SessionLine(r)
	if channel := a.o.AnnounceChannel(r); channel != "" && r.Running {
		text += "\nIt is announced in <#" + channel + ">."
	}
	return text
}
