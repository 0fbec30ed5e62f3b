package sessions

import (
	"context"
	"fmt"
	"strings"
)

// PeekRequest asks for what a session's terminal shows.
type PeekRequest struct{ Ref Ref }

// Peeked is what a session's terminal shows.
type Peeked struct {
	Row  Row    `json:"session"`
	Text string `json:"text"` // the visible lines, without the empty ones at the end; it may hold anything that the agent shows
}

// Peek reads the visible screen of a session, or the last one of an agent that ended and whose pane was kept.
func (c *Core) Peek(ctx context.Context, q PeekRequest) (Peeked, error) {
	rec, p, err := c.paneFor(ctx, q.Ref)
	if err != nil {
		return Peeked{}, err
	}
	screen, err := c.terminal(rec).Capture(ctx, p.Target())
	if err != nil {
		return Peeked{}, c.typingFailed(rec, fmt.Errorf("look at the pane: %w", err))
	}
	row := rowOf(rec, stateOf(rec, p, true, false))
	if p.Dead {
		row.Detail = "the agent ended, " + p.ending()
	}
	return Peeked{Row: row, Text: strings.TrimRight(screen.Text, " \n")}, nil
}
