package core

import (
	"context"
	"fmt"

	"the-loop/sessions"
)

// occupancy is what there is in tmux of a session.
type occupancy struct {
	own           *sessions.Pane // its pane, alive or dead; nil: it has none
	sharedSession string         // "$1": its tmux session, where somebody has panes of their own beside a dead agent's or none; else empty
}

// findOccupancy looks at what holds the session's place in tmux: its own pane, and what an operator has made beside it, which stays.
// Anything else that is there is never killed but refused.
func (c *Core) findOccupancy(ctx context.Context, rec sessions.Record) (occupancy, error) {
	panes, err := c.listPanes(ctx, rec)
	if err != nil {
		return occupancy{}, fmt.Errorf("look for a running session: %w", err)
	}
	var found occupancy
	own, there := paneOf(panes, rec.ID)
	if there {
		found.own = &own
	}
	if there && !own.Dead {
		return found, nil
	}
	for _, p := range panes {
		beside := there && p.Server == own.Server && p.SessionID == own.SessionID
		switch {
		case p.Mark == rec.ID, !beside && p.SessionName != rec.Ref.TmuxName():
			continue
		case !beside:
			if err := c.checkOwner(ctx, rec, p); err != nil {
				return occupancy{}, err
			}
		}
		if beside || !there {
			found.sharedSession = p.SessionID
		}
	}
	if c.terminal(rec) != c.o.Terminal { // the agent comes up on another server
		found.sharedSession = ""
	}
	return found, nil
}

// checkOwner refuses a pane that has the session's place and is in a tmux session that was not made for it.
func (c *Core) checkOwner(ctx context.Context, rec sessions.Record, p sessions.Pane) error {
	if p.Server == rec.Server && p.SessionID == rec.TmuxSession {
		return nil
	}
	owner, err := c.terminal(rec).Owner(ctx, p)
	switch {
	case err != nil:
		return fmt.Errorf("look whose tmux session %s is: %w", p.SessionName, err)
	case owner != rec.ID:
		return c.occupiedError(rec.Ref, p)
	}
	return nil
}

// openPane makes the session's pane: where its own was kept beside others in that one, and else in a tmux session of its own or in
// the one that others have panes in.
func (r *launcher) openPane(ctx context.Context, s sessions.Spawn) (pane sessions.Pane, err error) {
	err = r.c.limited(ctx, func() error {
		if r.keptPane != nil {
			pane, err = r.c.o.Terminal.Respawn(ctx, sessions.Respawn{Spawn: s, Pane: r.keptPane.ID, Grace: r.cfg.KillGrace, RemainFor: r.cfg.Probe + remainMargin})
			return err
		}
		s.Session = r.sharedSession
		pane, err = r.c.o.Terminal.Spawn(ctx, s)
		return err
	})
	return pane, err
}
