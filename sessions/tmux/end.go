package tmux

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

// End ends the target's process tree and then its pane. The pane is kept by remain-on-exit meanwhile, so that it can be
// watched. Its tmux session goes with it unless somebody has made other panes in it: those stay. The process that calls
// is spared, should it be part of the tree. A pane that is gone is no error.
func (t *Tmux) End(ctx context.Context, target sessions.Target, grace time.Duration) error {
	held, err := onPane(ctx, t, target, func(pane string) (sessions.Pane, error) { return t.hold(ctx, target.Mark, pane) })
	switch {
	case errors.Is(err, sessions.ErrPaneGone), errors.Is(err, errLost) && t.absent(ctx, target.Mark):
		return nil
	case err != nil:
		return named("end", target, err)
	}
	if err := t.endTree(ctx, held, grace); err != nil {
		return named("end", held.Target(), err)
	}
	return named("end", held.Target(), t.remove(ctx, held))
}

// absent reports that there is no pane with the mark, for certain. A server that was just ending with its last pane is waited for.
func (t *Tmux) absent(ctx context.Context, mark string) bool {
	panes, err := t.Panes(ctx)
	return err == nil && !slices.ContainsFunc(panes, func(p sessions.Pane) bool { return p.Mark == mark })
}

// hold keeps the pane when its process ends, and says what is in it.
func (t *Tmux) hold(ctx context.Context, mark, pane string) (sessions.Pane, error) {
	words := []string{"if-shell", "-F", "-t", pane, isOurs(mark),
		sequence(command("set-option", "-p", "-t", pane, "remain-on-exit", "on"),
			command("set-option", "-t", pane, ownerOption, mark),
			command("set-option", "-p", "-u", "-t", pane, holdOption),
			command("display-message", "-p", "-t", pane, paneFormat)),
		refusal(mark, pane)}
	out, err := t.ends.run(ctx, t, command(words...), call{args: words})
	switch {
	case err != nil:
		return sessions.Pane{}, err
	case strings.HasPrefix(out, answerRefused):
		return sessions.Pane{}, errRefused
	}
	return parsePane(strings.TrimSuffix(out, "\n"))
}

func (t *Tmux) endTree(ctx context.Context, p sessions.Pane, grace time.Duration) error {
	all, err := t.table.list(ctx)
	if err != nil {
		return fmt.Errorf("the list of processes: %w", err)
	}
	tree := newTree(p.Server.PID)
	tree.root(p.PID, all)
	return tree.end(ctx, t.table, grace)
}

// remove kills the pane and looks that it is gone. The answer comes first: with the last pane the server goes.
func (t *Tmux) remove(ctx context.Context, p sessions.Pane) error {
	words := []string{"if-shell", "-F", "-t", p.ID, isOurs(p.Mark),
		sequence(command("display-message", "-p", answerDone), command("kill-pane", "-t", p.ID)), refusal(p.Mark, p.ID)}
	_, killed := t.ends.run(ctx, t, command(words...), call{args: words})
	panes, err := t.Panes(ctx)
	if err != nil {
		return errors.Join(killed, err)
	}
	if slices.ContainsFunc(panes, func(q sessions.Pane) bool { return q.Mark == p.Mark }) {
		return errors.Join(errors.New("the pane is still there"), killed)
	}
	return nil
}
