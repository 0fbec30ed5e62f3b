package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"the-loop/cmd/internal/config"
	"the-loop/cmd/internal/demo"
	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/eventlog"
	"the-loop/sessions/harness"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
)

// app is the core with everything under it, as the configuration says.
type app struct {
	cfg      func() *config.Config // the last valid one
	registry *registry.Registry
	events   *eventlog.Log
	tmux     *tmux.Tmux
	core     *core.Core

	harnesses func() (harness.Set, error) // those that can be used now
	log       *slog.Logger
}

// loadConfig finds and reads the configuration.
func (c *cli) loadConfig() (*config.Config, config.Loader, error) {
	found, err := config.Find(c.configPath, c.env.getenv, c.env.workdir, c.env.home)
	if err != nil {
		return nil, config.Loader{}, err
	}
	loader := found.Loader(c.env.workdir, c.env.home)
	loader.Check = checkConfig
	cfg, err := loader.Load(found.Path)
	return cfg, loader, err
}

// checkConfig holds a configuration against the harnesses there are and the sessions that were created.
func checkConfig(cfg *config.Config) error {
	if err := cfg.CheckHarnesses(builtinHarnessNames()); err != nil {
		return err
	}
	var conflicts []config.Problem
	reg := registry.New(cfg.StateRoot)
	for _, s := range cfg.Standing.Sessions {
		created, err := sessions.IsCreated(context.Background(), reg, s.Name)
		if err == nil && created { // a record that cannot be read refuses its session, not the configuration
			conflicts = append(conflicts, cfg.ProblemAt(s.Position.Key+".name",
				fmt.Sprintf("%q is already the name of a session created at run time (%s) — choose another name, or remove this entry and run `the-loop standing delete %s`",
					s.Name, filepath.Join(cfg.StateRoot, "local", "standing", s.Name+".json"), s.Name)))
		}
	}
	if len(conflicts) > 0 {
		return &config.Error{Problems: conflicts}
	}
	return nil
}

// openApp makes the core for one command.
func (c *cli) openApp() (*app, error) {
	cfg, _, err := c.loadConfig()
	if err != nil {
		return nil, err
	}
	return c.buildApp(func() *config.Config { return cfg }, c.warningLog())
}

// openAppForStop makes the core for a command that takes something down. A configuration that does not validate is no reason
// to leave agents running: where the state is can be told all the same, and the records say the rest.
func (c *cli) openAppForStop() (*app, error) {
	a, err := c.openApp()
	var refused *config.Error
	if !errors.As(err, &refused) {
		return a, err
	}
	found, ferr := config.Find(c.configPath, c.env.getenv, c.env.workdir, c.env.home)
	if ferr != nil {
		return nil, ferr
	}
	cfg, sure := found.Loader(c.env.workdir, c.env.home).LoadPartial(found.Path)
	_, _ = fmt.Fprintf(c.env.err, "the-loop: %v\nthe-loop: the configuration is invalid; stopping the sessions that are recorded in %s\n", err, cfg.StateRoot)
	if !sure {
		_, _ = fmt.Fprintln(c.env.err, "the-loop: state.root could not be read, so the default is used; use --config FILE for another configuration")
	}
	return c.buildApp(func() *config.Config { return cfg }, c.warningLog())
}

