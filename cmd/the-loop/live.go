package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"

	"the-loop/bot"
	"the-loop/bot/command"
	"the-loop/bot/localslack"
	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/tmux"
)

// liveOptions are the flags of a demo with a page.
type liveOptions struct {
	harness string
	port    int
	noOpen  bool
}

// liveDemo is the demo that one talks to: the workspace with its page, the bot as a process of its own, and an agent.
type liveDemo struct {
	*demoBase
	cli      *cli // with the demo's configuration and tmux server
	options  liveOptions
	stranger *localslack.Person
	bot      *demoBot
	page     *localslack.Page
	scrub    func(string) string
	events   recentEvents
}

// runLiveDemo runs the demo until ctx ends, and takes everything down again, also when it goes wrong.
func (c *cli) runLiveDemo(ctx context.Context, o liveOptions, out io.Writer) (err error) {
	ctx, hungUp := signal.NotifyContext(ctx, syscall.SIGHUP) // its terminal was closed
	defer hungUp()
	dir, err := makeDemoFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &liveDemo{demoBase: &demoBase{dir: dir}, options: o}
	if err := d.startLiveWorkspace(ctx); err != nil {
		return fmt.Errorf("start the local workspace: %w", err)
	}
	defer func() { err = errors.Join(err, d.slack.Close()) }()
	if err := d.openApp(ctx, c); err != nil {
		return ignoreInterrupt(ctx, err)
	}
	defer func() { err = errors.Join(err, d.close(context.WithoutCancel(ctx))) }()
	if err := d.start(ctx); err != nil {
		return ignoreInterrupt(ctx, err)
	}
	d.printWelcome(ctx, out)
	<-ctx.Done()
	_, _ = fmt.Fprintln(out, "\nShutting down …")
	return nil
}

// ignoreInterrupt is an error, unless somebody interrupted what it comes from.
func ignoreInterrupt(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// demoCompany is the team of the stranger.
const demoCompany = "T0ELSEWHERE"

// startLiveWorkspace starts the workspace. Its tokens are new: other programs of this machine can reach its port.
func (d *liveDemo) startLiveWorkspace(ctx context.Context) error {
	d.slack = localslack.New(localslack.Options{BotName: "the-loop", BotToken: "xoxb-1-2-" + randomHex(12), Commands: []string{demoCommandName},
		AppToken: "xapp-1-A0LOCALAPP1-3-" + randomHex(32)})
	if err := d.slack.Start(ctx); err != nil {
		return err
	}
	d.ann = d.slack.AddUser("ann", localslack.Named("Ann", "Ann"))
	d.bob = d.slack.AddUser("bob", localslack.Named("Bob", "Bob"))
	d.stranger = d.slack.AddUser("mallory", localslack.Named("Mallory", "Mallory"), localslack.Stranger(demoCompany))
	d.channel = d.slack.AddChannel("agents", localslack.ExtShared(demoCompany),
		localslack.Members(d.ann.ID, d.bob.ID, d.stranger.ID, d.slack.BotUserID())).ID
	return nil
}

// demoCommandName is the slash command of the demo.
const demoCommandName = "/the-loop"

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails (crypto/rand since Go 1.24)
	return hex.EncodeToString(b)
}

