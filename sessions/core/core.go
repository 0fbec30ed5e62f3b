package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"time"

	"github.com/google/uuid"

	"the-loop/sessions"
)

// Core holds the verbs. It is safe for concurrent use: what must not overlap is excluded by the [Store]'s locks, across
// processes.
type Core struct {
	o          Options
	startSlots chan struct{} // full while as many calls as tmux is given at once are under way

	permissions openPermissions
	staleDrafts staleDrafts
	envChanges  envChanges
}

// maxConcurrentStarts is how many sessions one process has tmux start at the same time. Those that wait for each other share a client.
const maxConcurrentStarts = 64

// Options are what a core is made of. All fields but the marked ones are required.
type Options struct {
	Terminal  sessions.Terminal
	Store     sessions.Store
	Sink      sessions.Sink
	Harnesses func(name string) (sessions.Harness, error)
	Config    func() Config // the current configuration, asked anew by every verb
	// TerminalAt is optional: the terminal of the server with that socket, for sessions that run on another one than Terminal's
	// because the configuration has changed since. Nil: it is Terminal's.
	TerminalAt func(socket string) sessions.Terminal
	Reports    sessions.Reports // optional: without it nothing is heard of what agents report
	Now        func() time.Time // optional: time.Now
	Log        *slog.Logger     // optional: silent
}

// Config is what the configuration says of sessions.
type Config struct {
	Enabled      bool // standingSessions.enabled
	Declared     []sessions.Definition
	RemainOnExit bool
	Resume       bool                             // resumeOnRespawn
	Probe        time.Duration                    // a resumed agent that dies within it could not resume
	KillGrace    time.Duration                    // between TERM and KILL
	Env          func() (sessions.EnvFile, error) // the env file as it is now; nil: none is configured
	OwnEnv       map[string]string                // the product's own names; they win over Env
	ChatService  string                           // the name of the chat service in which sessions have threads; empty: there is none
	Program      string                           // a path of this program that stays, for agents to run; empty: they are told of none
	Defaults     Defaults
}

// Defaults are what a session gets that does not say otherwise, as routing has it.
type Defaults struct {
	Harness     string
	HarnessArgs map[string][]string // by harness
	Cwd         string
}

// New makes a core. It starts nothing.
func New(o Options) *Core {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Core{o: o, startSlots: make(chan struct{}, maxConcurrentStarts), permissions: openPermissions{byToken: map[string]*openPermission{}},
		staleDrafts: staleDrafts{bySession: map[string]acceptedText{}}}
}

// terminal is where the session's pane is, if it has one. A session that is stopped will start on ours.
func (c *Core) terminal(r sessions.Record) sessions.Terminal {
	if c.o.TerminalAt != nil && r.Server.Socket != "" && !r.IsDown() {
		if t := c.o.TerminalAt(r.Server.Socket); t != nil {
			return t
		}
	}
	return c.o.Terminal
}

// look lists the panes of our server, and of the servers that the records name where those are others.
func (c *Core) listPanes(ctx context.Context, recs ...sessions.Record) ([]sessions.Pane, error) {
	panes, err := c.o.Terminal.Panes(ctx)
	if err != nil || c.o.TerminalAt == nil {
		return panes, err
	}
	seen := map[string]bool{}
	for _, r := range recs {
		if r.IsDown() || seen[r.Server.Socket] {
			continue
		}
		seen[r.Server.Socket] = true
		if t := c.terminal(r); t != c.o.Terminal {
			more, err := t.Panes(ctx)
			if err != nil {
				return nil, err
			}
			panes = append(panes, more...)
		}
	}
	return panes, nil
}

// limited keeps many verbs at once from flooding tmux.
func (c *Core) limited(ctx context.Context, do func() error) error {
	select {
	case c.startSlots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.startSlots }()
	return do()
}

