package bot

import (
	"context"
	"errors"
	"fmt"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// slashHandler answers the slash command. It does not exist in threads: Slack sends nothing from there.
type slashHandler struct{ b *Bot }

// HandleCommand implements [CommandHandler]. What was not understood is answered with how it is used, and changes nothing.
func (s slashHandler) HandleCommand(ctx context.Context, a Interaction) (string, error) {
	c := chat.ParseCommand(a.Text)
	run := s.verbs()[c.Verb]
	if run == nil {
		return helpText(a.Name), nil
	}
	answer, err := run(ctx, a, c.Rest)
	if errors.Is(err, errUsage) {
		return render.Escape(capitalize(err.Error())) + ".\n" + usageText(a.Name, c.Verb), nil
	}
	return answer, err
}

type verbFunc func(ctx context.Context, a Interaction, rest string) (string, error)

func (s slashHandler) verbs() map[string]verbFunc {
	return map[string]verbFunc{
		"status": func(ctx context.Context, a Interaction, _ string) (string, error) {
			return s.b.postStatus(ctx, a.Channel)
		},
		"list":    func(ctx context.Context, _ Interaction, _ string) (string, error) { return s.b.listText(ctx) },
		"create":  s.create,
		"delete":  s.confirmDelete,
		"start":   s.stateHandler(verbStart),
		"stop":    s.stateHandler(verbStop),
		"restart": s.restart,
		"say":     s.say,
		"peek":    s.peek,
	}
}

func (s slashHandler) stateHandler(verb string) verbFunc {
	return func(ctx context.Context, _ Interaction, rest string) (string, error) {
		ref, _, err := parseSessionArgs(rest, nil)
		if err != nil {
			return "", err
		}
		row, err := s.b.changeState(ctx, verb, ref, "")
		if err != nil {
			return "", err
		}
		return render.Line(row), nil
	}
}

// restart restarts one session, or with --all every one onto what the env file declares.
func (s slashHandler) restart(ctx context.Context, a Interaction, rest string) (string, error) {
	all, dry, err := parseRestartAll(rest)
	switch {
	case err != nil:
		return "", err
	case all:
		return s.b.driftNotice.handleCommand(ctx, a.Actor.User, dry)
	}
	return s.stateHandler(verbRestart)(ctx, a, rest)
}

// parseRestartAll reads whether a restart is one of every session.
func parseRestartAll(rest string) (all, dry bool, err error) {
	w, err := parseArgs(rest, map[string]bool{"all": false, "dry-run": false})
	switch all, dry = w.hasFlag("all"), w.hasFlag("dry-run"); {
	case err != nil:
	case all && len(w.positional) > 0:
		err = fmt.Errorf("%w: it takes either a name or --all", errUsage)
	case dry && !all:
		err = fmt.Errorf("%w: --dry-run goes with --all", errUsage)
	}
	return all, dry, err
}

// parseSessionArgs reads a command on one session.
func parseSessionArgs(rest string, takes map[string]bool) (sessions.Ref, words, error) {
	w, err := parseArgs(rest, takes)
	if err != nil {
		return "", w, err
	}
	name, err := w.sessionName()
	if err != nil {
		return "", w, err
	}
	ref, err := parseRef(name)
	return ref, w, err
}

// parseRef takes a session's name, or its ref.
func parseRef(name string) (sessions.Ref, error) {
	if sessions.ValidName(name) {
		return sessions.StandingRef(name), nil
	}
	return sessions.ParseRef(name)
}

func (s slashHandler) create(ctx context.Context, a Interaction, rest string) (string, error) {
	w, err := parseArgs(rest, map[string]bool{"harness": true, "cwd": true, "no-start": false})
	if err != nil {
		return "", err
	}
	if len(w.positional) == 0 && len(w.flags) == 0 && w.brief == "" {
		return "", s.b.openCreateForm(ctx, a)
	}
	name, err := w.sessionName()
	if err != nil {
		return "", err
	}
	row, err := s.b.create(ctx, createRequest{name: name, harness: w.flags["harness"], cwd: w.flags["cwd"], brief: w.brief, noStart: w.hasFlag("no-start")})
	if err != nil {
		return "", err
	}
	return s.b.createdMessage(row), nil
}

func (s slashHandler) confirmDelete(ctx context.Context, a Interaction, rest string) (string, error) {
	ref, _, err := parseSessionArgs(rest, nil)
	if err != nil {
		return "", err
	}
	return "", s.b.openDeleteModal(ctx, a, string(ref))
}

func (s slashHandler) say(ctx context.Context, a Interaction, rest string) (string, error) {
	c := chat.ParseCommand(rest)
	if c.Verb == "" || c.Rest == "" {
		return "", fmt.Errorf("%w: it takes a name and a text", errUsage)
	}
	ref, err := parseRef(c.Verb)
	if err != nil {
		return "", err
	}
	return s.b.sendText(ctx, a, ref, c.Rest)
}

func (s slashHandler) peek(ctx context.Context, a Interaction, rest string) (string, error) {
	ref, w, err := parseSessionArgs(rest, map[string]bool{"share": false})
	if err != nil {
		return "", err
	}
	return s.b.peek(ctx, ref, a.Actor.User, w.hasFlag("share"))
}
