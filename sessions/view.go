package sessions

import (
	"context"
	"fmt"
)

// ViewRequest asks what a session's screen shows its agent to be doing.
type ViewRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// View reads the screen of a running session. Where its harness's screens cannot be read, its state is [ViewUnknown]. A
// [*Refusal] because of [ErrNotRunning] when the agent has ended.
func (c *Core) View(ctx context.Context, q ViewRequest) (View, error) {
	rec, err := c.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return View{}, err
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return View{}, &Refusal{Cause: ErrRefused, What: err.Error()}
	}
	panes, err := c.listPanes(ctx, rec)
	if err != nil {
		return View{}, c.typingError(rec, fmt.Errorf("look whether the agent lives: %w", err))
	}
	switch p, ok := paneOf(panes, rec.ID); {
	case !ok:
		return View{}, c.typingError(rec, ErrPaneGone)
	case p.Dead:
		return View{}, c.typingError(rec, ErrPaneDead)
	}
	return c.readScreen(ctx, h, rec)
}
