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
func (qs *Queries) List(ctx context.Context) ([]sessions.Row, error) {
	rows, _, err := qs.listRows(ctx)
	return rows, err
}

// ListFiltered is [Core.SessionList] for the sessions of one kind: the two are separate, and no verb on one lists the other.
func (qs *Queries) ListFiltered(ctx context.Context, q sessions.ListRequest) ([]sessions.Row, error) {
	rows, err := qs.List(ctx)
	rows = slices.DeleteFunc(rows, func(r sessions.Row) bool {
		return r.Kind != q.Kind || len(q.States) > 0 && !slices.Contains(q.States, r.State)
	})
	for i, r := range rows {
		if doubt := qs.doubtDetail(ctx, r); doubt != "" {
			rows[i].Detail = strings.TrimPrefix(r.Detail+"; "+doubt, "; ")
		}
	}
	return rows, err
}

// doubtDetail says which deliveries to a work item nobody can tell the fate of.
func (qs *Queries) doubtDetail(ctx context.Context, r sessions.Row) string {
	if r.Kind != sessions.KindWorkItem || r.State == sessions.StateBroken {
		return ""
	}
	l, err := qs.store.LoadLedger(ctx, r.Ref)
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
func (qs *Queries) listRows(ctx context.Context) (rows []sessions.Row, silent, err error) {
	f, err := qs.inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
	return qs.buildRows(ctx, f), f.timeoutErr, nil
}

// buildRows makes a row of each session, by ref.
func (qs *Queries) buildRows(ctx context.Context, f inventory) []sessions.Row {
	l := newListing(qs.agents, qs.config(), f.panes, f.timeoutErr != nil)
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

// listing is a list of sessions in the making. Nothing is looked up twice.
type listing struct {
	agents     *agents
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

func newListing(agents *agents, cfg Config, panes []sessions.Pane, silent bool) *listing {
	l := &listing{agents: agents, cfg: cfg, timedOut: silent, panes: make(map[string]sessions.Pane, len(panes)), declared: map[sessions.Ref]sessions.Definition{},
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
		h, _ = l.agents.harness(name)
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
	return l.agents.currentConversation(ctx, h, r)
}
