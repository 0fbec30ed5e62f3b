package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// List returns a row for every declared or recorded session, by name, with one look at tmux for all of them. When tmux
// does not answer, the rows are there with [StateUnknown]. A record that cannot be read is a row with [StateBroken].
func (c *Core) List(ctx context.Context) ([]Row, error) {
	recs, broken, err := c.o.Store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	panes, err := c.o.Terminal.Panes(ctx)
	silent := errors.Is(err, ErrSilent)
	if err != nil && !silent {
		return nil, fmt.Errorf("list the panes: %w", err)
	}
	byMark := make(map[string]Pane, len(panes))
	for _, p := range panes {
		byMark[p.Mark] = p
	}
	rows := make([]Row, 0, len(recs)+len(broken))
	seen := map[Ref]bool{}
	for _, r := range recs {
		seen[r.Ref] = true
		if d, ok := c.declared(r.Ref); ok {
			r.Definition = d
		}
		p, there := byMark[r.ID]
		rows = append(rows, rowOf(r, stateOf(r, p, there, silent)))
	}
	for _, u := range broken {
		seen[u.Ref] = true
		rows = append(rows, Row{Ref: u.Ref, Name: u.Ref.Name(), State: StateBroken, Detail: u.Error(), TmuxTarget: u.Ref.TmuxName()})
	}
	for _, d := range c.o.Config().Declared {
		if !seen[StandingRef(d.Name)] {
			rows = append(rows, declaredRow(d))
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Ref, b.Ref) })
	return rows, nil
}

// stateOf says how a recorded session is, from its pane.
func stateOf(r Record, p Pane, there, silent bool) State {
	switch {
	case silent:
		return StateUnknown
	case there && !p.Dead:
		return StateRunning
	case there, r.Status != StatusStopped:
		return StateEnded
	}
	return StateStopped
}

func rowOf(r Record, s State) Row {
	row := declaredRow(r.Definition)
	row.Ref, row.ID, row.State, row.Running = r.Ref, r.ID, s, s == StateRunning
	row.Pane, row.Conversation, row.Changed = r.Pane, r.Conversation, r.Changed
	row.TmuxTarget = r.Ref.TmuxName()
	return row
}

func declaredRow(d Definition) Row {
	ref := StandingRef(d.Name)
	return Row{Ref: ref, Name: d.Name, Description: d.Description, Source: d.Source, Harness: d.Harness, Cwd: d.Cwd,
		State: StateNew, AutoStart: d.AutoStart, TmuxTarget: ref.TmuxName(), Slack: d.Slack}
}

// AttachRequest asks for the command that shows a session to a person.
type AttachRequest struct {
	Ref      Ref
	ReadOnly bool
	Inside   bool // we run inside tmux
}

// Attach returns the argv that shows the session. A dead pane that was kept can be looked at too.
func (c *Core) Attach(ctx context.Context, q AttachRequest) ([]string, error) {
	rec, err := c.recorded(ctx, q.Ref)
	if err != nil {
		return nil, err
	}
	panes, err := c.o.Terminal.Panes(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for the session: %w", err)
	}
	p, ok := paneOf(panes, rec.ID)
	if !ok {
		return nil, notRunning(q.Ref)
	}
	return c.o.Terminal.AttachCommand(p, q.ReadOnly, q.Inside), nil
}
