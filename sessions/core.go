package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"time"

	"github.com/google/uuid"
)

// Core holds the verbs. It is safe for concurrent use: what must not overlap is excluded by the [Store]'s locks, across
// processes.
type Core struct {
	o Options
}

// Options are what a core is made of. All fields but the marked ones are required.
type Options struct {
	Terminal  Terminal
	Store     Store
	Sink      Sink
	Harnesses func(name string) (Harness, error)
	Config    func() Config    // the current configuration, asked anew by every verb
	Now       func() time.Time // optional: time.Now
	Log       *slog.Logger     // optional: silent
}

// Config is what the configuration says of sessions.
type Config struct {
	Enabled      bool // standingSessions.enabled
	Declared     []Definition
	RemainOnExit bool
	Resume       bool                              // resumeOnRespawn
	Probe        time.Duration                     // a resumed agent that dies within it could not resume
	KillGrace    time.Duration                     // between TERM and KILL
	Env          func() (map[string]string, error) // declared by the env file now; nil: none
	OwnEnv       map[string]string                 // the product's own names; they win over Env
}

// New makes a core. It starts nothing.
func New(o Options) *Core {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Core{o: o}
}

// find returns what is known of the session: its definition, and its record when it has one.
func (c *Core) find(ctx context.Context, ref Ref) (Definition, *Record, error) {
	declared, isDeclared := c.declared(ref)
	rec, err := c.o.Store.Load(ctx, ref)
	switch {
	case errors.Is(err, ErrNotRecorded) && isDeclared:
		return declared, nil, nil
	case errors.Is(err, ErrNotRecorded):
		return Definition{}, nil, notRecorded(ref)
	case err != nil:
		return Definition{}, nil, fmt.Errorf("read the record of %s: %w", ref, err)
	case isDeclared:
		return declared, &rec, nil
	}
	return rec.Definition.Clone(), &rec, nil
}

func (c *Core) declared(ref Ref) (Definition, bool) {
	for _, d := range c.o.Config().Declared {
		if StandingRef(d.Name) == ref {
			return d.Clone(), true
		}
	}
	return Definition{}, false
}

// recorded returns the record of a session that must have one.
func (c *Core) recorded(ctx context.Context, ref Ref) (Record, error) {
	_, rec, err := c.find(ctx, ref)
	switch {
	case err != nil:
		return Record{}, err
	case rec == nil:
		return Record{}, notRunning(ref)
	}
	return *rec, nil
}

// lockName excludes other verbs that make, start, stop or delete the session of that name.
func (c *Core) lockName(ctx context.Context, ref Ref, verb string) (func(), error) {
	return c.o.Store.Lock(ctx, "name:"+string(ref), verb)
}

// lockID excludes everything else that types into, starts or ends the session.
func (c *Core) lockID(ctx context.Context, id, verb string) (func(), error) {
	return c.o.Store.Lock(ctx, id, verb)
}

// paneOf returns the pane that carries the record's id.
func paneOf(panes []Pane, id string) (Pane, bool) {
	for _, p := range panes {
		if p.Mark == id {
			return p, true
		}
	}
	return Pane{}, false
}

func (c *Core) emit(ctx context.Context, name string, level slog.Level, r Record, fields map[string]any) {
	c.o.Sink.Emit(ctx, Event{Name: name, Level: level, Ref: r.Ref, ID: r.ID, Fields: fields})
}

// environment is what a pane of the session starts with.
func (c *Core) environment(cfg Config, r Record, own map[string]string) (map[string]string, error) {
	env := map[string]string{}
	if cfg.Env != nil {
		declared, err := cfg.Env()
		if err != nil {
			return nil, fmt.Errorf("read the env file: %w", err)
		}
		maps.Copy(env, declared)
	}
	maps.Copy(env, own)
	maps.Copy(env, cfg.OwnEnv)
	env["THE_LOOP_SESSION"] = r.ID
	return env, nil
}

func newID() string { return uuid.NewString() }
