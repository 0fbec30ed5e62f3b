package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/eventlog"
	"the-loop/sessions/harness"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
)

// app is the core with everything under it, as the configuration says.
type app struct {
	cfg      func() *config.Config // the last valid one
	registry *registry.Registry
	events   *eventlog.Log
	tmux     *tmux.Tmux
	core     *sessions.Core
	log      *slog.Logger
}

// load finds and reads the configuration.
func (c *cli) load() (*config.Config, config.Loader, error) {
	found, err := config.Find(c.config, c.env.getenv, c.env.workdir, c.env.home)
	if err != nil {
		return nil, config.Loader{}, err
	}
	loader := found.Loader(c.env.workdir, c.env.home)
	loader.Check = func(cfg *config.Config) error { return cfg.CheckHarnesses(builtinNames) }
	cfg, err := loader.Load(found.Path)
	return cfg, loader, err
}

// builtinNames are the harnesses that need no description.
var builtinNames = []string{harness.SmallAgentName}

// open makes the core for one command.
func (c *cli) open() (*app, error) {
	cfg, _, err := c.load()
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(c.env.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return c.build(func() *config.Config { return cfg }, log)
}

// build makes the core over a configuration that may change.
func (c *cli) build(cfg func() *config.Config, log *slog.Logger) (*app, error) {
	first := cfg()
	a := &app{cfg: cfg, registry: registry.New(first.StateRoot), log: log}
	a.events = eventlog.New(first.EventLog.Path, func() eventlog.Options { return cfg().EventLogOptions() }, log)
	var err error
	a.tmux, err = tmux.New(tmux.Options{SocketName: first.Routing.Tmux.SocketName, SocketPath: c.socket, Dir: filepath.Join(first.StateRoot, "run"), Log: log})
	if err != nil {
		return nil, err
	}
	own := map[string]string{"THE_LOOP_CLI_CONFIG": first.Path, "THE_LOOP_INSTANCE": first.StateRoot}
	a.core = sessions.New(sessions.Options{Terminal: a.tmux, Store: a.registry, Sink: a.events, Log: log,
		Config: func() sessions.Config { return cfg().Sessions(own) },
		Harnesses: func(name string) (sessions.Harness, error) {
			small, err := c.smallAgent(cfg())
			if err != nil {
				return nil, err
			}
			return cfg().HarnessSet(small).Get(name)
		}})
	return a, nil
}

func (a *app) close() { _ = a.events.Close() } // what could not be written was said to the log

// smallAgent is the agent that comes with this binary.
func (c *cli) smallAgent(cfg *config.Config) (sessions.Harness, error) {
	self, err := stable(c.env.self, filepath.Join(cfg.StateRoot, "run"))
	if err != nil {
		return nil, err
	}
	return harness.SmallAgent{Argv: []string{self, "small-agent"}, Dir: filepath.Join(cfg.StateRoot, "small-agent")}, nil
}

// stable is a path of this program that stays. "go run" removes its binary when the command ends, so that one is copied.
func stable(self, dir string) (string, error) {
	if !strings.Contains(self, string(filepath.Separator)+"go-build") {
		return self, nil
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	sum := sha256.Sum256(data)
	path := filepath.Join(dir, "the-loop-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(path); err == nil {
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
	if err := writeProgram(half, data); err != nil {
		return "", fmt.Errorf("copy this program: %w", err)
	}
	return path, os.Rename(half.Name(), path)
}

func writeProgram(f *os.File, data []byte) error {
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

// botLog writes the bot's log beside the events, and to also.
func botLog(root string, also io.Writer) (*slog.Logger, func(), error) {
	dir := filepath.Join(root, "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "bot.log")
	if info, err := os.Stat(path); err == nil && info.Size() > botLogMax {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(io.MultiWriter(f, also), nil)), func() { _ = f.Close() }, nil
}

// botLogMax is the size above which the next start begins a new log.
const botLogMax = 16 << 20

// standing opens the core for a verb on one standing session.
func (c *cli) standing(ctx context.Context, name string, verb func(*app, sessions.Ref) error) error {
	if !sessions.ValidName(name) {
		return &sessions.RefError{Got: name}
	}
	a, err := c.open()
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.tmux.Check(ctx); err != nil {
		return err
	}
	return verb(a, sessions.StandingRef(name))
}
