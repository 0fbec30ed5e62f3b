package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"the-loop/sessions"
)

// ownerOption is the option of a tmux session that carries the mark of the session that it was made for. It is not the panes':
// those of an operator's splits see it too.
const ownerOption = "@the-loop-owner"

// Owner is the mark for which the pane's tmux session was made; empty when somebody else made it.
func (t *Tmux) Owner(ctx context.Context, p sessions.Pane) (string, error) {
	out, err := t.run(ctx, call{args: []string{"display-message", "-p", "-t", p.ID, "#{" + ownerOption + "}"}})
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(out, "\n"), nil
}

// spawnWindow makes the pane in a window of its own in a tmux session that there is, behind what its clients look at: a key
// that is being pressed there must not go into the agent. The window has a name that is like no other until it is marked.
func (t *Tmux) spawnWindow(ctx context.Context, s sessions.Spawn, argv []string) (sessions.Pane, error) {
	left, err := t.staleVariables(ctx, s)
	if err != nil {
		return sessions.Pane{}, err
	}
	name := "the-loop-" + rand.Text()
	at := s.Session + ":=" + name
	var all []string
	for _, variable := range left {
		all = append(all, command("set-environment", "-u", "-t", s.Session, variable))
	}
	for _, variable := range slices.Sorted(maps.Keys(s.Env)) {
		if variable != "PATH" && variable != "SHELL" { // go through env
			all = append(all, command("set-environment", "-t", s.Session, variable, s.Env[variable]))
		}
	}
	all = append(all, command(newWindowArgs(s, name, argv)...),
		command("set-option", "-p", "-t", at, markOption, s.Mark),
		command("set-option", "-p", "-t", at, declaredOption, strings.Join(s.Declared, " ")),
		command("set-option", "-p", "-t", at, "remain-on-exit", onOff(s.RemainOnExit)),
		command("resize-window", "-t", at, "-x", strconv.Itoa(orDefault(s.Width, defaultWidth)), "-y", strconv.Itoa(orDefault(s.Height, defaultHeight))),
		command("display-message", "-p", "-t", at, paneFormat),
		command("rename-window", "-t", at, "agent"))
	out, err := t.run(ctx, call{args: []string{"source-file", "-"}, input: []byte(sequence(all...) + "\n")})
	line, _, _ := strings.Cut(out, "\n")
	pane, unread := parsePane(line)
	var failed *callError
	switch {
	case unread == nil && pane.Mark == s.Mark:
		return pane, nil
	case errors.As(err, &failed) && failed.cause == nil:
		return sessions.Pane{}, errors.Join(err, t.killWindow(ctx, at))
	}
	return sessions.Pane{}, wrapInDoubt(errors.Join(err, unread))
}

// killWindow takes back a window that was made and could not be marked. That there is none is no error.
func (t *Tmux) killWindow(ctx context.Context, at string) error {
	var failed *callError
	_, err := t.run(ctx, call{args: []string{"kill-window", "-t", at}})
	if errors.As(err, &failed) && failed.cause == nil {
		return nil
	}
	return err
}

func newWindowArgs(s sessions.Spawn, name string, argv []string) []string {
	words := []string{"new-window", "-d", "-t", s.Session + ":", "-n", name}
	if !strings.Contains(s.Cwd, "#[") { // cannot be escaped: it begins where the tmux session did
		words = append(words, "-c", strings.ReplaceAll(s.Cwd, "#", "##"))
	}
	return slices.Concat(words, []string{"--"}, argv)
}

// staleVariables are the names in the tmux session's environment that the new pane must not have: what the pane before was given, and
// what clients brought along.
func (t *Tmux) staleVariables(ctx context.Context, s sessions.Spawn) ([]string, error) {
	out, err := t.run(ctx, call{args: []string{"show-environment", "-t", s.Session}})
	if err != nil {
		return nil, fmt.Errorf("the environment of the tmux session %s: %w", s.Session, err)
	}
	var left []string
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, "=")
		if _, stays := s.Env[name]; !stays && variableNamePattern().MatchString(name) { // a line of a longer value does no harm
			left = append(left, name)
		}
	}
	return left, nil
}
