package interact

import (
	"context"
	"log/slog"
	"time"

	slackgo "github.com/slack-go/slack"

	"the-loop/authz"
	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/permission"
)

// Views shows modals and Home tabs.
type Views interface {
	OpenView(ctx context.Context, trigger string, view slackgo.ModalViewRequest) (id string, err error)
	// PushView opens a modal on top of the one that the trigger came from.
	PushView(ctx context.Context, trigger string, view slackgo.ModalViewRequest) (id string, err error)
	UpdateView(ctx context.Context, id string, view slackgo.ModalViewRequest) error
	PublishHome(ctx context.Context, user string, view slackgo.HomeTabViewRequest) error
}

// Permissions decides permission requests of agents.
type Permissions interface {
	// Decidable returns a request that can be decided now; else why not, for the member.
	Decidable(ctx context.Context, token string) (r permission.Request, why string, ok bool)
	DecidePermission(ctx context.Context, d threads.PermissionDecision) (answer string, err error)
}

// Resender answers the questions whether replies are sent again.
type Resender interface {
	Resend(ctx context.Context, c threads.ResendChoice) (answer string, err error)
}

// ThreadFinder finds the session of a thread.
type ThreadFinder interface {
	SessionAt(channel, root string) (id string, ref sessions.Ref, ok bool)
}

// StaleRestarter restarts the sessions with a stale environment.
type StaleRestarter interface {
	RestartStale(ctx context.Context, user string) (answer string, err error)
}

// SessionLister lists the sessions.
type SessionLister interface {
	List(ctx context.Context) ([]sessions.Row, error)
}

// Options are what the interactions are made of. All fields but Timeout are required.
type Options struct {
	Slack       Slack
	People      People
	Views       Views
	Actions     *command.Actions
	Commands    *command.Commands
	Permissions Permissions
	Resender    Resender
	Threads     ThreadFinder
	Restarter   StaleRestarter
	Sessions    SessionLister
	Policy      func() authz.Policy
	CreateForm  func() render.CreateForm // the form that creates sessions, now
	Problem     func() string            // what is wrong with the bot; empty: nothing
	Scrub       func(string) string      // removes the values of the environment from a text
	Sink        sessions.Sink
	Timeout     time.Duration // of one handler; default one minute
	Log         *slog.Logger
}

// New returns a router with the handlers of everything that the app offers, and the Home tabs that it keeps.
func New(o Options) (*InteractionRouter, *HomeTabs) {
	m := &modals{views: o.Views, scrub: o.Scrub, log: o.Log}
	home := &HomeTabs{o: o, tabs: map[authz.Actor]homeTabState{}}
	h := &handlers{o: o, modals: m}
	r := NewInteractionRouter(InteractionRouterOptions{Slack: o.Slack, People: o.People, Policy: o.Policy, Sink: o.Sink, Timeout: o.Timeout, Log: o.Log,
		Commands: h, OnHomeDenied: home.handleDenied, AnswerInView: func(ctx context.Context, a Interaction, text string) error {
			if a.View.Kind == kindHome {
				return home.publish(ctx, a.Actor, text)
			}
			return o.Views.UpdateView(ctx, a.View.ID, m.text(titleSession, text))
		}})
	h.register(r)
	r.OnHome(home.handleOpened)
	return r, home
}

// handlers handle the commands, buttons, shortcuts and modals of the app.
type handlers struct {
	o      Options
	modals *modals
}

// View is a modal or a Home tab that is open.
type View struct {
	ID   string
	Kind string // modal or home
	Meta string // private_metadata
}

// The kinds of views, as payloads name them.
const (
	kindModal = "modal"
	kindHome  = "home"
)

var _ slack.InteractionHandler = (*InteractionRouter)(nil)
