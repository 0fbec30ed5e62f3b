package tmux

import (
	"context"
	"strings"

	"the-loop/sessions"
)

var _ sessions.ANSICapturer = (*Tmux)(nil)

// CaptureANSI implements [sessions.ANSICapturer]: capture-pane -e, under the same guard as [Tmux.Capture].
func (t *Tmux) CaptureANSI(ctx context.Context, target sessions.Target) (string, error) {
	screen, err := withPane(ctx, t, target, func(pane string) (string, error) { return t.capturePaneANSI(ctx, target.Mark, pane) })
	if err != nil {
		return "", wrapTargetError("look", target, err)
	}
	return screen, nil
}

func (t *Tmux) capturePaneANSI(ctx context.Context, mark, pane string) (string, error) {
	facts := command("display-message", "-p", "-t", pane, answerDone)
	out, err := t.run(ctx, call{args: []string{"if-shell", "-F", "-t", pane, markCondition(mark),
		sequence(facts, command("capture-pane", "-e", "-p", "-t", pane)), refusalCommand(mark, pane)}})
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(out, answerRefused) {
		return "", errRefused
	}
	_, text, _ := strings.Cut(out, "\n")
	return text, nil
}
