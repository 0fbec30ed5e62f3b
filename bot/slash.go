package bot

import (
	"context"
	"errors"
	"fmt"

	"the-loop/bot/render"
	"the-loop/sessions"
)

// slash answers the slash command. It does not exist in threads: Slack sends nothing from there.
type slash struct{ b *Bot }

// Command implements [Commands]. What was not understood is answered with how it is used, and changes nothing.
func (s slash) Command(ctx context.Context, a Act) (string, error) {
	c := parseCommand(a.Text)
	run := s.verbs()[c.Verb]
	if run == nil {
		return helpText(a.Name), nil
	}
	answer, err := run(ctx, a, c.Rest)
	if errors.Is(err, errUsage) {
		return render.Escape(capital(err.Error())) + ".\n" + usageOf(a.Name, c.Verb), nil
	}
	return answer, err
}

type slashFunc func(ctx context.Context, a Act, rest string) (string, error)

func (s slash) verbs() map[string]slashFunc {
	return map[string]slashFunc{
		"status":  func(ctx context.Context, a Act, _ string) (string, error) { return s.b.postStatus(ctx, a.Channel) },
		"list":    func(ctx context.Context, _ Act, _ string) (string, error) { return s.b.list(ctx) },
		"create":  s.create,
		"delete":  s.delete,
		"start":   s.change(verbStart),
		"stop":    s.change(verbStop),
		"restart": s.restart,
		"say":     s.say,
		"peek":    s.peek,
	}
}

func (s slash) change(verb string) slashFunc {
	return func(ctx context.Context, _ Act, rest string) (string, error) {
		ref, _, err := namedIn(rest, nil)
		if err != nil {
			return "", err
		}
		row, err := s.b.change(ctx, verb, ref, "")
		if err != nil {
			return "", err
		}
		return render.Line(row), nil
	}
}

// restart restarts one session, or with --all every one onto what the env file declares.
func (s slash) restart(ctx context.Context, a Act, rest string) (string, error) {
	all, dry, err := rollWords(rest)
	switch {
	case err != nil:
		return "", err
	case all:
		return s.b.rotation.command(ctx, a.Actor.User, dry)
	}
	return s.change(verbRestart)(ctx, a, rest)
}

// rollWords reads whether a restart is one of every session.
func rollWords(rest string) (all, dry bool, err error) {
	w, err := readWords(rest, map[string]bool{"all": false, "dry-run": false})
	switch all, dry = w.has("all"), w.has("dry-run"); {
	case err != nil:
	case all && len(w.args) > 0:
		err = fmt.Errorf("%w: it takes either a name or --all", errUsage)
	case dry && !all:
		err = fmt.Errorf("%w: --dry-run goes with --all", errUsage)
	}
	return all, dry, err
}

// namedIn reads a command on one session.
func namedIn(rest string, takes map[string]bool) (sessions.Ref, words, error) {
	w, err := readWords(rest, takes)
	if err != nil {
		return "", w, err
	}
	name, err := w.name()
	if err != nil {
		return "", w, err
	}
	ref, err := refOf(name)
	return ref, w, err
}

// refOf takes a session's name, or its ref.
func refOf(name string) (sessions.Ref, error) {
	if sessions.ValidName(name) {
		return sessions.StandingRef(name), nil
	}
	return sessions.ParseRef(name)
}

func (s slash) create(ctx context.Context, a Act, rest string) (string, error) {
	w, err := readWords(rest, map[string]bool{"harness": true, "cwd": true, "no-start": false})
	if err != nil {
		return "", err
	}
	if len(w.args) == 0 && len(w.flags) == 0 && w.brief == "" {
		return "", s.b.openForm(ctx, a)
	}
	name, err := w.name()
	if err != nil {
		return "", err
	}
	row, err := s.b.create(ctx, wish{name: name, harness: w.flags["harness"], cwd: w.flags["cwd"], brief: w.brief, idle: w.has("no-start")})
	if err != nil {
		return "", err
	}
	return s.b.born(row), nil
}

func (s slash) delete(ctx context.Context, a Act, rest string) (string, error) {
	ref, _, err := namedIn(rest, nil)
	if err != nil {
		return "", err
	}
	return "", s.b.askDelete(ctx, a, string(ref))
}

func (s slash) say(ctx context.Context, a Act, rest string) (string, error) {
	c := parseCommand(rest)
	if c.Verb == "" || c.Rest == "" {
		return "", fmt.Errorf("%w: it takes a name and a text", errUsage)
	}
	ref, err := refOf(c.Verb)
	if err != nil {
		return "", err
	}
	return s.b.say(ctx, a, ref, c.Rest)
}

func (s slash) peek(ctx context.Context, a Act, rest string) (string, error) {
	ref, w, err := namedIn(rest, map[string]bool{"share": false})
	if err != nil {
		return "", err
	}
	return s.b.peek(ctx, ref, a.Actor.User, w.has("share"))
}