// warningLog is the log of a command: what goes wrong beside its result.
func (c *cli) warningLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(c.env.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// tmuxServers gives the terminals of other tmux servers than ours, which records may name from before the configuration changed.
type tmuxServers struct {
	ownOptions tmux.Options
	mu         sync.Mutex // guards the field that follows
	terminals  map[string]*tmux.Tmux
}

// terminalAt is the terminal of that socket; nil: it is ours, or none.
func (s *tmuxServers) terminalAt(socket string) sessions.Terminal {
	if socket == s.ownOptions.SocketPath || s.ownOptions.SocketPath == "" && isOwnSocket(socket, s.ownOptions.SocketName) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terminals[socket]; t != nil {
		return t
	}
	other := s.ownOptions
	other.SocketName, other.SocketPath = "", socket
	t, err := tmux.New(other)
	if err != nil {
		return nil
	}
	s.terminals[socket] = t
	return t
}

// isOwnSocket reports whether tmux has a server of that name at that path. What is before tmux-UID is the system's: /tmp, or
// what that links to.
func isOwnSocket(path, name string) bool {
	rest, ok := strings.CutSuffix(path, fmt.Sprintf("/tmux-%d/%s", os.Getuid(), name))
	real, err := filepath.EvalSymlinks("/tmp")
	return ok && (rest == "/tmp" || err == nil && rest == real)
}

// buildApp makes the core over a configuration that may change.
func (c *cli) buildApp(cfg func() *config.Config, log *slog.Logger) (*app, error) {
	first := cfg()
	a := &app{cfg: cfg, registry: registry.New(first.StateRoot), log: log}
	a.events = eventlog.New(first.EventLog.Path, func() eventlog.Options {
		o := cfg().EventLogOptions()
		o.Scrub = c.scrubber.scrub
		return o
	}, log)
	var err error
	server := tmux.Options{SocketName: first.Routing.Tmux.SocketName, SocketPath: c.tmuxSocket, Dir: filepath.Join(first.StateRoot, "run"), Log: log}
	a.tmux, err = tmux.New(server)
	if err != nil {
		return nil, err
	}
	c.scrubberFor(first).setSources(func() declaredSources { return c.declaredSources(cfg()) }, a.tmux.Panes)
	index := &report.Index{}
	program := sync.OnceValues(func() (string, error) { return stableProgramPath(c.env.self, filepath.Join(first.StateRoot, "run")) })
	a.harnesses = func() (harness.Set, error) {
		self, err := program()
		if err != nil {
			return nil, err
		}
		return cfg().HarnessSet(builtinHarnesses(cfg(), self, c.env.home, index)...), nil
	}
	own := map[string]string{"THE_LOOP_CLI_CONFIG": first.Path, "THE_LOOP_INSTANCE": first.StateRoot}
	others := &tmuxServers{ownOptions: server, terminals: map[string]*tmux.Tmux{}}
	var terminal sessions.Terminal = a.tmux
	if c.tmuxSocket != "" && !c.fullSizePanes {
		terminal = demo.FixedSizeTmux{Tmux: a.tmux}
	}
	a.core = core.New(core.Options{Terminal: terminal, TerminalAt: others.terminalAt, Store: a.registry, Sink: a.events, Log: log,
		Reports: report.Reader{Dir: filepath.Join(first.StateRoot, "reports"), PermissionDir: filepath.Join(first.StateRoot, "run", "ask"), Index: index},
		Config: func() core.Config {
			now := cfg().SessionsConfig(own, c.env.getenv)
			now.Program, _ = program() // without one no agent can be started, and that says why
			return now
		},
		Harnesses: func(name string) (sessions.Harness, error) {
			set, err := a.harnesses()
			if err != nil {
				return nil, err
			}
			return set.Get(name)
		}})
	return a, nil
}

func (a *app) close() { _ = a.events.Close() } // what could not be written was said to the log

// stableProgramPath is a path of this program that stays. "go run" removes its binary when the command ends, so that one is copied.
func stableProgramPath(self, dir string) (string, error) {
	if !strings.Contains(self, string(filepath.Separator)+"go-build") {
		return self, nil
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	sum := sha256.Sum256(data)
	path := filepath.Join(dir, programCopyPrefix+hex.EncodeToString(sum[:6]))
	if now := time.Now(); os.Chtimes(path, now, now) == nil { // it is there, and in use
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	half, err := os.CreateTemp(dir, ".the-loop-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(half.Name()) }()
	if err := writeProgramCopy(half, data); err != nil {
		return "", fmt.Errorf("copy this program: %w", err)
	}
	err = os.Rename(half.Name(), path)
	sweepProgramCopies(dir)
	return path, err
}

// programCopyPrefix begins the names of such copies.
const programCopyPrefix = "the-loop-"

func writeProgramCopy(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Chmod(0o700); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// withStandingSession opens the core for a verb on one standing session.
func (c *cli) withStandingSession(ctx context.Context, name string, verb func(*app, sessions.Ref) error) error {
	return c.withStandingSessionFrom(ctx, name, c.openApp, verb)
}

func (c *cli) withStandingSessionFrom(ctx context.Context, name string, open func() (*app, error), verb func(*app, sessions.Ref) error) error {
	if !sessions.ValidName(name) {
		return usageError(fmt.Errorf("%q is not a valid session name: use up to 40 lowercase letters, digits and dashes, as in supervisor", name))
	}
	return c.withApp(ctx, open, func(a *app) error { return verb(a, sessions.StandingRef(name)) })
}

// withApp opens the core, makes sure that there is a tmux, and closes it again.
func (c *cli) withApp(ctx context.Context, open func() (*app, error), do func(*app) error) error {
	a, err := open()
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.tmux.Check(ctx); err != nil {
		return err
	}
	return do(a)
}
