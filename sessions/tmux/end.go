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
	held, err := withPane(ctx, t, target, func(pane string) (sessions.Pane, error) { return t.retainPane(ctx, target.Mark, pane) })
	switch {
	case errors.Is(err, sessions.ErrPaneGone), errors.Is(err, errServerLost) && t.isAbsent(ctx, target.Mark):
		return nil
	case err != nil:
		return wrapTargetError("end", target, err)
	}
	if err := t.endTree(ctx, held, grace); err != nil {
		return wrapTargetError("end", held.Target(), err)
	}
	return wrapTargetError("end", held.Target(), t.killPane(ctx, held))
}

// isAbsent reports that there is no pane with the mark, for certain. A server that was just ending with its last pane is waited for.
func (t *Tmux) isAbsent(ctx context.Context, mark string) bool {
	panes, err := t.Panes(ctx)
	return err == nil && !slices.ContainsFunc(panes, func(p sessions.Pane) bool { return p.Mark == mark })
}

// retainPane keeps the pane when its process ends, and says what is in it.
func (t *Tmux) retainPane(ctx context.Context, mark, pane string) (sessions.Pane, error) {
	words := []string{"if-shell", "-F", "-t", pane, markCondition(mark),
		sequence(command("set-option", "-p", "-t", pane, "remain-on-exit", "on"),
			command("set-option", "-t", pane, ownerOption, mark),
			command("set-option", "-p", "-u", "-t", pane, holdOption),
			command("display-message", "-p", "-t", pane, paneFormat)),
		refusalCommand(mark, pane)}
	out, err := t.endBatch.run(ctx, t.runner, command(words...), call{args: words})
	switch {
	case err != nil:
		return sessions.Pane{}, err
	case strings.HasPrefix(out, answerRefused):
		return sessions.Pane{}, errRefused
	}
	return parsePane(strings.TrimSuffix(out, "\n"))
}

func (t *Tmux) endTree(ctx context.Context, p sessions.Pane, grace time.Duration) error {
	all, err := t.processes.List(ctx)
	if err != nil {
		return fmt.Errorf("the list of processes: %w", err)
	}
	tree := newProcessTree(p.Server.PID)
	tree.addRoot(p.PID, all)
	return tree.terminate(ctx, t.processes, grace)
}

// killPane kills the pane and looks that it is gone. The answer comes first: with the last pane the server goes.
func (t *Tmux) killPane(ctx context.Context, p sessions.Pane) error {
	words := []string{"if-shell", "-F", "-t", p.ID, markCondition(p.Mark),
		sequence(command("display-message", "-p", answerDone), command("kill-pane", "-t", p.ID)), refusalCommand(p.Mark, p.ID)}
	_, killed := t.endBatch.run(ctx, t.runner, command(words...), call{args: words})
	panes, err := t.Panes(ctx)
	if err != nil {
		return errors.Join(killed, err)
	}
	if slices.ContainsFunc(panes, func(q sessions.Pane) bool { return q.Mark == p.Mark }) {
		return errors.Join(errors.New("the pane is still there"), killed)
	}
	return nil
}
