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

// holdOption is the pane option that says whose hold on the pane counts, see [sessions.Respawn.Hold].
const holdOption = "@the-loop-hold"

// Respawn ends what runs in the pane and runs something else in its place. The session's environment in tmux outlives a
// respawn and every later pane of the session starts with it (3.3a), so it is brought up to date: names that the env file
// declared and does not any more are taken out, and all that is given is set. Values travel on standard input.
//
// What [Tmux.Spawn] refuses is refused before anything is ended. After an error that is [sessions.ErrInDoubt] the new
// process may be there. Once the old one has been asked to end, the end of ctx stops nothing.
func (t *Tmux) Respawn(ctx context.Context, r sessions.Respawn) (sessions.Pane, error) {
	pane, err := t.respawn(ctx, r)
	if err != nil {
		return sessions.Pane{}, fmt.Errorf("restart %s in its pane: %w", r.Mark, err)
	}
	return pane, nil
}

func (t *Tmux) respawn(ctx context.Context, r sessions.Respawn) (sessions.Pane, error) {
	if err := t.Check(ctx); err != nil {
		return sessions.Pane{}, err
	}
	if err := checkProgram(r.Spawn); err != nil {
		return sessions.Pane{}, err
	}
	argv, err := t.paneArgv(r.Spawn)
	if err != nil {
		return sessions.Pane{}, err
	}
	held, err := withPane(ctx, t, sessions.Target{Pane: r.Pane, Mark: r.Mark}, func(pane string) (sessions.Pane, error) {
		return t.retainPane(ctx, r.Mark, pane)
	})
	if err != nil {
		return sessions.Pane{}, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := t.endTree(ctx, held, r.Grace); err != nil {
		return sessions.Pane{}, errors.Join(err, t.restoreRemainOnExit(ctx, held, r.RemainOnExit))
	}
	return t.runInPane(ctx, r, held, argv)
}

// restoreRemainOnExit has the pane of a process that could not be ended go with it again, where that is wanted.
func (t *Tmux) restoreRemainOnExit(ctx context.Context, p sessions.Pane, remain bool) error {
	_, err := t.run(ctx, call{args: []string{"if-shell", "-F", "-t", p.ID, markCondition(p.Mark),
		command("set-option", "-p", "-t", p.ID, "remain-on-exit", onOff(remain))}})
	return err
}

// runInPane runs the new process in the pane of the old one. All is one sequence behind one guard: if a part fails, those
// after it do not run.
func (t *Tmux) runInPane(ctx context.Context, r sessions.Respawn, held sessions.Pane, argv []string) (sessions.Pane, error) {
	script := command("if-shell", "-F", "-t", held.ID, markCondition(r.Mark), respawnSequence(r, held, argv), refusalCommand(r.Mark, held.ID)) + "\n"
	out, err := t.run(ctx, call{args: []string{"source-file", "-"}, input: []byte(script)})
	if strings.HasPrefix(out, answerRefused) {
		return sessions.Pane{}, fmt.Errorf("%w: it changed while the agent in it ended", sessions.ErrPaneGone)
	}
	pane, unread := parsePane(strings.TrimSuffix(out, "\n"))
	if unread == nil && pane.Mark == r.Mark {
		return pane, nil
	}
	var failed *callError
	if errors.As(err, &failed) && failed.cause == nil {
		return sessions.Pane{}, err // tmux said what is wrong
	}
	return sessions.Pane{}, wrapInDoubt(errors.Join(err, unread))
}

func respawnSequence(r sessions.Respawn, held sessions.Pane, argv []string) string {
	at := held.ID
	var all []string
	for _, name := range strings.Fields(held.Declared) {
		if _, stays := r.Env[name]; !stays {
			all = append(all, command("set-environment", "-u", "-t", at, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		if name != "PATH" && name != "SHELL" { // go through env
			all = append(all, command("set-environment", "-t", at, name, r.Env[name]))
		}
	}
	all = append(all, command("set-option", "-p", "-t", at, declaredOption, strings.Join(r.Declared, " ")))
	respawn := []string{"respawn-pane", "-k", "-t", at}
	if !strings.Contains(r.Cwd, "#[") { // cannot be escaped; the pane stays in the folder that it was made in
		respawn = append(respawn, "-c", strings.ReplaceAll(r.Cwd, "#", "##"))
	}
	all = append(all, holdCommands(r, at)...)
	all = append(all, command(slices.Concat(respawn, []string{"--"}, argv)...), command("display-message", "-p", "-t", at, paneFormat))
	return sequence(all...)
}

// holdCommands keeps the pane for a while if the new process ends, and leaves it to the server to stop that, so that nobody has
// to be there for it. Another respawn meanwhile has a hold of its own.
func holdCommands(r sessions.Respawn, at string) []string {
	token := rand.Text()
	all := []string{command("set-option", "-p", "-t", at, holdOption, token),
		command("set-option", "-p", "-t", at, "remain-on-exit", onOff(r.RemainOnExit || r.RemainFor > 0))}
	if r.RemainOnExit || r.RemainFor <= 0 {
		return all
	}
	ours := "#{&&:" + markCondition(r.Mark) + ",#{==:#{" + holdOption + "}," + token + "}}"
	later := command("if-shell", "-F", "-t", at, ours, command("set-option", "-p", "-t", at, "remain-on-exit", "off"))
	return append(all, command("run-shell", "-b", "-d", strconv.FormatFloat(r.RemainFor.Seconds(), 'f', 3, 64), "-C", later))
}
