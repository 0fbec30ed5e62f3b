package sessions

import (
	"cmp"
	"slices"
)

// Inventory is every record and every pane at one moment.
type Inventory struct {
	Records    []Record
	Unreadable []*UnreadableError
	Panes      []Pane
	TimeoutErr error // why tmux did not answer; nil: it did
}

// RowOptions are what the rows of sessions depend on beside the [Inventory].
type RowOptions struct {
	Enabled      bool         // standingSessions.enabled
	Declared     []Definition // in the configuration
	Harness      func(name string) (Harness, error)
	Conversation func(h Harness, r Record) string // the one that a running agent is in now
}

// isExpected reports whether "the-loop start" starts a session of that definition.
func (o RowOptions) isExpected(d Definition) bool { return o.Enabled && d.AutoStart }

// Rows makes a row of each session, recorded or declared, by ref.
func (f Inventory) Rows(o RowOptions) []Row {
	l := newListing(f, o)
	for _, r := range f.Records {
		l.add(r)
	}
	for _, u := range f.Unreadable {
		l.addBroken(u)
	}
	for ref, d := range l.declared {
		if !l.listed[ref] {
			row := DeclaredRow(d)
			row.Expected = o.isExpected(d)
			l.rows = append(l.rows, row)
		}
	}
	for i, r := range l.rows {
		if h := l.harness(r.Harness); h != nil {
			l.rows[i].Limitations = Limitations(h)
		}
	}
	slices.SortFunc(l.rows, func(a, b Row) int { return cmp.Compare(a.Ref, b.Ref) })
	return l.rows
}

// listing builds the rows of [Inventory.Rows]. Nothing is looked up twice.
type listing struct {
	o         RowOptions
	timedOut  bool
	panes     map[string]Pane // by mark
	declared  map[Ref]Definition
	harnesses map[string]Harness
	listed    map[Ref]bool
	rows      []Row
}

func newListing(f Inventory, o RowOptions) *listing {
	l := &listing{o: o, timedOut: f.TimeoutErr != nil, panes: make(map[string]Pane, len(f.Panes)), declared: map[Ref]Definition{},
		harnesses: map[string]Harness{}, listed: map[Ref]bool{}, rows: []Row{}}
	for _, p := range f.Panes {
		l.panes[p.Mark] = p
	}
	for _, d := range o.Declared {
		l.declared[StandingRef(d.Name)] = d
	}
	return l
}

// add makes the row of a record. A session that was declared once and is no more is expected by nobody.
func (l *listing) add(r Record) {
	l.listed[r.Ref] = true
	p, there := l.panes[r.ID]
	state := StateOf(r, p, there, l.timedOut)
	if state == StateRunning {
		if h := l.harness(r.Definition.Harness); h != nil {
			r.Conversation = l.o.Conversation(h, r)
		}
	}
	d, declared := l.declared[r.Ref]
	if declared {
		r.Definition = d
	}
	row := RowOf(r, state)
	if row.Running {
		row.PID = p.PID
	}
	row.Expected = (declared || r.Definition.Source == SourceCreated) && l.o.isExpected(r.Definition)
	switch {
	case state == StateEnded && there:
		row.Detail = "the agent ended, " + p.ExitDescription()
	case !declared && r.Definition.Source == SourceDeclared:
		row.Detail = "not declared any more"
	}
	l.rows = append(l.rows, row)
}

func (l *listing) addBroken(u *UnreadableError) {
	l.listed[u.Ref] = true
	row := BrokenRow(u)
	if d, ok := l.declared[u.Ref]; ok {
		detail := row.Detail
		row = DeclaredRow(d)
		row.State, row.Detail, row.Expected = StateBroken, detail, l.o.isExpected(d)
	}
	l.rows = append(l.rows, row)
}

// harness finds a harness; nil: it is not known any more, and so cannot be asked.
func (l *listing) harness(name string) Harness {
	h, asked := l.harnesses[name]
	if !asked {
		h, _ = l.o.Harness(name)
		l.harnesses[name] = h
	}
	return h
}
