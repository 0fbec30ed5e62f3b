package bot

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads"
)

// Core is what the surface asks of the core beside talking to sessions.
type Core interface {
	Verbs
	threads.Agent
	threads.ReportReader
	threads.Folders
	threads.ScreenReader
	Makers
	Viewers
	Rollers
	Keys(ctx context.Context, q sessions.KeysRequest) (sessions.KeysEffect, error)
}

// Verbs are the verbs on the sessions that there are.
type Verbs interface {
	Start(ctx context.Context, q sessions.StartRequest) (sessions.Row, error)
	Stop(ctx context.Context, q sessions.StopRequest) (sessions.Row, error)
	Restart(ctx context.Context, q sessions.RestartRequest) (sessions.Row, error)
}

// Makers make sessions and make them go away.
type Makers interface {
	Create(ctx context.Context, q sessions.CreateRequest) (sessions.Row, error)
	Delete(ctx context.Context, q sessions.DeleteRequest) (sessions.Row, error)
	Deletable(q sessions.DeleteRequest) error
}

// Viewers look at sessions.
type Viewers interface {
	List(ctx context.Context) ([]sessions.Row, error)
	Settled(ctx context.Context, q sessions.SettledRequest) (sessions.Row, error)
	Signs(ctx context.Context) (map[string]sessions.Sign, error)
	Screens
}

// Screens show what the terminals of sessions show.
type Screens interface {
	Peek(ctx context.Context, q sessions.PeekRequest) (sessions.Peeked, error)
	PeekANSI(ctx context.Context, q sessions.PeekRequest) (string, error)
}

// Config is what the configuration says of Slack.
type Config struct {
	Channel     string   // where sessions without a channel of their own are announced
	AllowShared bool     // announce also where another organisation can read
	Users       []string // member ids that are let in
	Suspended   bool     // the configuration does not validate at the moment: nobody is let in, replies wait
	Settings    threads.Settings

	Create         Limits   // of what may be created from Slack
	Harnesses      []string // names of those that are known, in the order in which they are offered
	DefaultHarness string   // of a session that names none
	DefaultCwd     string   // absolute; of a session that names none
}

// Options are what a [Bot] is made of. All fields but the marked ones are required.
type Options struct {
	Root    string // the state's root folder
	Client  *Client
	Core    Core
	Sink    sessions.Sink
	Config  func() Config        // the current configuration
	Changed <-chan struct{}      // optional: says that records or the configuration changed
	Report  func(Report)         // optional: called when how the bot is changes, every few seconds, and at its end
	Ready   func()               // optional: called once, when replies are being taken
	Scrub   func(string) string  // optional: takes the values of the environment out of a text; what is posted goes through it
	Socket  func(*SocketOptions) // optional: changes how long the connection waits for what
	Log     *slog.Logger         // optional: silent

	Patience time.Duration // optional: how long an agent may wait for its operator before its thread says so; a minute
	Looks    time.Duration // optional: how often screens are looked at for dialogs that no hook tells of; 15 s
}

// Report is how the bot is.
type Report struct {
	Self    Self
	Socket  State
	Threads threads.Status
	Problem string // what keeps sessions from being announced; empty: nothing
}

// Bot is the Slack surface at work: one connection, the threads, and the announcements.
type Bot struct {
	o          Options
	threads    *threads.Manager
	socket     *Socket
	announcer  *announcer
	home       *home
	listener   *listener
	rotation   *rotation
	sharing    *sharing
	reporter   *stateReporter
	configured func() Config // the configuration as it is written, with channel ids that may be old
	identified chan struct{}
}

// New makes a bot. It reads the bindings and starts nothing.
func New(o Options) (*Bot, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Looks == 0 {
		o.Looks = screensEvery
	}
	b := &Bot{configured: o.Config, identified: make(chan struct{})}
	o.Config = b.config
	b.o = o
	var err error
	b.threads, err = threads.New(threads.Options{Root: o.Root, Agent: o.Core, Reports: o.Core, Commander: commander{b}, History: o.Client,
		Reactions: o.Client, Poster: o.Client, StatusSetter: o.Client, ScreenReader: o.Core,
		Fetcher: o.Client, FileUploader: o.Client, Folders: o.Core, Sink: o.Sink, Policy: b.Policy, Log: o.Log, RenderAnswer: b.pages,
		Clock: o.Client.Clock(), Channels: o.Client,
		RemindAfter: o.Patience, PermissionText: b.askText, DialogText: b.dialogText,
		IsSecret: func(text string) bool { return b.scrubbed(text) != text },
		Settings: func() threads.Settings { return o.Config().Settings }})
	if err != nil {
		return nil, err
	}
	if o.Scrub != nil {
		o.Client.scrub.Store(&o.Scrub)
	}
	b.announcer, b.home, b.listener, b.rotation, b.sharing = newAnnouncer(b), newHome(b), newListener(b), newRotation(b), newSharing(b)
	guard := b.sharing.check
	o.Client.guard.Store(&guard)
	listed := func(id string) bool { return slices.Contains(o.Config().Users, id) }
	o.Client.listed.Store(&listed)
	doors := NewDoors(DoorsOptions{Client: o.Client, Policy: b.Policy, Sink: o.Sink, Log: o.Log, Commands: slash{b},
		Closed: b.home.closed, InView: b.inView})
	b.register(doors)
	in := NewInbound(InboundOptions{Client: o.Client, Threads: b.threads, Sink: o.Sink, Doors: doors, Notice: b.noticed, Log: o.Log})
	if o.Report == nil {
		o.Report = func(Report) {}
	}
	b.reporter = newStateReporter(b.state, o.Report)
	o.Client.refused.changed = b.tokenJudged
	socket := SocketOptions{Client: o.Client, Inbound: in, Doors: doors, CatchUps: catchUps{b}, Sink: o.Sink, Log: o.Log, Changed: b.reporter.poke}
	if o.Socket != nil {
		o.Socket(&socket)
	}
	b.socket = NewSocket(socket)
	return b, nil
}

