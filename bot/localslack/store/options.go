package store

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"the-loop/bot/localslack/slacktime"
)

// allScopes are the bot scopes that some method of the workspace asks for.
func allScopes() []string {
	return strings.Fields(`app_mentions:read assistant:write channels:history channels:read chat:write commands
		files:read files:write groups:history groups:read im:history im:read im:write mpim:history mpim:read
		reactions:read reactions:write usergroups:read users:read`)
}

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
	RequestLog         int           // how many API calls are kept; default 16384
	Seed               uint64        // of the random choice among sockets and of Shuffle
}

// WithDefaults are the options with what was left out.
func WithDefaults(o Options) Options {
	SetDefault(&o.Clock, slacktime.Clock(slacktime.RealClock{}))
	SetDefault(&o.Log, slog.New(slog.NewTextHandler(io.Discard, nil)))
	SetDefault(&o.TeamID, "T0LOCALWS1")
	SetDefault(&o.TeamDomain, "local-workspace")
	SetDefault(&o.BotName, "the-loop")
	SetDefault(&o.BotToken, "xoxb-100000000001-100000000002-LocalWorkspaceBotToken00")
	SetDefault(&o.AppToken, "xapp-1-A0LOCALAPP1-100000000003-0123456789abcdef0123456789abcdef")
	SetDefault(&o.Host, "127.0.0.1:0")
	SetDefault(&o.ConnectionLifetime, 18060*time.Second)
	SetDefault(&o.PingEvery, 5*time.Second)
	SetDefault(&o.FrameLog, 4096)
	SetDefault(&o.RequestLog, 16384)
	if o.Scopes == nil {
		o.Scopes = allScopes()
	}
	if o.AppScopes == nil {
		o.AppScopes = []string{"connections:write"}
	}
	return o
}

// SetDefault sets a value that is zero.
func SetDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
