package main

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

	"github.com/spf13/cobra"

	"the-loop/bot"
	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/process"
)

// demoTimeout bounds the whole of "demo --once".
const demoTimeout = 2 * time.Minute

func demoCommand(c *cli) *cobra.Command {
	var once bool
	var o liveOptions
	cmd := &cobra.Command{Use: "demo", Short: "Try the-loop without Slack: the bot, an agent and a local workspace in the browser", Args: cobra.NoArgs,
		Long: `Try the-loop without a Slack account: the bot, an agent in tmux and a local workspace run on this machine. A page in the browser shows
a channel to write in, the agent's terminal, and buttons that simulate faults. It needs only tmux. Nothing leaves this machine, unless
the agent uses the network, and everything is removed when you press Ctrl-C. With --once, a conversation is played and printed, without
a browser.`}
	cmd.Flags().BoolVar(&once, "once", false, "play one conversation, print it and exit")
	cmd.Flags().StringVar(&o.harness, "harness", "small-agent", "the agent program: a built-in one such as claude, or one from your configuration")
	cmd.Flags().IntVar(&o.port, "port", 0, "the page's port (default: any free port)")
	cmd.Flags().BoolVar(&o.noOpen, "no-open", false, "do not open a browser")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !once {
			return c.runLiveDemo(cmd.Context(), o, cmd.OutOrStdout())
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), demoTimeout)
		defer cancel()
		return c.runDemoScript(ctx, cmd.OutOrStdout())
	}
	return cmd
}

// demo is everything on this machine: Slack, the bot, the core and its tmux.
type demoBase struct {
	app     *app
	dir     string
	slack   *localslack.Workspace
	channel string
	ann     *localslack.Person // on the list
	bob     *localslack.Person // not on it
	stopBot func() error
}

// demo plays the conversation and takes everything down again, also when it goes wrong or is interrupted.
func (c *cli) runDemoScript(ctx context.Context, out io.Writer) (err error) {
	dir, err := makeDemoFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &demoBase{dir: dir, stopBot: func() error { return nil }}
	if err := d.startWorkspace(ctx); err != nil {
		return fmt.Errorf("start the local workspace: %w", err)
	}
	defer func() { err = errors.Join(err, d.slack.Close()) }()
	if err := c.openDemoApp(ctx, d); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.shutdown(context.WithoutCancel(ctx))) }()
	return (&script{demoBase: d, out: out}).run(ctx)
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

func (d *demoBase) startWorkspace(ctx context.Context) error {
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

// demoConfig is the configuration of the demo, as an operator would write it.
const demoConfig = `version: 1
routing: {defaultHarness: small-agent, spawnWorkdir: %q, tmux: {harnessKillGraceSeconds: 1}}
standingSessions:
  enabled: true
  sessions:
    - {name: helper, description: A small agent that comes with the-loop}
channels:
  slack: {enabled: true, channel: %s, authorizedUsers: [%s], apiUrl: %q, replies: "off"}
`

// openDemoApp loads the demo's configuration and makes core and bot from it.
func (c *cli) openDemoApp(ctx context.Context, d *demoBase) error {
	path := filepath.Join(d.dir, "cli-config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, demoConfig, d.dir, d.channel, d.ann.ID, d.slack.APIURL()), 0o600); err != nil {
		return err
	}
	loader := config.Loader{Workdir: d.dir, Home: d.dir}
	cfg, err := loader.Load(path)
	if err != nil {
		return err
	}
	silent := slog.New(slog.DiscardHandler)
	inDemo := *c
	inDemo.tmuxSocket, inDemo.fullSizePanes = filepath.Join(d.dir, "tmux"), true
	if d.app, err = inDemo.buildApp(func() *config.Config { return cfg }, silent); err != nil {
		return err
	}
	return d.app.tmux.Check(ctx)
}

// startBot starts the bot, until ctx ends or it is stopped, and returns when it is connected.
func (d *demoBase) startBot(ctx context.Context) error {
	client, err := bot.NewClient(slack.ClientOptions{BotToken: d.slack.BotToken(), AppToken: d.slack.AppToken(), APIURL: d.slack.APIURL()})
	if err != nil {
		return err
	}
	b, err := bot.New(bot.Options{Root: d.dir, Client: client, Core: d.app.core, Sink: d.app.events, Log: d.app.log,
		Config: func() bot.Config { return d.app.cfg().BotConfig(false) }})
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
func (d *demoBase) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err := d.stopBot()
	defer d.app.close()
	rec, loadErr := d.app.registry.Load(ctx, demoRef)
	if errors.Is(loadErr, sessions.ErrNotRecorded) {
		return err // it was never started
	}
	_, stopErr := d.app.core.Stop(ctx, sessions.StopRequest{Ref: demoRef})
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

// demoRef is the demo's session.
var demoRef = sessions.StandingRef("helper")
