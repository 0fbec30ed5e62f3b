package core

import (
	"context"
	"fmt"
	"strings"

	"the-loop/sessions"
)

// Peek reads the visible screen of a session, or the last one of an agent that ended and whose pane was kept.
func (c *Core) Peek(ctx context.Context, q sessions.PeekRequest) (sessions.PeekResult, error) {
	rec, p, err := c.requirePane(ctx, q.Ref)
	if err != nil {
		return sessions.PeekResult{}, err
	}
	screen, err := c.terminal(rec).Capture(ctx, p.Target())
	if err != nil {
		return sessions.PeekResult{}, c.typingError(rec, fmt.Errorf("look at the pane: %w", err))
	}
	row := rowOf(rec, stateOf(rec, p, true, false))
	if p.Dead {
		row.Detail = "the agent ended, " + p.ExitDescription()
	}
	return sessions.PeekResult{Row: row, Text: strings.TrimRight(screen.Text, " \n")}, nil
}
