package sessions

import (
	"context"
	"fmt"
	"strings"
)

// PeekRequest asks for what a session's terminal shows.
type PeekRequest struct{ Ref Ref }

// PeekResult is what a session's terminal shows.
type PeekResult struct {
	Row  Row    `json:"session"`
	Text string `json:"text"` // the visible lines, without the empty ones at the end; it may hold anything that the agent shows
}

// Peek reads the visible screen of a session, or the last one of an agent that ended and whose pane was kept.
func (c *Core) Peek(ctx context.Context, q PeekRequest) (PeekResult, error) {
	rec, p, err := c.requirePane(ctx, q.Ref)
	if err != nil {
		return PeekResult{}, err
	}
	screen, err := c.terminal(rec).Capture(ctx, p.Target())
	if err != nil {
		return PeekResult{}, c.typingError(rec, fmt.Errorf("look at the pane: %w", err))
	}
	row := rowOf(rec, stateOf(rec, p, true, false))
	if p.Dead {
		row.Detail = "the agent ended, " + p.exitDescription()
	}
	return PeekResult{Row: row, Text: strings.TrimRight(screen.Text, " \n")}, nil
}
