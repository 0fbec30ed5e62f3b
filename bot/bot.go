package bot

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/bot/command"
	"the-loop/bot/interact"
	"the-loop/bot/reconcile"
	"the-loop/bot/slack"
	"the-loop/bot/slack/socket"
	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/threads"
)

// Config is what the configuration says of Slack.
type Config struct {
	Channel     string   // where sessions without a channel of their own are announced
	AllowShared bool     // announce also where another organisation can read
	Users       []string // member ids that are authorized
	Suspended   bool     // the configuration does not validate: nobody is authorized, replies wait
	Settings    threads.Settings

	Create         command.Limits // of what may be created from Slack
	Harnesses      []string       // the known ones, in the order in which they are offered
	DefaultHarness string         // of a session that names none
	DefaultCwd     string         // absolute; of a session that names none
}

// Options are what a [Bot] is made of. All fields but the marked ones are required.
type Options struct {
	Root     string // the state's root folder
	Client   *slack.Client
	Core     *core.Core
	Sink     sessions.Sink
	Config   func() Config         // the current configuration
	Changed  <-chan struct{}       // optional: receives when records or the configuration changed
	OnStatus func(Status)          // optional: called when the status changes, every few seconds, and at the end
	Ready    func()                // optional: called once, when the bot handles replies
	Scrub    func(string) string   // optional: removes secrets from every text that is sent
	Socket   func(*socket.Options) // optional: changes the options of the connection
	Log      *slog.Logger          // optional: silent

	RemindAfter    time.Duration // optional: how long an agent waits for its operator before its thread says so; default a minute
	ScreenInterval time.Duration // optional: how often screens are read for dialogs that no hook reports; default 15 s
}

// Status is the state of the bot.
type Status struct {
	Self    slack.Self
	Socket  socket.State
	Threads threads.Status
	Problem string // what keeps the bot from its work; empty: nothing
}

// Bot is the Slack surface: one connection, the threads and the announcements.
type Bot struct {
	o            Options
	threads      *threads.Manager
	socket       *socket.Socket
	interactions *interact.InteractionRouter
	actions      *command.Actions
	commands     *command.Commands
	announcer    *reconcile.Announcer
	home         *interact.HomeTabs
	transcripts  *reconcile.TranscriptWatcher
	screens      *reconcile.ScreenWatcher
	driftNotice  *reconcile.DriftNotice
	sharing      *slack.SharingGuard
	reporter     *statusReporter
	rawConfig    func() Config // the configuration as it is written, with channel ids that may be old
}

// New returns a bot. It reads the bindings and starts nothing.
func New(o Options) (*Bot, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	b := &Bot{rawConfig: o.Config}
	o.Config = b.config
	b.o = o
	var err error
	if b.threads, err = b.newThreads(); err != nil {
		return nil, err
	}
	b.sharing = b.newSharingGuard()
	b.newReconcilers()
	o.Client.SetHooks(b.clientHooks())
	b.actions = b.newActions()
	b.commands = command.New(command.Options{Actions: b.actions, Restarter: b.driftNotice, Poster: o.Client, Channels: channels{b}, Health: b.health, Log: o.Log})
	b.interactions, b.home = b.newInteractions()
	router := slack.NewEventRouter(slack.EventRouterOptions{Client: o.Client, Threads: b.threads, CatchUpAll: b.threads.CatchUpAll, Interactions: b.interactions,
		OnDropped: emitDropped(o.Sink), OnChannelEvent: b.onChannelEvent, Log: o.Log})
	if o.OnStatus == nil {
		o.OnStatus = func(Status) {}
	}
	b.reporter = newStatusReporter(b.currentStatus, o.OnStatus)
	options := socket.Options{API: o.Client, Router: router, CatchUps: catchUpHandler{b}, Recorder: connectionRecorder{o.Sink}, Log: o.Log, Changed: b.reporter.wake}
	if o.Socket != nil {
		o.Socket(&options)
	}
	b.socket = socket.New(options)
	return b, nil
}

// newThreads returns the threads over the client and the core.
func (b *Bot) newThreads() (*threads.Manager, error) {
	o := b.o
	texts := reconcile.Texts{Scrub: b.scrub}
	return threads.New(threads.Options{Root: o.Root, Agent: o.Core, Reports: o.Core, Commander: mentions{b}, History: o.Client,
		Reactions: o.Client, Poster: o.Client, StatusSetter: o.Client, ScreenReader: o.Core,
		Fetcher: o.Client, FileUploader: o.Client, Folders: o.Core, Sink: o.Sink, Policy: b.Policy, Log: o.Log, RenderAnswer: texts.Answer,
		Clock: o.Client.Clock(), Channels: o.Client,
		RemindAfter: o.RemindAfter, PermissionText: texts.Permission, DialogText: texts.Dialog,
		IsSecret: func(text string) bool { return b.scrub(text) != text },
		Settings: func() threads.Settings { return o.Config().Settings }})
}

