package interact

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/bot/slack"
	"the-loop/bot/slack/lenientjson"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// Interaction is what a member did in Slack other than writing a message: a press of a button, a slash command, a modal, a shortcut.
type Interaction struct {
	Actor       authz.Actor // authorized before a handler sees it
	Name        string      // action_id, callback_id or the command with its slash
	Value       string      // of a button
	Text        string      // of a command: what follows it, decoded
	Channel     string
	Root        string // ts of the thread's root; empty: not in a thread
	TS          string // of the message that the button or the shortcut belongs to
	TriggerID   string // opens one modal within 3 s
	ResponseURL string // takes five answers within 30 minutes
	Payload     []byte // all of it, raw
	View        View   // the modal or Home tab in which it happened; zero: in neither

	runDetached func(func(context.Context)) // runs a function that may take longer than the ack
}

// Handler handles an interaction and returns the answer to the member; empty: none. An error is answered too, so it is written for
// people.
type Handler func(ctx context.Context, a Interaction) (answer string, err error)

// ViewHandler handles a submitted modal within two seconds. What it returns is sent with the ack: nil closes the modal, field errors are
// {"response_action":"errors","errors":{…}}.
type ViewHandler func(ctx context.Context, a Interaction) (ack any)

// CommandHandler answers slash commands.
type CommandHandler interface {
	HandleCommand(ctx context.Context, a Interaction) (answer string, err error)
}

// Slack is what the router needs of Slack.
type Slack interface {
	Self() slack.Self
	DecodeText(text string) string // as it was typed
	// Respond answers through a response URL, for the member alone.
	Respond(ctx context.Context, url, root, text string) error
	// PostEphemeral posts what only one member sees, in a thread when root is set.
	PostEphemeral(ctx context.Context, channel, root, user, text string, buttons ...chat.Button) error
}

// People looks members up.
type People interface {
	// ResolveActor completes an actor with what Slack knows of the member.
	ResolveActor(ctx context.Context, a authz.Actor) (authz.Actor, slack.Person, error)
}

// InteractionRouterOptions are what an [InteractionRouter] is made of. Slack, People, Policy and Sink are required.
type InteractionRouterOptions struct {
	Slack    Slack
	People   People
	Policy   func() authz.Policy
	Sink     sessions.Sink
	Commands CommandHandler // nil: commands are not answered
	// OnHomeDenied handles the Home tab of a member who is not authorized. It must reveal nothing.
	OnHomeDenied func(ctx context.Context, a Interaction)
	// AnswerInView shows an answer in the modal or the Home tab of an interaction, which has no channel to answer in.
	AnswerInView func(ctx context.Context, a Interaction, text string) error
	Timeout      time.Duration // of one handler; default one minute
	Log          *slog.Logger  // nil: silent
}

// InteractionRouter authorizes interactions, runs their handlers concurrently, and answers so that only the member sees it. An
// unauthorized member gets no answer; the event log has the drop, and the bot's log the member.
//
// Handlers are registered before the first envelope.
type InteractionRouter struct {
	o         InteractionRouterOptions
	actions   map[string]Handler
	shortcuts map[string]Handler
	views     map[string]ViewHandler
	home      Handler

	slots chan struct{}
	wg    sync.WaitGroup
}

const (
	maxConcurrentInteractions = 16
	// viewAckTimeout is how long the handler of a submitted modal may take: Slack waits 3 s for the ack.
	viewAckTimeout = 2 * time.Second
)

// NewInteractionRouter returns a router without handlers but that of commands.
func NewInteractionRouter(o InteractionRouterOptions) *InteractionRouter {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &InteractionRouter{o: o, actions: map[string]Handler{}, shortcuts: map[string]Handler{}, views: map[string]ViewHandler{},
		slots: make(chan struct{}, maxConcurrentInteractions)}
}

// OnAction registers the handler of a button by its action_id.
func (r *InteractionRouter) OnAction(id string, h Handler) { r.actions[id] = h }

// OnShortcut registers the handler of a message or global shortcut by its callback_id.
func (r *InteractionRouter) OnShortcut(callback string, h Handler) { r.shortcuts[callback] = h }

// OnView registers the handler of a submitted modal by its callback_id.
func (r *InteractionRouter) OnView(callback string, h ViewHandler) { r.views[callback] = h }

// OnHome registers the handler of an opened Home tab.
func (r *InteractionRouter) OnHome(h Handler) { r.home = h }

// OnResend registers the buttons that send replies again or skip them.
func (r *InteractionRouter) OnResend(resender Resender) {
	resend := func(ctx context.Context, a Interaction) (string, error) {
		return resender.Resend(ctx, threads.ResendChoice{Token: a.Value, Action: a.Name, Actor: a.Actor, TS: a.TS})
	}
	r.OnAction(chat.ActionSend, resend)
	r.OnAction(chat.ActionSkip, resend)
}

// Wait returns when every interaction has been handled.
func (r *InteractionRouter) Wait() { r.wg.Wait() }

// HandleInteraction implements [slack.InteractionHandler].
func (r *InteractionRouter) HandleInteraction(ctx context.Context, e slack.Envelope) {
	p := lenientjson.Parse(e.Payload)
	a := parseInteraction(r.o.Slack, e, p)
	a.runDetached = func(f func(context.Context)) { r.run(ctx, f) }
	if e.AckWith != nil {
		r.run(ctx, func(ctx context.Context) { e.AckWith(r.handleView(ctx, a)) })
		return
	}
	h := r.handlerFor(e.Type, p.Str("type"), a.Name)
	if h == nil {
		r.o.Log.Debug("ignored an interaction", "type", cmp.Or(p.Str("type"), e.Type), "name", a.Name)
		return
	}
	r.run(ctx, func(ctx context.Context) { r.authorizeAndRun(ctx, a, h) })
}

