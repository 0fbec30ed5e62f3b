package localslack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"the-loop/bot/localslack/slacktime"
)

// RateLimits says whether Slack's rate limits hold.
type RateLimits int

const (
	// RateLimitsStrict is Slack's own: one message a second and channel, and a tier per method.
	RateLimitsStrict RateLimits = iota
	// RateLimitsOff lets bulk tests call as fast as they can.
	RateLimitsOff
)

// Options of a workspace. The zero value is a usable workspace on the real clock with Slack's limits.
type Options struct {
	Clock      slacktime.Clock // nil: the real one
	TeamID     string          // T…
	TeamDomain string
	BotName    string // what people type after the @; default "the-loop"
	BotToken   string // default: a generated xoxb-…
	AppToken   string // default: a generated xapp-1-A…
	Log        *slog.Logger
	Host       string       // listen address, a loopback one; default 127.0.0.1:0
	Listener   net.Listener // instead of one on Host, e.g. in memory; its address is a loopback one
	RateLimits RateLimits

	Scopes    []string // of the bot token; nil: all that the methods need
	AppScopes []string // of the app token; nil: connections:write
	Events    []string // bot events subscribed to, such as message.channels; nil: all
	Commands  []string // registered slash commands, with the slash; nil: any
	Shortcuts []string // registered callback ids; nil: any

	// RawCommands leaves @name and #channel in a command's text as typed (should_escape: false in the manifest).
	RawCommands bool
	// AutoUnfurl edits a message with a link right after it was posted, as Slack does when it adds a preview.
	AutoUnfurl bool
	// MessageReplied also sends the hidden message_replied event on a thread's parent. Slack does so at times.
	MessageReplied bool
	// RepliesNewestFirst pages conversations.replies from the newest replies to the oldest, which clients have met; Slack
	// documents the other way round. Within a page the order is the same: the root, then the replies as they were written.
	RepliesNewestFirst bool
	// AutoDisable turns events off as Slack does when under 5 % of at least 20 deliveries within an hour were acked.
	AutoDisable bool
	// NoHome has no Home tab: views.publish answers not_enabled. NoInteractivity sends no clicks, modals and shortcuts.
	NoHome, NoInteractivity bool
	// NoMessages has no Messages tab: a direct message of the app's is messages_tab_disabled.
	NoMessages bool
	// NoAssistant answers assistant.threads.* with feature_disabled, as workspaces without AI features do.
	NoAssistant bool

	ConnectionLifetime time.Duration // until Slack refreshes a connection, by Clock; default 18060 s
	PingEvery          time.Duration // WebSocket pings, by the real clock; default 5 s
	FrameLog           int           // how many frames are kept; default 4096
	RequestLog         int           // how many InjectAPI calls are kept; default 16384
	Seed               uint64        // of the random choice among sockets and of Shuffle
}

// Workspace is one Slack workspace with one app installed in it. Its methods are safe for concurrent use. Start owns
// the listener and all goroutines; Close ends them.
type Workspace struct {
	*API

	wg     sync.WaitGroup
	cancel context.CancelFunc
	server *http.Server
	closed bool // guarded by the store's mu
}

// New makes a workspace. It does nothing until Start.
func New(opts Options) *Workspace {
	return &Workspace{API: newAPI(newFeed(newHub(newStore(withDefaults(opts)))))}
}

func withDefaults(o Options) Options {
	setDefault(&o.Clock, slacktime.Clock(slacktime.RealClock{}))
	setDefault(&o.Log, slog.New(slog.NewTextHandler(io.Discard, nil)))
	setDefault(&o.TeamID, "T0LOCALWS1")
	setDefault(&o.TeamDomain, "local-workspace")
	setDefault(&o.BotName, "the-loop")
	setDefault(&o.BotToken, "xoxb-100000000001-100000000002-LocalWorkspaceBotToken00")
	setDefault(&o.AppToken, "xapp-1-A0LOCALAPP1-100000000003-0123456789abcdef0123456789abcdef")
	setDefault(&o.Host, "127.0.0.1:0")
	setDefault(&o.ConnectionLifetime, 18060*time.Second)
	setDefault(&o.PingEvery, 5*time.Second)
	setDefault(&o.FrameLog, 4096)
	setDefault(&o.RequestLog, 16384)
	if o.Scopes == nil {
		o.Scopes = allScopes()
	}
	if o.AppScopes == nil {
		o.AppScopes = []string{"connections:write"}
	}
	return o
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Start listens and serves until ctx ends or Close is called.
func (w *Workspace) Start(ctx context.Context) error {
	ln, err := w.opts.Listener, error(nil)
	if ln == nil {
		ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp", w.opts.Host)
	}
	if err != nil {
		return fmt.Errorf("listen for the workspace: %w", err)
	}
	if addr, ok := ln.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("listen for the workspace: %s is not a loopback address", w.opts.Host), ln.Close())
	}
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return errors.Join(errors.New("start the workspace: it was started before"), ln.Close())
	}
	w.started = true
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.baseURL = "http://" + ln.Addr().String()
	w.server = w.newServer()
	w.mu.Unlock()
	w.wg.Go(func() { w.sched.Run(w.ctx.Done()) })
	w.wg.Go(func() { _ = w.server.Serve(ln) }) // ends with ErrServerClosed
	w.wg.Go(func() { <-w.ctx.Done(); w.shutdown() })
	return nil
}

// Close ends every connection at once and waits for every goroutine.
func (w *Workspace) Close() error {
	w.mu.Lock()
	started := w.started
	w.mu.Unlock()
	if !started {
		return nil
	}
	w.cancel()
	w.wg.Wait()
	return nil
}

func (w *Workspace) shutdown() {
	w.mu.Lock()
	w.closed = true
	conns := append([]*conn(nil), w.conns...)
	w.notify()
	w.mu.Unlock()
	for _, c := range conns {
		c.terminate()
	}
	_ = w.server.Close()
}

// enter registers a handler that Close waits for. It says no once the workspace is closed.
func (w *Workspace) trackHandler() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.wg.Add(1)
	return true
}

// APIURL is the base of the Web InjectAPI, with the trailing slash that clients want.
func (w *Base) APIURL() string { return w.baseURL + "/api/" }

// URL is the base of everything the workspace serves, without a trailing slash.
func (w *Base) URL() string { return w.baseURL }

// BotToken is the token of the installed app, xoxb-….
func (w *Base) BotToken() string { return w.opts.BotToken }

// AppToken is the app-level token, xapp-1-A….
func (w *Base) AppToken() string { return w.opts.AppToken }

// BotUserID is the bot's member id, U….
func (w *Base) BotUserID() string { return w.botUser }

// BotID is the bot's id in messages, B….
func (w *Base) BotID() string { return w.botID }

// BotName is what people type after the @ to mention the bot.
func (w *Base) BotName() string { return w.opts.BotName }

// AppID is the app's id, A….
func (w *Base) AppID() string { return w.appID }

// TeamID is the workspace's id, T….
func (w *Base) TeamID() string { return w.opts.TeamID }

// Now is the workspace's time.
func (w *Base) Now() time.Time { return w.clock.Now() }

// Faults is the script of what goes wrong.
func (w *Hub) Faults() *Faults { return w.faults }

// RevokeToken makes every later use of a token fail with a Slack error such as token_revoked, invalid_auth or
// account_inactive; an empty error makes it valid again.
func (w *API) RevokeToken(token, slackError string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokenErrors[token] = slackError
}