// Policy says who is authorized now. Until Slack has said which team is ours, it is suspended.
func (b *Bot) Policy() authz.Policy {
	self, cfg := b.o.Client.Self(), b.o.Config()
	return authz.Policy{Users: cfg.Users, Team: self.Team, Enterprise: self.Enterprise, Suspended: cfg.Suspended || self.Team == ""}
}

// Run runs the bot until ctx ends (then it returns nil) or Slack refuses a token for good (then a [*slack.FatalError]). What a
// crash left is settled first, also while Slack cannot be reached.
func (b *Bot) Run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	b.o.Sink.Emit(ctx, sessions.Event{Name: EventStarted, Level: slog.LevelInfo})
	defer b.o.Sink.Emit(context.WithoutCancel(ctx), sessions.Event{Name: EventStopped, Level: slog.LevelInfo})
	var wg sync.WaitGroup
	wg.Go(func() { b.threads.Run(running) })
	wg.Go(func() { b.reporter.run(running) })
	wg.Go(func() { b.transcripts.Run(running) })
	wg.Go(func() { b.screens.Run(running) })
	if b.o.Ready != nil {
		b.o.Ready()
	}
	err := b.socket.Identify(running)
	if err == nil {
		wg.Go(func() { b.announcer.Run(running) })
		wg.Go(func() { b.driftNotice.Run(running) })
		wg.Go(func() { b.sharing.Run(running) })
		err = b.socket.Run(running)
		b.interactions.Wait()
	}
	stop()
	wg.Wait()
	b.reporter.send()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// StatusChanged has [Options.OnStatus] called: something changed that the bot does not know of itself.
func (b *Bot) StatusChanged() { b.reporter.wake() }

// onTokenChange logs that Slack refuses the bot token, or accepts it again.
func (b *Bot) onTokenChange() {
	if why := b.o.Client.TokenProblem(); why != "" {
		b.o.Log.Error("Slack refuses the bot token", "because", why)
	} else {
		b.o.Log.Info("Slack accepts the bot token again")
	}
	b.StatusChanged()
}

// currentStatus is the present state of the bot.
func (b *Bot) currentStatus() Status {
	return Status{Self: b.o.Client.Self(), Socket: b.socket.State(), Threads: b.threads.Status(),
		Problem: cmp.Or(b.o.Client.TokenProblem(), b.problem())}
}

// catchUpHandler recovers what was missed: threads are read again, and announcements that failed are tried again.
type catchUpHandler struct{ b *Bot }

// Connected implements [socket.CatchUps].
func (c catchUpHandler) Connected(alone bool) {
	c.b.threads.Connected(alone)
	c.b.announcer.Retry()
}

// CatchUpAll implements [socket.CatchUps].
func (c catchUpHandler) CatchUpAll() { c.b.threads.CatchUpAll() }

// onChannelEvent handles what happened to the app or to a channel.
func (b *Bot) onChannelEvent(n slack.ChannelEvent) {
	switch n.Kind {
	case slack.ChannelIsShared:
		b.sharing.OnSharedEvent(n.Channel)
		return
	case slack.ChannelMemberJoined:
		b.sharing.Invalidate(n.Channel, false)
		return
	}
	b.o.Log.Warn("the app or a channel changed", "what", n.Kind, "channel", n.Channel, "renamed", n.NewID)
	if n.Kind == slack.ChannelIDChanged {
		b.threads.ChannelMoved(n.Channel, n.NewID, n.TS)
	}
	if n.Channel != "" {
		b.sharing.Invalidate(n.Channel, n.Kind == slack.ChannelSharingChanged || n.Kind == slack.ChannelRenamed)
		b.threads.ChannelOpened(n.Channel)
	}
	b.announcer.Retry()
}

// problem is what keeps the bot from its work, in words; empty: nothing.
func (b *Bot) problem() string {
	var all []string
	if why := b.announcer.Problem(); why != "" && !strings.Contains(why, "is shared with another organisation") {
		all = append(all, why)
	}
	if why := b.threads.Status().Unstored; why != "" {
		all = append(all, fmt.Sprintf("the bot cannot write to its disk (%s), so replies wait: free some space", why))
	}
	return strings.Join(append(all, b.sharingProblems()...), "; ")
}
