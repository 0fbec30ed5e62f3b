// Package demo shows the-loop on one machine: a local Slack workspace, the bot, and an agent in a tmux server of the demo's
// own. [PlayScript] plays a conversation and prints it; [Run] serves a page on which a person writes. Both remove everything
// when they end.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"the-loop/bot"
	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/eventlog"
	"the-loop/sessions/process"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
)

// Options are the choices of the person who starts a demo, and what the demo takes from the program that it is part of.
type Options struct {
	Harness string   // the agent program of the demo with a page
	Port    int      // of the page; 0: any free one
	NoOpen  bool     // starts no browser
	EnvPass []string // names of variables that the agent gets from our own environment

	Host Host
}

// Host is the program that a demo is part of.
type Host struct {
	Home      string // the operator's home folder
	Getenv    func(string) string
	Harnesses []string // the names of the built-in agent programs

	// OperatorConfig reads the operator's own configuration; its error is [config.ErrNotFound] when there is none.
	OperatorConfig func() (*config.Config, error)
	// OpenApp makes the core of a demo. Nothing runs yet.
	OpenApp func(AppRequest) (*App, error)
}

// AppRequest says which core a demo needs.
type AppRequest struct {
	Config     *config.Config
	TmuxSocket string
	FixedSize  bool // its panes have the size that the page shows
	Tokens     map[string]string
}

// App is the core of a demo, with what is under it.
type App struct {
	Config   *config.Config
	Core     *core.Core
	Tmux     *tmux.Tmux
	Registry *registry.Registry
	Events   *eventlog.Log

	Scrub        func(string) string // takes the values of credentials out of a text
	BotCommand   []string            // program and arguments of a bot process
	BotErrorPath string              // the file in which a bot process says why it ended
}

func (a *App) close() { _ = a.Events.Close() } // what could not be written was said to the log

// ErrUnknownHarness means that nothing describes the agent program that was chosen.
var ErrUnknownHarness = errors.New("unknown harness")

// scriptTimeout bounds a demo without a page, and the start of one with a page.
const scriptTimeout = 2 * time.Minute

// base is what both demos have: the workspace, its members and the core, in a folder of their own.
type base struct {
	app     *App
	dir     string
	slack   *localslack.Workspace
	channel string
	ann     *localslack.Person // on the list
	bob     *localslack.Person // not on it
	stopBot func() error
}

// PlayScript plays one conversation and prints it. Everything is removed again, also when it fails or is interrupted.
func PlayScript(ctx context.Context, host Host, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	dir, err := makeDemoFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &base{dir: dir, stopBot: func() error { return nil }}
	if err := d.startWorkspace(ctx); err != nil {
		return fmt.Errorf("start the local workspace: %w", err)
	}
	defer func() { err = errors.Join(err, d.slack.Close()) }()
	if err := d.openApp(ctx, host); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.shutdown(context.WithoutCancel(ctx))) }()
	return (&script{base: d, out: out}).run(ctx)
}

// maxSocketPath is the longest path of a Unix socket (unix(7): 108 bytes, macOS 104).
const maxSocketPath = 103

// makeDemoFolder makes the demo's folder, in /tmp where the usual place has too long a name for tmux's socket.
func makeDemoFolder() (string, error) {
	dir, err := os.MkdirTemp("", "the-loop-demo-")
	if err == nil && len(filepath.Join(dir, "tmux")) > maxSocketPath {
		if err := os.Remove(dir); err != nil {
			return "", err
		}
		return os.MkdirTemp("/tmp", "the-loop-demo-")
	}
	return dir, err
}

func (d *base) startWorkspace(ctx context.Context) error {
	d.slack = localslack.New(localslack.Options{BotName: "the-loop"})
	if err := d.slack.Start(ctx); err != nil {
		return err
	}
	d.ann, d.bob = d.slack.AddUser("ann"), d.slack.AddUser("bob")
	d.channel = d.slack.AddChannel("agents").ID
	d.slack.Join(d.channel, d.ann.ID, d.bob.ID)
	d.slack.Invite(d.channel, d.slack.BotUserID())
	return nil
}

// scriptConfig is the configuration of the demo, as an operator would write it.
const scriptConfig = `version: 1
routing: {defaultHarness: small-agent, spawnWorkdir: %q, tmux: {harnessKillGraceSeconds: 1}}
standingSessions:
  enabled: true
  sessions:
    - {name: helper, description: A small agent that comes with the-loop}
channels:
  slack: {enabled: true, channel: %s, authorizedUsers: [%s], apiUrl: %q, replies: "off"}
`

// openApp writes the demo's configuration and makes the core from it.
func (d *base) openApp(ctx context.Context, host Host) error {
	path := filepath.Join(d.dir, "cli-config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, scriptConfig, d.dir, d.channel, d.ann.ID, d.slack.APIURL()), 0o600); err != nil {
		return err
	}
	loader := config.Loader{Workdir: d.dir, Home: d.dir}
	cfg, err := loader.Load(path)
	if err != nil {
		return err
	}
	if d.app, err = host.OpenApp(AppRequest{Config: cfg, TmuxSocket: filepath.Join(d.dir, "tmux")}); err != nil {
		return err
	}
	return d.app.Tmux.Check(ctx)
}

// startBot starts the bot, until ctx ends or it is stopped, and returns when it is connected.
func (d *base) startBot(ctx context.Context) error {
	client, err := bot.NewClient(slack.ClientOptions{BotToken: d.slack.BotToken(), AppToken: d.slack.AppToken(), APIURL: d.slack.APIURL()})
	if err != nil {
		return err
	}
	b, err := bot.New(bot.Options{Root: d.dir, Client: client, Core: d.app.Core, Sink: d.app.Events, Log: slog.New(slog.DiscardHandler),
		Config: func() bot.Config { return d.app.Config.BotConfig(false) }})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = b.Run(running) })
	d.stopBot = func() error {
		stop()
		wg.Wait()
		client.Close()
		return failed
	}
	waiting, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return d.slack.WaitFor(waiting, func() bool { return d.slack.Connections() == 1 })
}

// shutdown ends the bot and the session, and waits until the tmux server has ended with its last session.
func (d *base) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err := d.stopBot()
	defer d.app.close()
	rec, loadErr := d.app.Registry.Load(ctx, sessionRef)
	if errors.Is(loadErr, sessions.ErrNotRecorded) {
		return err // it was never started
	}
	_, stopErr := d.app.Core.Stop(ctx, sessions.StopRequest{Ref: sessionRef})
	return errors.Join(err, loadErr, stopErr, waitExited(ctx, rec.Server.PID))
}

// waitExited waits until a tmux server has ended, as it does with its last session.
func waitExited(ctx context.Context, pid int) error {
	for process.System().IsRunning(ctx, pid) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the demo's tmux server, process %d, did not end", pid)
		}
	}
	return nil
}

// sessionRef is the demo's session.
var sessionRef = sessions.StandingRef("helper")