// HandleHomeOpened implements [slack.InteractionHandler].
func (r *InteractionRouter) HandleHomeOpened(ctx context.Context, h slack.HomeOpened) {
	a := Interaction{Actor: authz.Actor{User: h.User}, Name: "app_home_opened", Value: h.Tab, Channel: h.Channel}
	if r.home == nil {
		return
	}
	r.run(ctx, func(ctx context.Context) {
		if r.authorize(ctx, &a) {
			r.runHandler(ctx, a, r.home)
		} else if r.o.OnHomeDenied != nil {
			r.o.OnHomeDenied(ctx, a)
		}
	})
}

func (r *InteractionRouter) handlerFor(envelope, kind, name string) Handler {
	switch {
	case envelope == slack.EnvelopeCommand && r.o.Commands != nil:
		return r.o.Commands.HandleCommand
	case kind == "block_actions":
		return r.actions[name]
	case kind == "message_action" || kind == "shortcut":
		return r.shortcuts[name]
	}
	return nil
}

// run runs f in a goroutine, a limited number at once.
func (r *InteractionRouter) run(ctx context.Context, f func(context.Context)) {
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
		defer cancel()
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
			f(ctx)
		case <-ctx.Done():
		}
	})
}

// authorize decides whether the actor may act. An actor whom the payload alone does not exclude is looked up: payloads do not tell of
// bots and deactivated members, and not always of the team.
func (r *InteractionRouter) authorize(ctx context.Context, a *Interaction) bool {
	decision, reason := r.o.Policy().Authorize(a.Actor)
	if decision == authz.Allowed || a.Actor.Team == "" {
		actor, _, err := r.o.People.ResolveActor(ctx, a.Actor)
		if err != nil {
			r.o.Log.Warn("cannot look up a member", "member", a.Actor.User, "error", err)
		}
		a.Actor = actor
		decision, reason = r.o.Policy().Authorize(a.Actor)
	}
	if decision == authz.Allowed {
		return true
	}
	why := slack.DropUnauthorized
	if decision == authz.Suspended || decision == authz.SuspendedUnlisted {
		why = slack.DropConfigInvalid
	}
	r.o.Log.Warn("refused an interaction", "member", a.Actor.User, "team", a.Actor.Team, "because", reason, "action", a.Name)
	r.emitDropped(ctx, *a, why)
	return false
}

// emitDropped emits that an interaction was refused. Nothing is answered.
func (r *InteractionRouter) emitDropped(ctx context.Context, a Interaction, why string) {
	r.o.Sink.Emit(ctx, sessions.Event{Name: threads.EventDropped, Level: slog.LevelInfo, Fields: map[string]any{
		"reason": why, "channel": a.Channel, "thread": a.Root, "ts": a.TS, "user": a.Actor.User, "act": a.Name}})
}

func (r *InteractionRouter) authorizeAndRun(ctx context.Context, a Interaction, h Handler) {
	if r.authorize(ctx, &a) {
		r.runHandler(ctx, a, h)
	}
}

// runHandler runs the handler of an authorized interaction, and answers.
func (r *InteractionRouter) runHandler(ctx context.Context, a Interaction, h Handler) {
	answer, err := h(ctx, a)
	if errors.Is(err, threads.ErrDenied) { // removed from the list meanwhile
		r.emitDropped(ctx, a, slack.DropUnauthorized)
		return
	}
	if err != nil {
		r.o.Log.Warn("an interaction failed", "name", a.Name, "member", a.Actor.User, "error", err)
		answer = cmp.Or(answer, failed(err))
	}
	if answer != "" {
		r.sendAnswer(ctx, a, answer)
	}
}

// sendAnswer answers the member: through the response URL, or in the channel when there is none or it is used up.
func (r *InteractionRouter) sendAnswer(ctx context.Context, a Interaction, text string) {
	if a.View.ID != "" || a.Channel == "" {
		if r.o.AnswerInView == nil {
			return
		}
		if err := r.o.AnswerInView(ctx, a, text); err != nil {
			r.o.Log.Warn("cannot answer", "name", a.Name, "view", a.View.Kind, "error", err)
		}
		return
	}
	if a.ResponseURL != "" {
		err := r.o.Slack.Respond(ctx, a.ResponseURL, a.Root, text)
		if err == nil {
			return
		}
		r.o.Log.Info("cannot use the response URL; answering in the channel", "name", a.Name, "error", err)
	}
	if err := r.o.Slack.PostEphemeral(ctx, a.Channel, a.Root, a.Actor.User, text); err != nil {
		r.o.Log.Warn("cannot answer", "name", a.Name, "channel", a.Channel, "error", err)
	}
}

// handleView returns what a submitted modal is acked with.
func (r *InteractionRouter) handleView(ctx context.Context, a Interaction) any {
	ctx, cancel := context.WithTimeout(ctx, viewAckTimeout)
	defer cancel()
	if h := r.views[a.Name]; r.authorize(ctx, &a) && h != nil {
		return h(ctx, a)
	}
	return nil
}
