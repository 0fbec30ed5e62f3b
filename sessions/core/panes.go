package core

import (
	"context"
	"fmt"

	"the-loop/sessions"
)

// panes finds the panes of sessions, on our tmux server and on those of sessions that were started on another one.
type panes struct {
	own        sessions.Terminal
	at         func(socket string) sessions.Terminal // nil: every session is on our own
	startSlots chan struct{}                         // holds one entry for each call that is under way, at most [maxConcurrentStarts]
}

// terminalOf returns the terminal in which the session's pane is. A stopped session starts in our own.
func (ps *panes) terminalOf(r sessions.Record) sessions.Terminal {
	if ps.at != nil && r.Server.Socket != "" && !r.IsDown() {
		if t := ps.at(r.Server.Socket); t != nil {
			return t
		}
	}
	return ps.own
}

// list returns the panes of our server, and of the other servers that the records name.
func (ps *panes) list(ctx context.Context, recs ...sessions.Record) ([]sessions.Pane, error) {
	panes, err := ps.own.Panes(ctx)
	if err != nil || ps.at == nil {
		return panes, err
	}
	seen := map[string]bool{}
	for _, r := range recs {
		if r.IsDown() || seen[r.Server.Socket] {
			continue
		}
		seen[r.Server.Socket] = true
		if t := ps.terminalOf(r); t != ps.own {
			more, err := t.Panes(ctx)
			if err != nil {
				return nil, err
			}
			panes = append(panes, more...)
		}
	}
	return panes, nil
}

// limited calls do when fewer than [maxConcurrentStarts] calls are under way.
func (ps *panes) limited(ctx context.Context, do func() error) error {
	select {
	case ps.startSlots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-ps.startSlots }()
	return do()
}

// occupancy is what there is of a session in tmux.
type occupancy struct {
	own           *sessions.Pane // its pane, alive or dead; nil: it has none
	sharedSession string         // "$1": its tmux session, where somebody has panes of their own beside a dead agent's or none; else empty
}

// findOccupancy finds the session's own pane, and panes that an operator made beside it, which stay. Any other tmux session of
// its name is refused, never killed.
func (ps *panes) findOccupancy(ctx context.Context, rec sessions.Record) (occupancy, error) {
	panes, err := ps.list(ctx, rec)
	if err != nil {
		return occupancy{}, fmt.Errorf("find the session's pane: %w", err)
	}
	var found occupancy
	own, there := sessions.FindPane(panes, rec.ID)
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
			if err := ps.checkOwner(ctx, rec, p); err != nil {
				return occupancy{}, err
			}
		}
		if beside || !there {
			found.sharedSession = p.SessionID
		}
	}
	if ps.terminalOf(rec) != ps.own { // the agent comes up on another server
		found.sharedSession = ""
	}
	return found, nil
}

// checkOwner refuses a pane in a tmux session that has the session's name and was not made for it.
func (ps *panes) checkOwner(ctx context.Context, rec sessions.Record, p sessions.Pane) error {
	if p.Server == rec.Server && p.SessionID == rec.TmuxSession {
		return nil
	}
	owner, err := ps.terminalOf(rec).Owner(ctx, p)
	switch {
	case err != nil:
		return fmt.Errorf("find the owner of the tmux session %s: %w", p.SessionName, err)
	case owner != rec.ID:
		return sessions.NameOccupied(rec.Ref, p, ps.own.AttachCommand(p, false, false))
	}
	return nil
}

// maxConcurrentStarts is how many sessions one process has tmux start at the same time.
const maxConcurrentStarts = 64
