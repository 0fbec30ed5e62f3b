package sessions

import (
	"context"
	"fmt"
	"log/slog"
)

// StopRequest asks for one session to be taken down. Its record and its conversation stay.
type StopRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// Stop ends the session's agent and its pane. One that does not run is [OutcomeAlreadyStopped]. It works from the
// record alone: the session need not be declared any more.
func (c *Core) Stop(ctx context.Context, q StopRequest) (Row, error) {
	release, err := c.lockName(ctx, q.Ref, "stop")
	if err != nil {
		return Row{}, err
	}
	defer release()
	def, rec, err := c.findExact(ctx, q.Ref, q.ID)
	if err != nil {
		return Row{}, err
	}
	if rec == nil {
		row := declaredRow(def)
		row.Outcome = OutcomeAlreadyStopped
		return row, nil
	}
	release, err = c.lockID(ctx, rec.ID, "stop")
	if err != nil {
		return Row{}, err
	}
	defer release()
	if rec, err = c.reload(ctx, rec); err != nil {
		return Row{}, err
	}
	return c.stop(ctx, *rec)
}

// stop takes the session down and records it as stopped. The caller has its locks.
func (c *Core) stop(ctx context.Context, rec Record) (Row, error) {
	down, outcome, err := c.takeDown(ctx, rec, StatusStopped)
	if err != nil {
		c.emit(ctx, EventStopFailed, slog.LevelError, rec, map[string]any{"reason": err.Error()})
		return Row{}, fmt.Errorf("stop %s: %w", rec.Ref, err)
	}
	row := rowOf(down, StateStopped)
	row.Outcome = outcome
	return row, nil
}

// takeDown ends the agent and its pane, and leaves the record with that status.
func (c *Core) takeDown(ctx context.Context, rec Record, as Status) (Record, Outcome, error) {
	panes, err := c.listPanes(ctx, rec)
	if err != nil {
		return rec, "", fmt.Errorf("look for the running session: %w", err)
	}
	p, there := paneOf(panes, rec.ID)
	if there {
		if h, err := c.o.Harnesses(rec.Definition.Harness); err == nil {
			rec.Conversation = c.currentConversation(ctx, h, rec)
		}
		if err := c.endPane(ctx, rec, p.Target()); err != nil {
			return rec, "", err
		}
	}
	outcome := OutcomeAlreadyStopped
	if there && !p.Dead {
		outcome = OutcomeStopped
	}
	if was := rec.Status; there || was != as {
		rec.Status, rec.Changed, rec.Pane, rec.ReplacesPID = as, c.o.Now(), "", 0
		if err := c.o.Store.Save(ctx, rec); err != nil {
			return rec, "", fmt.Errorf("record that the session is stopped: %w", err)
		}
		if there || was != StatusStopped {
			c.emit(ctx, EventStopped, slog.LevelInfo, rec, map[string]any{"conversation": rec.Conversation})
		}
	}
	return rec, outcome, nil
}

func (c *Core) endPane(ctx context.Context, rec Record, t Target) error {
	return c.terminal(rec).End(ctx, t, c.o.Config().KillGrace)
}
