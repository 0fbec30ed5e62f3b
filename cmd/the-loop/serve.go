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

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"the-loop/bot"
	"the-loop/bot/slack"
	"the-loop/cmd/internal/config"
	"the-loop/sessions/registry"
)

func serveCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Run the Slack bot in the foreground", Args: cobra.NoArgs,
		Long: `Run the Slack bot in the foreground until it is interrupted. It announces running sessions, delivers replies to
them, and catches up on replies written while it was down. Run only one bot per state root and per Slack app. Sessions keep running
without it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.serve(cmd.Context(), func(line string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), line) })
		}}
	cmd.Flags().BoolVar(&c.detached, flagDetached, false, "log to the file alone")
	cmd.Flags().StringVar(&c.tmuxSocket, flagSocket, "", "the socket of the demo's tmux server")
	cmd.Flags().BoolVar(&c.tokensOnStdin, flagTokens, false, "read the tokens from standard input, as a JSON object by the names of their variables")
	for _, name := range []string{flagDetached, flagSocket, flagTokens} {
		_ = cmd.Flags().MarkHidden(name) // it exists
	}
	return cmd
}

// flagDetached is how "the-loop start" runs the bot.
const flagDetached = "detached"

// flagSocket is how the demo runs it.
const flagSocket = "demo-socket"

// serve runs the bot until ctx ends. say is told when it is ready.
func (c *cli) serve(ctx context.Context, say func(line string)) error {
	readable := setUndumpable() // first of all: the tokens are read after it
	cfg, loader, err := c.loadConfig()
	if err != nil {
		return err
	}
	if !cfg.Slack.Enabled {
		return usageError(fmt.Errorf("%s: channels.slack.enabled: is false — set it to true to run the bot", cfg.Path))
	}
	own, err := c.takeTokens(cfg)
	if err != nil {
		return err
	}
	client, err := newSlackClient(cfg, func(name string) string { return own[name] })
	if err != nil {
		return err
	}
	defer client.Close()
	c.scrubber = newScrubber(func() declaredSources { return c.declaredSources(cfg) }, nil, own)
	var also io.Writer = c.env.err
	if c.detached {
		also = io.Discard
	}
	log, closeLog, err := openBotLog(cfg.StateRoot, also, c.scrubber.scrubKnown)
	if err != nil {
		return fmt.Errorf("open the bot's log: %w", err)
	}
	defer closeLog()
	if readable != nil {
		log.Warn("other programs of this user can read the bot's memory", "err", readable)
	}
	watcher := config.NewWatcher(loader, cfg.Path, cfg, config.WatchOptions{Log: log})
	a, err := c.buildApp(func() *config.Config { return watcher.Current().Config }, log)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.tmux.Check(ctx); err != nil {
		return err
	}
	return a.runBot(ctx, client, watcher, c.scrubber.scrub, say)
}

// newSlackClient makes the client from the variables that the configuration names.
func newSlackClient(cfg *config.Config, getenv func(string) string) (*slack.Client, error) {
	botToken, appToken, err := config.ReadTokens(cfg, getenv)
	if err != nil {
		return nil, err
	}
	return bot.NewClient(slack.ClientOptions{BotToken: botToken, AppToken: appToken, APIURL: cfg.Slack.APIURL})
}

// runBot runs the bot as the only one of this root.
func (a *app) runBot(ctx context.Context, client *slack.Client, watcher *config.Watcher, scrub func(string) string, say func(string)) error {
	started := time.Now()
	release, err := a.registry.AcquireBot(ctx, registry.BotInfo{Started: started})
	if err != nil {
		return err
	}
	defer release()
	a.sweepDeletedSessions(ctx, started)
	for _, w := range a.cfg().Warnings() {
		a.log.Warn("configuration", "warning", w.String())
	}
	changed := make(chan struct{}, 1)
	b, err := bot.New(bot.Options{Root: a.cfg().StateRoot, Client: client, Core: a.core, Sink: a.events, Log: a.log, Changed: changed,
		Config: func() bot.Config { return a.botConfig(watcher.Current()) }, Scrub: scrub,
		OnStatus: func(r bot.Status) { a.writeBotState(started, watcher.Current().Err, r, scrub) },
		Ready:    func() { say(fmt.Sprintf("ready: process %d serves %s", os.Getpid(), a.cfg().StateRoot)) }})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { watcher.Run(running) })
	wg.Go(func() { a.watchChanges(running, watcher.Changes(), changed, b.StatusChanged) })
	defer wg.Wait()
	defer stop()
	err = b.Run(running)
	if err == nil {
		say("stopped")
	}
	return err
}

// botConfig is what the surface asks of the configuration now.
func (a *app) botConfig(now config.Snapshot) bot.Config {
	cfg := now.Config.BotConfig(now.Err != nil)
	if set, err := a.harnesses(); err == nil { // without them nothing can be made from a form, and it says so
		cfg.Harnesses = set.Names()
	}
	return cfg
}

// writeBotState says in bot.json how the bot is.
func (a *app) writeBotState(started time.Time, invalid error, r bot.Status, scrub func(string) string) {
	state := registry.BotState{PID: os.Getpid(), Started: started, Written: time.Now(), App: r.Socket.App, Team: r.Self.Team,
		Connected: r.Socket.Connected, LastFrame: r.Socket.LastFrame, Connections: r.Socket.Connections,
		Bound: r.Threads.Bound, Unread: r.Threads.Unread, Unposted: r.Threads.Unposted, Problem: r.Problem}
	if r.Socket.Problem != "" {
		state.Problem = r.Socket.Problem
	}
	if invalid != nil {
		state.ConfigError = invalid.Error()
	}
	state.Problem, state.ConfigError = scrub(state.Problem), scrub(state.ConfigError)
	if err := a.registry.WriteBot(state); err != nil {
		a.log.Error("could not write the bot's status", "err", err)
	}
}

// watchChanges pokes changed when the configuration, the env file or a record changes. Of the configuration reconfigured is told as well.
func (a *app) watchChanges(ctx context.Context, config <-chan struct{}, changed chan<- struct{}, reconfigured func()) {
	records := make(chan struct{}, 1)
	var wg sync.WaitGroup
	local := filepath.Join(a.cfg().StateRoot, "local")
	wg.Go(func() { watchRecords(ctx, []string{local, filepath.Join(local, "standing")}, records, a.log) })
	wg.Go(func() { watchEnv(ctx, func() string { return a.cfg().EnvFile }, records) })
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-config:
			reconfigured()
		case <-records:
		}
		wake(changed)
	}
}

// recordsPollInterval is how often changes of records are taken for granted where nothing tells of them.
const recordsPollInterval = 3 * time.Second

// watchRecords tells of changes in the folders of records. Where one cannot be watched, it says so every few seconds.
func watchRecords(ctx context.Context, dirs []string, records chan<- struct{}, log *slog.Logger) {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer func() { _ = w.Close() }()
		for _, dir := range dirs {
			err = errors.Join(err, os.MkdirAll(dir, 0o700), w.Add(dir))
		}
	}
	if err != nil {
		log.Warn("cannot watch the records' folder; checking every few seconds instead", "err", err)
		runEvery(ctx, recordsPollInterval, func() { wake(records) })
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.Events:
			if !ok {
				return
			}
			wake(records)
		case err := <-w.Errors: // some may have been missed
			log.Warn("missed changes in the records' folder", "err", err)
			wake(records)
		}
	}
}

// runEvery does something again and again until ctx ends.
func runEvery(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
