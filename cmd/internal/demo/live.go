package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
	"the-loop/bot/localslack/page"
	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/tmux"
)

// live is the demo with a page. Its bot is a process of its own, so that it can be killed.
type live struct {
	*base
	options  Options
	stranger *localslack.Person
	bot      *botProcess
	page     *page.Page
	events   recentEvents
}

// Run serves a page with the workspace, the agent's terminal and simulated faults until ctx ends. Everything is removed again,
// also when it fails.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	ctx, hungUp := signal.NotifyContext(ctx, syscall.SIGHUP) // its terminal was closed
	defer hungUp()
	dir, err := makeDemoFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &live{base: &base{dir: dir}, options: o}
	if err := d.startLiveWorkspace(ctx); err != nil {
		return fmt.Errorf("start the local workspace: %w", err)
	}
	defer func() { err = errors.Join(err, d.slack.Close()) }()
	if err := d.openLiveApp(ctx); err != nil {
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

// ignoreInterrupt returns err, or nil if ctx was interrupted.
func ignoreInterrupt(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// otherCompany is the team of the member from another company.
const otherCompany = "T0ELSEWHERE"

// startLiveWorkspace starts the workspace. Its tokens are new: other programs of this machine can reach its port.
func (d *live) startLiveWorkspace(ctx context.Context) error {
	d.slack = localslack.New(localslack.Options{BotName: "the-loop", BotToken: "xoxb-1-2-" + randomHex(12), Commands: []string{commandName},
		AppToken: "xapp-1-A0LOCALAPP1-3-" + randomHex(32)})
	if err := d.slack.Start(ctx); err != nil {
		return err
	}
	d.ann = d.slack.AddUser("ann", localslack.Named("Ann", "Ann"))
	d.bob = d.slack.AddUser("bob", localslack.Named("Bob", "Bob"))
	d.stranger = d.slack.AddUser("mallory", localslack.Named("Mallory", "Mallory"), localslack.Stranger(otherCompany))
	d.channel = d.slack.AddChannel("agents", localslack.ExtShared(otherCompany),
		localslack.Members(d.ann.ID, d.bob.ID, d.stranger.ID, d.slack.BotUserID())).ID
	return nil
}

// commandName is the slash command of the demo.
const commandName = "/the-loop"

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails (crypto/rand since Go 1.24)
	return hex.EncodeToString(b)
}

// openLiveApp writes the configuration and makes the core. Nothing runs yet but the workspace.
func (d *live) openLiveApp(ctx context.Context) error {
	path, err := d.writeConfig()
	if err != nil {
		return err
	}
	loader := config.Loader{Workdir: d.dir, Home: d.options.Host.Home}
	loader.Check = func(cfg *config.Config) error { return cfg.CheckHarnesses(d.options.Host.Harnesses) }
	cfg, err := loader.Load(path)
	if err != nil {
		return fmt.Errorf("the demo's configuration: %w", err)
	}
	d.events.path = cfg.EventLog.Path
	tokens := map[string]string{cfg.Slack.BotTokenEnv: d.slack.BotToken(), cfg.Slack.AppTokenEnv: d.slack.AppToken()}
	d.app, err = d.options.Host.OpenApp(AppRequest{Config: cfg, TmuxSocket: filepath.Join(d.dir, "tmux"), FixedSize: true, Tokens: tokens})
	if err != nil {
		return err
	}
	if d.bot, err = newBotProcess(d.app, tokens); err != nil {
		return err
	}
	return d.app.Tmux.Check(ctx)
}

// start brings up the session, the bot and the page.
func (d *live) start(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	if _, err := d.app.Core.Start(within, sessions.StartRequest{Ref: sessionRef}); err != nil {
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

// waitAnnounced waits until the bot has announced the session.
func (d *live) waitAnnounced(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := d.slack.WaitForMessage(within, d.channel, func(m localslack.Message) bool {
		return m.User == d.slack.BotUserID() && m.Subtype == ""
	})
	return err
}

func (d *live) servePage(ctx context.Context) error {
	d.page = page.New(d.slack, page.Options{
		Addr: "127.0.0.1:" + strconv.Itoa(d.options.Port), Channel: d.channel, Demo: d, Tips: d.tips(), Commands: commands(), Shortcuts: shortcuts(),
		Personas: []page.Persona{
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

// commands returns the slash commands that the page's composer suggests.
func commands() (all []page.Command) {
	for _, u := range command.Usages() {
		all = append(all, page.Command{Name: commandName, Verb: u.Verb, Hint: u.Args, Description: u.Description})
	}
	return all
}

func shortcuts() (all []page.Shortcut) {
	for id, name := range bot.MessageShortcuts() {
		all = append(all, page.Shortcut{ID: id, Name: name})
	}
	return all
}

// printWelcome prints the addresses of the page and the terminal, and opens a browser if there is one.
func (d *live) printWelcome(ctx context.Context, out io.Writer) {
	attach, err := d.app.Core.Attach(ctx, sessions.AttachRequest{Ref: sessionRef})
	if err != nil {
		attach = []string{"#", err.Error()}
	}
	_, _ = fmt.Fprintf(out, `A Slack workspace, the bot and %s in tmux, all on this machine.

  page      %s
  terminal  %s

Three things to try on the page:
%s
Press Ctrl-C to stop it and remove everything.
`, d.options.Harness, d.page.URL(), shellescape.QuoteCommand(attach), numberedList(d.tips()))
	if !d.options.NoOpen {
		openBrowser(d.page.SingleUseURL(), d.options.Host.Getenv)
	}
}

// tips returns what the person is invited to try.
func (d *live) tips() []string {
	first := "Write a reply in the thread and watch it being typed into the terminal, once."
	if d.options.Harness == smallagent.Name {
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

// openBrowser opens a page in the operator's browser, if there is a display. The browser outlives the demo.
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

// shutdownTimeout bounds the end of a demo.
const shutdownTimeout = 40 * time.Second

// close stops the page, the bot and every session, and waits until the tmux server has exited.
func (d *live) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	defer d.app.close()
	var err error
	if d.page != nil {
		err = d.page.Close()
	}
	err = errors.Join(err, d.bot.stop(ctx))
	servers := map[int]bool{}
	recs, _, listErr := d.app.Registry.List(ctx)
	for _, rec := range recs {
		servers[rec.Server.PID] = true
	}
	stopped, stopErr := d.app.Core.StopAll(ctx)
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

// FixedSizeTmux is tmux with panes of the size that the page shows in legible letters.
type FixedSizeTmux struct{ *tmux.Tmux }

// The size of the demo's panes.
const (
	paneColumns = 76
	paneRows    = 20
)

// Spawn is [tmux.Tmux.Spawn] in the demo's size.
func (n FixedSizeTmux) Spawn(ctx context.Context, s sessions.Spawn) (sessions.Pane, error) {
	s.Width, s.Height = paneColumns, paneRows
	return n.Tmux.Spawn(ctx, s)
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
