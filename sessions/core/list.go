package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

// List returns a row for every session of both kinds, declared or recorded, by ref, with one look at tmux for all of them. When tmux
// does not answer, the rows are there with [StateUnknown]. A record that cannot be read is a row with [StateBroken].
func (c *Core) List(ctx context.Context) ([]sessions.Row, error) {
	rows, _, err := c.listRows(ctx)
	return rows, err
}

// ListFiltered is [Core.SessionList] for the sessions of one kind: the two are separate, and no verb on one lists the other.
func (c *Core) ListFiltered(ctx context.Context, q sessions.ListRequest) ([]sessions.Row, error) {
	rows, err := c.List(ctx)
	rows = slices.DeleteFunc(rows, func(r sessions.Row) bool {
		return r.Kind != q.Kind || len(q.States) > 0 && !slices.Contains(q.States, r.State)
	})
	for i, r := range rows {
		if doubt := c.doubtDetail(ctx, r); doubt != "" {
			rows[i].Detail = strings.TrimPrefix(r.Detail+"; "+doubt, "; ")
		}
	}
	return rows, err
}

// doubtDetail says which deliveries to a work item nobody can tell the fate of.
func (c *Core) doubtDetail(ctx context.Context, r sessions.Row) string {
	if r.Kind != sessions.KindWorkItem || r.State == sessions.StateBroken {
		return ""
	}
	l, err := c.o.Store.LoadLedger(ctx, r.Ref)
	if err != nil {
		return err.Error()
	}
	var ids []string
	for _, e := range l.Deliveries {
		if e.State == sessions.DeliveryInDoubt || e.IsAbandoned() {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("%d in doubt: %s", len(ids), sessions.Truncate(strings.Join(ids, ", "), 200))
}

// listRows is List, and beside it how tmux was silent.
func (c *Core) listRows(ctx context.Context) (rows []sessions.Row, silent, err error) {
	f, err := c.inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.buildRows(ctx, f), f.timeoutErr, nil
}

// buildRows makes a row of each session, by ref.
func (c *Core) buildRows(ctx context.Context, f inventory) []sessions.Row {
	l := newListing(c, f.panes, f.timeoutErr != nil)
	for _, r := range f.recs {
		l.add(ctx, r)
	}
	for _, u := range f.unreadable {
		l.addBroken(u)
	}
	for ref, d := range l.declared {
		if !l.listed[ref] {
			row := declaredRow(d)
			row.Expected = l.cfg.isExpected(d)
			l.rows = append(l.rows, row)
		}
	}
	for i, r := range l.rows {
		l.rows[i].Limitations = l.limitations(r.Harness)
	}
	slices.SortFunc(l.rows, func(a, b sessions.Row) int { return cmp.Compare(a.Ref, b.Ref) })
	return l.rows
}

// isExpected reports whether "the-loop start" starts a session of that definition.
func (cfg Config) isExpected(d sessions.Definition) bool { return cfg.Enabled && d.AutoStart }

// listing is a list of sessions in the making. Nothing is looked up twice.
type listing struct {
	c          *Core
	cfg        Config
	timedOut   bool
	panes      map[string]sessions.Pane // by mark
	declared   map[sessions.Ref]sessions.Definition
	harnesses  map[string]sessions.Harness
	listed     map[sessions.Ref]bool
	rows       []sessions.Row
	trackUntil time.Time // until then agents are asked which conversation they are in
}

// trackTimeout bounds how long a list asks agents which conversation they are in. Those that it does not come to have the
// recorded one, which each text and each stop brings up to date.
const trackTimeout = 250 * time.Millisecond

func newListing(c *Core, panes []sessions.Pane, silent bool) *listing {
	l := &listing{c: c, cfg: c.o.Config(), timedOut: silent, panes: make(map[string]sessions.Pane, len(panes)), declared: map[sessions.Ref]sessions.Definition{},
		harnesses: map[string]sessions.Harness{}, listed: map[sessions.Ref]bool{}, rows: []sessions.Row{}, trackUntil: time.Now().Add(trackTimeout)}
	for _, p := range panes {
		l.panes[p.Mark] = p
	}
	for _, d := range l.cfg.Declared {
		l.declared[sessions.StandingRef(d.Name)] = d
	}
	return l
}

// add makes the row of a record. A session that was declared once and is no more is expected by nobody.
func (l *listing) add(ctx context.Context, r sessions.Record) {
	l.listed[r.Ref] = true
	p, there := l.panes[r.ID]
	state := stateOf(r, p, there, l.timedOut)
	if state == sessions.StateRunning {
		r.Conversation = l.currentConversation(ctx, r)
	}
	d, declared := l.declared[r.Ref]
	if declared {
		r.Definition = d
	}
	row := rowOf(r, state)
	if row.Running {
		row.PID = p.PID
	}
	row.Expected = (declared || r.Definition.Source == sessions.SourceCreated) && l.cfg.isExpected(r.Definition)
	switch {
	case state == sessions.StateEnded && there:
		row.Detail = "the agent ended, " + p.ExitDescription()
	case !declared && r.Definition.Source == sessions.SourceDeclared:
		row.Detail = "not declared any more"
	}
	l.rows = append(l.rows, row)
}

func (l *listing) addBroken(u *sessions.UnreadableError) {
	l.listed[u.Ref] = true
	row := brokenRow(u)
	if d, ok := l.declared[u.Ref]; ok {
		detail := row.Detail
		row = declaredRow(d)
		row.State, row.Detail, row.Expected = sessions.StateBroken, detail, l.cfg.isExpected(d)
	}
	l.rows = append(l.rows, row)
}

// harness finds a harness; nil: it is not known any more, and so cannot be asked.
func (l *listing) harness(name string) sessions.Harness {
	h, asked := l.harnesses[name]
	if !asked {
		h, _ = l.c.o.Harnesses(name)
		l.harnesses[name] = h
	}
	return h
}

func (l *listing) limitations(name string) []string {
	h := l.harness(name)
	if h == nil {
		return nil
	}
	return sessions.Limitations(h)
}

func (l *listing) currentConversation(ctx context.Context, r sessions.Record) string {
	h := l.harness(r.Definition.Harness)
	if h == nil || time.Now().After(l.trackUntil) {
		return r.Conversation
	}
	return l.c.currentConversation(ctx, h, r)
}

// Attach returns the argv that shows the session. A dead pane that was kept can be looked at too.
func (c *Core) Attach(ctx context.Context, q sessions.AttachRequest) ([]string, error) {
	rec, p, err := c.requirePane(ctx, q.Ref)
	if err != nil {
		return nil, err
	}
	return c.terminal(rec).AttachCommand(p, q.ReadOnly, q.InsideTmux), nil
}

// requirePane is the session's pane, alive or dead.
func (c *Core) requirePane(ctx context.Context, ref sessions.Ref) (sessions.Record, sessions.Pane, error) {
	rec, err := c.requireRecord(ctx, ref)
	if err != nil {
		return sessions.Record{}, sessions.Pane{}, err
	}
	panes, err := c.listPanes(ctx, rec)
	if err != nil {
		return sessions.Record{}, sessions.Pane{}, fmt.Errorf("look for the session: %w", err)
	}
	p, ok := paneOf(panes, rec.ID)
	if !ok {
		return sessions.Record{}, sessions.Pane{}, notRunningError(ref)
	}
	return rec, p, nil
}
