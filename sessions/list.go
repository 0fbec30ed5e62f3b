package sessions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// List returns a row for every session of both kinds, declared or recorded, by ref, with one look at tmux for all of them. When tmux
// does not answer, the rows are there with [StateUnknown]. A record that cannot be read is a row with [StateBroken].
func (c *Core) List(ctx context.Context) ([]Row, error) {
	rows, _, err := c.list(ctx)
	return rows, err
}

// ListRequest asks for some of the sessions.
type ListRequest struct {
	Kind   string  // [KindStanding] or [KindWorkItem]
	States []State // empty: all
}

// Some is [Core.List] for the sessions of one kind: the two are separate, and no verb on one lists the other.
func (c *Core) Some(ctx context.Context, q ListRequest) ([]Row, error) {
	rows, err := c.List(ctx)
	rows = slices.DeleteFunc(rows, func(r Row) bool {
		return r.Kind != q.Kind || len(q.States) > 0 && !slices.Contains(q.States, r.State)
	})
	for i, r := range rows {
		if doubt := c.doubts(ctx, r); doubt != "" {
			rows[i].Detail = strings.TrimPrefix(r.Detail+"; "+doubt, "; ")
		}
	}
	return rows, err
}

// doubts says which deliveries to a work item nobody can tell the fate of.
func (c *Core) doubts(ctx context.Context, r Row) string {
	if r.Kind != KindWorkItem || r.State == StateBroken {
		return ""
	}
	l, err := c.o.Store.LoadLedger(ctx, r.Ref)
	if err != nil {
		return err.Error()
	}
	var ids []string
	for _, e := range l.Deliveries {
		if e.State == EntryDoubt || e.abandoned() {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("%d in doubt: %s", len(ids), Sized(strings.Join(ids, ", "), 200))
}

// list is List, and beside it how tmux was silent.
func (c *Core) list(ctx context.Context) (rows []Row, silent, err error) {
	f, err := c.inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c.rows(ctx, f), f.silent, nil
}

// rows makes a row of each session, by ref.
func (c *Core) rows(ctx context.Context, f inventory) []Row {
	l := newListing(c, f.panes, f.silent != nil)
	for _, r := range f.recs {
		l.add(ctx, r)
	}
	for _, u := range f.broken {
		l.addBroken(u)
	}
	for ref, d := range l.declared {
		if !l.seen[ref] {
			row := declaredRow(d)
			row.Expected = l.cfg.expects(d)
			l.rows = append(l.rows, row)
		}
	}
	for i, r := range l.rows {
		l.rows[i].Lacks = l.lacks(r.Harness)
	}
	slices.SortFunc(l.rows, func(a, b Row) int { return cmp.Compare(a.Ref, b.Ref) })
	return l.rows
}

// expects reports whether "the-loop start" starts a session of that definition.
func (cfg Config) expects(d Definition) bool { return cfg.Enabled && d.AutoStart }

// listing is a list of sessions in the making. Nothing is looked up twice.
type listing struct {
	c         *Core
	cfg       Config
	silent    bool
	panes     map[string]Pane // by mark
	declared  map[Ref]Definition
	harnesses map[string]Harness
	seen      map[Ref]bool
	rows      []Row
	follow    time.Time // until then agents are asked which conversation they are in
}

// followFor bounds how long a list asks agents which conversation they are in. Those that it does not come to have the
// recorded one, which each text and each stop brings up to date.
const followFor = 250 * time.Millisecond

func newListing(c *Core, panes []Pane, silent bool) *listing {
	l := &listing{c: c, cfg: c.o.Config(), silent: silent, panes: make(map[string]Pane, len(panes)), declared: map[Ref]Definition{},
		harnesses: map[string]Harness{}, seen: map[Ref]bool{}, rows: []Row{}, follow: time.Now().Add(followFor)}
	for _, p := range panes {
		l.panes[p.Mark] = p
	}
	for _, d := range l.cfg.Declared {
		l.declared[StandingRef(d.Name)] = d
	}
	return l
}

// add makes the row of a record. A session that was declared once and is no more is expected by nobody.
func (l *listing) add(ctx context.Context, r Record) {
	l.seen[r.Ref] = true
	p, there := l.panes[r.ID]
	state := stateOf(r, p, there, l.silent)
	if state == StateRunning {
		r.Conversation = l.conversation(ctx, r)
	}
	d, declared := l.declared[r.Ref]
	if declared {
		r.Definition = d
	}
	row := rowOf(r, state)
	if row.Running {
		row.PID = p.PID
	}
	row.Expected = (declared || r.Definition.Source == SourceCreated) && l.cfg.expects(r.Definition)
	switch {
	case state == StateEnded && there:
		row.Detail = "the agent ended, " + p.ending()
	case !declared && r.Definition.Source == SourceDeclared:
		row.Detail = "not declared any more"
	}
	l.rows = append(l.rows, row)
}

func (l *listing) addBroken(u *UnreadableError) {
	l.seen[u.Ref] = true
	row := brokenRow(u)
	if d, ok := l.declared[u.Ref]; ok {
		detail := row.Detail
		row = declaredRow(d)
		row.State, row.Detail, row.Expected = StateBroken, detail, l.cfg.expects(d)
	}
	l.rows = append(l.rows, row)
}

// harness finds a harness; nil: it is not known any more, and so cannot be asked.
func (l *listing) harness(name string) Harness {
	h, asked := l.harnesses[name]
	if !asked {
		h, _ = l.c.o.Harnesses(name)
		l.harnesses[name] = h
	}
	return h
}

func (l *listing) lacks(name string) []string {
	h := l.harness(name)
	if h == nil {
		return nil
	}
	return Lacks(h)
}

func (l *listing) conversation(ctx context.Context, r Record) string {
	h := l.harness(r.Definition.Harness)
	if h == nil || time.Now().After(l.follow) {
		return r.Conversation
	}
	return l.c.conversation(ctx, h, r)
}

// AttachRequest asks for the command that shows a session to a person.
type AttachRequest struct {
	Ref      Ref
	ReadOnly bool
	Inside   bool // we run inside tmux
}

// Attach returns the argv that shows the session. A dead pane that was kept can be looked at too.
func (c *Core) Attach(ctx context.Context, q AttachRequest) ([]string, error) {
	rec, p, err := c.paneFor(ctx, q.Ref)
	if err != nil {
		return nil, err
	}
	return c.terminal(rec).AttachCommand(p, q.ReadOnly, q.Inside), nil
}

// paneFor is the session's pane, alive or dead.
func (c *Core) paneFor(ctx context.Context, ref Ref) (Record, Pane, error) {
	rec, err := c.recorded(ctx, ref)
	if err != nil {
		return Record{}, Pane{}, err
	}
	panes, err := c.look(ctx, rec)
	if err != nil {
		return Record{}, Pane{}, fmt.Errorf("look for the session: %w", err)
	}
	p, ok := paneOf(panes, rec.ID)
	if !ok {
		return Record{}, Pane{}, notRunning(ref)
	}
	return rec, p, nil
}
