package core

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
)

// PeekANSI is [Core.Peek] with the escape sequences of the colours. [errors.ErrUnsupported] when the terminal has no
// way to tell them.
func (c *Core) PeekANSI(ctx context.Context, q sessions.PeekRequest) (string, error) {
	rec, p, err := c.requirePane(ctx, q.Ref)
	if err != nil {
		return "", err
	}
	painter, ok := c.terminal(rec).(sessions.ANSICapturer)
	if !ok {
		return "", fmt.Errorf("the colours of %s: %w", q.Ref, errors.ErrUnsupported)
	}
	ansi, err := painter.CaptureANSI(ctx, p.Target())
	if err != nil {
		return "", c.typingError(rec, fmt.Errorf("look at the pane: %w", err))
	}
	return ansi, nil
}

// InspectLocked waits until no verb is at work on the session, and says how it is then. So an agent that is found to have ended
// did that on its own: [Core.SessionList] may see one that is just being stopped or restarted. [*LockedError] when a verb takes
// longer than [LockWait].
func (c *Core) InspectLocked(ctx context.Context, q sessions.InspectRequest) (sessions.Row, error) {
	rec, err := c.requireRecord(ctx, q.Ref)
	if err != nil {
		return sessions.Row{}, err
	}
	release, err := c.lockID(ctx, rec.ID, "look")
	if err != nil {
		return sessions.Row{}, err
	}
	defer release()
	now, err := c.reload(ctx, &rec)
	if err != nil {
		return sessions.Row{}, err
	}
	panes, err := c.listPanes(ctx, *now)
	if err != nil && !errors.Is(err, sessions.ErrTerminalTimeout) {
		return sessions.Row{}, fmt.Errorf("look for the session: %w", err)
	}
	p, there := paneOf(panes, now.ID)
	row := rowOf(*now, stateOf(*now, p, there, err != nil))
	if row.State == sessions.StateEnded && there {
		row.Detail = "the agent ended, " + p.ExitDescription()
	}
	return row, nil
}