// openApp writes the configuration and makes the core. Nothing runs yet but the workspace.
func (d *liveDemo) openApp(ctx context.Context, c *cli) error {
	path, err := d.writeConfig(c)
	if err != nil {
		return err
	}
	loader := config.Loader{Workdir: d.dir, Home: c.env.home}
	loader.Check = checkConfig
	cfg, err := loader.Load(path)
	if err != nil {
		return fmt.Errorf("the demo's configuration: %w", err)
	}
	d.events.path = cfg.EventLog.Path
	inDemo := *c
	inDemo.configPath, inDemo.tmuxSocket = path, filepath.Join(d.dir, "tmux")
	d.cli = &inDemo
	if d.app, err = inDemo.buildApp(func() *config.Config { return cfg }, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	tokens := map[string]string{cfg.Slack.BotTokenEnv: d.slack.BotToken(), cfg.Slack.AppTokenEnv: d.slack.AppToken()}
	d.scrub = newScrubber(func() string { return cfg.EnvFile }, d.app.tmux.Panes, tokens).scrub
	if d.bot, err = newDemoBot(d.cli, cfg, tokens); err != nil {
		return err
	}
	return d.app.tmux.Check(ctx)
}

// start brings up the session, the bot and the page.
func (d *liveDemo) start(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	if _, err := d.app.core.Start(within, sessions.StartRequest{Ref: demoRef}); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	if err := d.bot.start(); err != nil {
		return err
	}
	if err := d.waitAnnounced(within); err != nil {
		return fmt.Errorf("the bot did not announce the session: %w\n%s", err, d.bot.lastError())
	}
	return d.servePage(ctx)
}

// announced waits until the bot has announced the session.
func (d *liveDemo) waitAnnounced(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := d.slack.WaitForMessage(within, d.channel, func(m localslack.Message) bool {
		return m.User == d.slack.BotUserID() && m.Subtype == ""
	})
	return err
}

func (d *liveDemo) servePage(ctx context.Context) error {
	d.page = localslack.NewPage(d.slack, localslack.PageOptions{
		Addr: "127.0.0.1:" + strconv.Itoa(d.options.port), Channel: d.channel, Demo: d, Tips: d.tips(), Commands: demoCommands(), Shortcuts: demoShortcuts(),
		Personas: []localslack.Persona{
			{User: d.ann.ID, Role: "authorized", Authorized: true, About: "Ann is authorized: her replies are typed into the terminal, and her buttons work."},
			{User: d.bob.ID, Role: "not authorized", About: "Bob is a colleague without authorization: he can read, but nothing he does reaches an agent."},
			{User: d.stranger.ID, Role: "other company", About: "Mallory works at another company and shares the channel: nothing she does reaches an agent or is answered."},
		}})
	if err := d.page.Start(ctx); err != nil {
		d.page = nil
		return err
	}
	return nil
}

// demoCommands are what the composer suggests.
func demoCommands() (all []localslack.Command) {
	for _, u := range command.Usages() {
		all = append(all, localslack.Command{Name: demoCommandName, Verb: u.Verb, Hint: u.Args, Description: u.Description})
	}
	return all
}

func demoShortcuts() (all []localslack.Shortcut) {
	for id, name := range bot.MessageShortcuts() {
		all = append(all, localslack.Shortcut{ID: id, Name: name})
	}
	return all
}

// printWelcome says where everything is, and starts a browser when there is one.
func (d *liveDemo) printWelcome(ctx context.Context, out io.Writer) {
	attach, err := d.app.core.Attach(ctx, sessions.AttachRequest{Ref: demoRef})
	if err != nil {
		attach = []string{"#", err.Error()}
	}
	_, _ = fmt.Fprintf(out, `A Slack workspace, the bot and %s in tmux, all on this machine.

  page      %s
  terminal  %s

Three things to try on the page:
%s
Press Ctrl-C to stop it and remove everything.
`, d.options.harness, d.page.URL(), shellescape.QuoteCommand(attach), numberedList(d.tips()))
	if !d.options.noOpen {
		openBrowser(d.page.SingleUseURL(), d.cli.env.getenv)
	}
}

// tips are what to try.
func (d *liveDemo) tips() []string {
	first := "Write a reply in the thread and watch it being typed into the terminal, once."
	if d.options.harness == smallagent.Name {
		first = "Write “ask: run the tests” in the thread, and answer the agent's question there with a button."
	}
	return []string{first, "Write as Bob or Mallory, who are not authorized: nothing reaches the agent.",
		"Kill the bot, write a reply, and start it again: the reply is typed, once."}
}

func numberedList(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, line)
	}
	return b.String()
}

// openBrowser starts the operator's browser, when there is a display and something that starts it. It stays when we end.
func openBrowser(url string, getenv func(string) string) {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return
	}
	cmd := exec.Command(name, url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Start() == nil {
		_ = cmd.Process.Release()
	}
}

// shutdownTimeout bounds the way down.
const shutdownTimeout = 40 * time.Second

// close takes down the page, the bot and every session, and waits until the tmux server has ended with the last one.
func (d *liveDemo) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	defer d.app.close()
	var err error
	if d.page != nil {
		err = d.page.Close()
	}
	err = errors.Join(err, d.bot.stop(ctx))
	servers := map[int]bool{}
	recs, _, listErr := d.app.registry.List(ctx)
	for _, rec := range recs {
		servers[rec.Server.PID] = true
	}
	stopped, stopErr := d.app.core.StopAll(ctx)
	for _, row := range stopped.Rows {
		if row.Outcome == sessions.OutcomeFailed {
			err = errors.Join(err, fmt.Errorf("stop %s: %s", row.Ref, row.Detail))
		}
	}
	err = errors.Join(err, listErr, stopErr)
	for pid := range servers {
		err = errors.Join(err, waitExited(ctx, pid))
	}
	return err
}

// fixedSizeTmux makes panes as wide as the page shows them in letters that can be read.
type fixedSizeTmux struct{ *tmux.Tmux }

// The size of the demo's panes, in columns and rows.
const (
	demoColumns = 76
	demoRows    = 20
)

// Spawn is [tmux.Tmux.Spawn] in the demo's size.
func (n fixedSizeTmux) Spawn(ctx context.Context, s sessions.Spawn) (sessions.Pane, error) {
	s.Width, s.Height = demoColumns, demoRows
	return n.Tmux.Spawn(ctx, s)
}

// oneLine is a sentence as the terminal shows it, without what would end its line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