// find returns what is known of the session: its definition, and its record when it has one.
func (c *Core) find(ctx context.Context, ref sessions.Ref) (sessions.Definition, *sessions.Record, error) {
	declared, isDeclared := c.findDeclared(ref)
	rec, err := c.o.Store.Load(ctx, ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded) && isDeclared:
		return declared, nil, nil
	case errors.Is(err, sessions.ErrNotRecorded):
		return sessions.Definition{}, nil, notRecordedError(ref)
	case err != nil:
		return sessions.Definition{}, nil, fmt.Errorf("read the record of %s: %w", ref, err)
	case isDeclared:
		return declared, &rec, nil
	}
	return rec.Definition.Clone(), &rec, nil
}

// findExact is find, and refuses another session that has the ref now. The caller has the lock of the name.
func (c *Core) findExact(ctx context.Context, ref sessions.Ref, id string) (sessions.Definition, *sessions.Record, error) {
	def, rec, err := c.find(ctx, ref)
	if err == nil && id != "" && (rec == nil || rec.ID != id) {
		err = replacedError(ref)
	}
	return def, rec, err
}

func (c *Core) findDeclared(ref sessions.Ref) (sessions.Definition, bool) {
	d, i := c.o.Config().findDeclared(ref)
	return d, i >= 0
}

// findDeclared is the definition in the configuration, and its position there; -1: there is none.
func (cfg Config) findDeclared(ref sessions.Ref) (sessions.Definition, int) {
	for i, d := range cfg.Declared {
		if sessions.StandingRef(d.Name) == ref {
			return d.Clone(), i
		}
	}
	return sessions.Definition{}, -1
}

// declaredKey is the place of a declared session in the configuration.
func declaredKey(i int) string { return fmt.Sprintf("standingSessions.sessions[%d]", i) }

// requireRecord returns the record of a session that must have one.
func (c *Core) requireRecord(ctx context.Context, ref sessions.Ref) (sessions.Record, error) {
	_, rec, err := c.find(ctx, ref)
	switch {
	case err != nil:
		return sessions.Record{}, err
	case rec == nil:
		return sessions.Record{}, notRunningError(ref)
	}
	return *rec, nil
}

// lockName excludes other verbs that make, start, stop or delete the session of that name.
func (c *Core) lockName(ctx context.Context, ref sessions.Ref, verb string) (func(), error) {
	key := string(ref)
	if ref.Kind() == sessions.KindWorkItem { // two refs may fall on one name
		key = ref.Slug()
	}
	return c.o.Store.Lock(ctx, "name:"+key, verb)
}

// lockID excludes everything else that types into, starts or ends the session.
func (c *Core) lockID(ctx context.Context, id, verb string) (func(), error) {
	return c.o.Store.Lock(ctx, id, verb)
}

// paneOf returns the pane that carries the record's id.
func paneOf(panes []sessions.Pane, id string) (sessions.Pane, bool) {
	for _, p := range panes {
		if p.Mark == id {
			return p, true
		}
	}
	return sessions.Pane{}, false
}

func (c *Core) emit(ctx context.Context, name string, level slog.Level, r sessions.Record, fields map[string]any) {
	c.o.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(r.Ref, name), Level: level, Ref: r.Ref, ID: r.ID, Fields: fields})
}

// readEnvFile is what the env file declares now.
func (cfg Config) readEnvFile() (sessions.EnvFile, error) {
	if cfg.Env == nil {
		return sessions.EnvFile{}, nil
	}
	env, err := cfg.Env()
	if err != nil {
		return sessions.EnvFile{}, fmt.Errorf("read the env file: %w", err)
	}
	return env, nil
}

// paneEnvironment is what a pane of the session starts with: later ones win.
func (cfg Config) paneEnvironment(r sessions.Record, declared, harness map[string]string) map[string]string {
	own := map[string]string{sessions.SessionVariable: r.ID}
	if r.Ref.Kind() == sessions.KindWorkItem {
		own["THE_LOOP_WORK_ITEM"] = string(r.Ref)
	}
	env := map[string]string{}
	for _, m := range []map[string]string{declared, harness, cfg.OwnEnv, own} {
		maps.Copy(env, m)
	}
	return env
}

func newID() string { return uuid.NewString() }
