package sessions

import (
	"context"
	"fmt"
	"log/slog"
)

// StopRequest asks for one session to be taken down. Its record and its conversation stay.
type StopRequest struct{ Ref Ref }

// Stop ends the session's agent and its pane. One that does not run is [OutcomeAlreadyStopped]. It works from the
// record alone: the session need not be declared any more.
func (c *Core) Stop(ctx context.Context, q StopRequest) (Row, error) {
	release, err := c.lockName(ctx, q.Ref, "stop")
	if err != nil {
		return Row{}, err
	}
	defer release()
	def, rec, err := c.find(ctx, q.Ref)
	if err != nil {
		return Row{}, err
	}
	if rec == nil {
		row := declaredRow(def)
		row.Outcome = OutcomeAlreadyStopped
		return row, nil
	}
	row, err := c.stop(ctx, *rec)
	if err != nil {
		c.emit(ctx, EventStopFailed, slog.LevelError, *rec, map[string]any{"reason": err.Error()})
		return Row{}, fmt.Errorf("stop %s: %w", q.Ref, err)
	}
	return row, nil
}

func (c *Core) stop(ctx context.Context, rec Record) (Row, error) {
	release, err := c.lockID(ctx, rec.ID, "stop")
	if err != nil {
		return Row{}, err
	}
	defer release()
	panes, err := c.o.Terminal.Panes(ctx)
	if err != nil {
		return Row{}, fmt.Errorf("look for the running session: %w", err)
	}
	p, there := paneOf(panes, rec.ID)
	if there {
		if err := c.end(ctx, p.Target()); err != nil {
			return Row{}, err
		}
	}
	outcome := OutcomeAlreadyStopped
	if there && !p.Dead {
		outcome = OutcomeStopped
	}
	if there || rec.Status != StatusStopped {
		rec.Status, rec.Changed, rec.Pane, rec.TmuxSession = StatusStopped, c.o.Now(), "", ""
		if err := c.o.Store.Save(ctx, rec); err != nil {
			return Row{}, fmt.Errorf("record that the session is stopped: %w", err)
		}
		c.emit(ctx, EventStopped, slog.LevelInfo, rec, map[string]any{"conversation": rec.Conversation})
	}
	row := rowOf(rec, StateStopped)
	row.Outcome = outcome
	return row, nil
}

func (c *Core) end(ctx context.Context, t Target) error {
	return c.o.Terminal.End(ctx, t, c.o.Config().KillGrace)
}
