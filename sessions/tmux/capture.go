package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"the-loop/sessions"
)

// Capture reads what the target's pane shows, below any mode that lies over it. A dead pane that is kept shows its last
// screen, moved up by a line of tmux's own that says so. [sessions.ErrPaneGone] when no pane carries the mark.
func (t *Tmux) Capture(ctx context.Context, target sessions.Target) (sessions.Screen, error) {
	screen, err := withPane(ctx, t, target, func(pane string) (sessions.Screen, error) { return t.capturePane(ctx, target.Mark, pane) })
	if err != nil {
		return sessions.Screen{}, wrapTargetError("look", target, err)
	}
	return screen, nil
}

func (t *Tmux) capturePane(ctx context.Context, mark, pane string) (sessions.Screen, error) {
	facts := command("display-message", "-p", "-t", pane, answerDone+" #{cursor_x} #{cursor_y} #{pane_in_mode}")
	out, err := t.run(ctx, call{args: []string{"if-shell", "-F", "-t", pane, markCondition(mark),
		sequence(facts, command("capture-pane", "-p", "-t", pane)), refusalCommand(mark, pane)}})
	if err != nil {
		return sessions.Screen{}, err
	}
	if strings.HasPrefix(out, answerRefused) {
		return sessions.Screen{}, errRefused
	}
	head, text, _ := strings.Cut(out, "\n")
	s := sessions.Screen{Text: strings.TrimSuffix(text, "\n")}
	var mode int
	if _, err := fmt.Sscanf(head, answerDone+" %d %d %d", &s.CursorX, &s.CursorY, &mode); err != nil {
		return sessions.Screen{}, fmt.Errorf("tmux: cannot read the screen's facts in %q: %w", head, err)
	}
	s.InMode = mode > 0
	return s, nil
}

// withPane runs something that changes nothing on the target's pane, and once more when the pane is another one now.
func withPane[T any](ctx context.Context, t *Tmux, target sessions.Target, do func(pane string) (T, error)) (T, error) {
	var none T
	if !markPattern().MatchString(target.Mark) {
		return none, fmt.Errorf("tmux: %q is no mark of a pane", target.Mark)
	}
	if isID(target.Pane, '%') {
		if got, err := do(target.Pane); !shouldFindPane(err) {
			return got, err
		}
	}
	pane, err := t.findLivePane(ctx, target.Mark)
	if err != nil && !errors.Is(err, sessions.ErrPaneDead) {
		return none, err
	}
	got, err := do(pane.ID)
	if shouldFindPane(err) {
		err = fmt.Errorf("%w: it changed while we looked", sessions.ErrPaneGone)
	}
	return got, err
}
