package sessions

import (
	"context"
	"errors"
	"fmt"
)

// ANSICapturer is a [Terminal] that can also read a pane's screen with its colours.
type ANSICapturer interface {
	// CaptureANSI reads the visible screen with the escape sequences of its colours. Errors as for [ScreenReader].
	CaptureANSI(ctx context.Context, t Target) (string, error)
}

// PeekANSI is [Core.Peek] with the escape sequences of the colours. [errors.ErrUnsupported] when the terminal has no
// way to tell them.
func (c *Core) PeekANSI(ctx context.Context, q PeekRequest) (string, error) {
	rec, p, err := c.requirePane(ctx, q.Ref)
	if err != nil {
		return "", err
	}
	painter, ok := c.terminal(rec).(ANSICapturer)
	if !ok {
		return "", fmt.Errorf("the colours of %s: %w", q.Ref, errors.ErrUnsupported)
	}
	ansi, err := painter.CaptureANSI(ctx, p.Target())
	if err != nil {
		return "", c.typingError(rec, fmt.Errorf("look at the pane: %w", err))
	}
	return ansi, nil
}

// InspectRequest asks how one session is while no verb is at work on it.
type InspectRequest struct{ Ref Ref }

// InspectLocked waits until no verb is at work on the session, and says how it is then. So an agent that is found to have ended
// did that on its own: [Core.List] may see one that is just being stopped or restarted. [*LockedError] when a verb takes
// longer than [LockWait].
func (c *Core) InspectLocked(ctx context.Context, q InspectRequest) (Row, error) {
	rec, err := c.requireRecord(ctx, q.Ref)
	if err != nil {
		return Row{}, err
	}
	release, err := c.lockID(ctx, rec.ID, "look")
	if err != nil {
		return Row{}, err
	}
	defer release()
	now, err := c.reload(ctx, &rec)
	if err != nil {
		return Row{}, err
	}
	panes, err := c.listPanes(ctx, *now)
	if err != nil && !errors.Is(err, ErrTerminalTimeout) {
		return Row{}, fmt.Errorf("look for the session: %w", err)
	}
	p, there := paneOf(panes, now.ID)
	row := rowOf(*now, stateOf(*now, p, there, err != nil))
	if row.State == StateEnded && there {
		row.Detail = "the agent ended, " + p.exitDescription()
	}
	return row, nil
}
