package core

import (
	"io"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// Core holds the verbs, in five parts. It is safe for concurrent use: what must not overlap is excluded by the locks of the
// [sessions.Store], across processes.
type Core struct {
	*Lifecycle
	*Input
	*Deliveries
	*Restarts
	*Queries
}

// Options are what a core is made of. All fields but the marked ones are required.
type Options struct {
	Terminal  sessions.Terminal
	Store     sessions.Store
	Sink      sessions.Sink
	Harnesses func(name string) (sessions.Harness, error)
	Config    func() Config // the current configuration, read anew by every verb
	// TerminalAt is optional: the terminal of the server with that socket, for sessions that run on another one than Terminal's
	// because the configuration has changed since. Nil: it is Terminal's.
	TerminalAt func(socket string) sessions.Terminal
	Reports    sessions.Reports // optional: without it the agents' reports and permission requests are not read
	Now        func() time.Time // optional: time.Now
	Log        *slog.Logger     // optional: silent
}

// New makes a core. It starts nothing.
func New(o Options) *Core {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	records := &records{store: o.Store, config: o.Config, now: o.Now}
	panes := &panes{own: o.Terminal, at: o.TerminalAt, startSlots: make(chan struct{}, maxConcurrentStarts)}
	agents := &agents{harness: o.Harnesses, panes: panes, log: o.Log}
	events := &events{sink: o.Sink}
	permissions := &openPermissions{byToken: map[string]*openPermission{}}
	starter := &starter{records: records, panes: panes, agents: agents, events: events, store: o.Store, reports: o.Reports, config: o.Config,
		now: o.Now, log: o.Log}
	typist := &typist{records: records, panes: panes, agents: agents, store: o.Store, permissions: permissions,
		staleDrafts: &staleDrafts{bySession: map[string]sessions.AcceptedText{}}, now: o.Now, log: o.Log}

	restarts := &Restarts{records: records, panes: panes, agents: agents, events: events, starter: starter, store: o.Store, config: o.Config}
	queries := &Queries{records: records, panes: panes, agents: agents, store: o.Store, reports: o.Reports, expectedEnv: restarts.expectedEnv,
		config: o.Config, now: o.Now}
	return &Core{
		Lifecycle: &Lifecycle{records: records, panes: panes, agents: agents, events: events, starter: starter, store: o.Store,
			listRows: queries.listRows, config: o.Config, now: o.Now},
		Input: &Input{records: records, panes: panes, agents: agents, events: events, typist: typist, permissions: permissions, reports: o.Reports},
		Deliveries: &Deliveries{records: records, panes: panes, agents: agents, events: events, starter: starter, typist: typist, store: o.Store,
			now: o.Now, log: o.Log},
		Restarts: restarts,
		Queries:  queries,
	}
}