// Policy is who is let in now. Until Slack has said which team is ours, nothing is decided.
func (b *Bot) Policy() authz.Policy {
	self, cfg := b.o.Client.Self(), b.o.Config()
	return authz.Policy{Users: cfg.Users, Team: self.Team, Enterprise: self.Enterprise, Suspended: cfg.Suspended || self.Team == ""}
}

// Run works until ctx ends (then it returns nil) or Slack refuses us for good (then a [*FatalError]). What a crash left
// is settled first, also while Slack cannot be reached.
func (b *Bot) Run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	b.o.Sink.Emit(ctx, sessions.Event{Name: EventStarted, Level: slog.LevelInfo})
	defer b.o.Sink.Emit(context.WithoutCancel(ctx), sessions.Event{Name: EventStopped, Level: slog.LevelInfo})
	var wg sync.WaitGroup
	wg.Go(func() { b.threads.Run(running) })
	wg.Go(func() { b.reporter.run(running) })
	wg.Go(func() { b.listener.run(running) })
	wg.Go(func() { b.watchScreens(running) })
	if b.o.Ready != nil {
		b.o.Ready()
	}
	err := b.identify(running)
	if err == nil {
		wg.Go(func() { b.announcer.run(running) })
		wg.Go(func() { b.rotation.start(running) })
		wg.Go(func() { b.sharing.run(running) })
		err = b.socket.Run(running)
	}
	stop()
	wg.Wait()
	b.socket.disconnected(context.WithoutCancel(ctx), cmp.Or(err, errStopped))
	b.reporter.say()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// identify asks Slack who we are until it says so. A token that Slack refuses here has never worked.
func (b *Bot) identify(ctx context.Context) error {
	for wait := newBackoff(b.socket.o); ; {
		asking, cancel := context.WithTimeout(ctx, b.socket.o.Step)
		_, err := b.o.Client.Identify(asking)
		cancel()
		if err == nil {
			return nil
		}
		if err, over := wait.judge(err, time.Now()); over {
			return err
		}
		b.socket.disconnected(ctx, err)
		b.o.Client.Close()
		d := wait.next(false, err)
		if wait.failures == 1 || wait.worthSaying() {
			b.o.Log.Warn("Slack cannot be reached; it is tried again", "err", err, "after", d.Round(time.Millisecond))
		}
		if !pause(ctx, d) {
			return ctx.Err()
		}
	}
}

// Changed says that something changed of what [Options.Report] tells, beside what the bot knows of itself.
func (b *Bot) Changed() { b.reporter.poke() }

// tokenJudged notes that Slack refuses the bot token, or takes it again.
func (b *Bot) tokenJudged() {
	if why := b.o.Client.refused.problem(); why != "" {
		b.o.Log.Error("Slack refuses the bot token", "because", why)
	} else {
		b.o.Log.Info("Slack takes the bot token again")
	}
	b.Changed()
}

// state is how the bot is now.
func (b *Bot) state() Report {
	return Report{Self: b.o.Client.Self(), Socket: b.socket.State(), Threads: b.threads.Status(),
		Problem: first(b.o.Client.refused.problem(), b.problem())}
}

// catchUps has what was missed made up for: threads are read again, and announcements that failed are tried again.
type catchUps struct{ b *Bot }

func (c catchUps) Connected(alone bool) {
	c.b.threads.Connected(alone)
	c.b.announcer.retry()
}

func (c catchUps) CatchUpAll()                  { c.b.threads.CatchUpAll() }
func (c catchUps) CatchUp(channel, root string) { c.b.threads.CatchUp(channel, root) }

// noticed takes what happened to the app or to a channel.
func (b *Bot) noticed(n Notice) {
	switch n.Kind {
	case NoticeShared:
		b.sharing.heardShared(n.Channel)
		return
	case NoticeMember:
		b.sharing.doubt(n.Channel, false)
		return
	}
	b.o.Log.Warn("Slack says that something changed", "what", n.Kind, "channel", n.Channel, "renamed", n.Renamed)
	if n.Kind == NoticeChannelID {
		b.threads.ChannelMoved(n.Channel, n.Renamed, n.TS)
	}
	if n.Channel != "" {
		b.sharing.doubt(n.Channel, n.Kind == NoticeSharing || n.Kind == NoticeRenamed)
		b.threads.ChannelOpened(n.Channel)
	}
	b.announcer.retry()
}

// problem is what keeps the bot from doing its work, in words; empty: nothing.
func (b *Bot) problem() string {
	var all []string
	if why := b.announcer.problem(); why != "" && !strings.Contains(why, "is shared with another organisation") {
		all = append(all, why)
	}
	if why := b.threads.Status().Unstored; why != "" {
		all = append(all, fmt.Sprintf("the bot's disk takes nothing (%s), so replies wait: make room on it", why))
	}
	return strings.Join(append(all, b.sharing.problems()...), "; ")
}
