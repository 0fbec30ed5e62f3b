package bot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// Interaction is what somebody did in Slack other than writing: a press, a command, a modal, a shortcut.
type Interaction struct {
	Actor       authz.Actor // allowed already
	Name        string      // action_id, callback_id or the command with its slash
	Value       string      // of a button
	Text        string      // of a command: what follows it, decoded
	Channel     string
	Root        string  // ts of the thread's root, when it happened in a thread
	TS          string  // of the message that the button or the shortcut belongs to
	TriggerID   string  // opens one modal within 3 s
	ResponseURL string  // response URL; five answers within 30 minutes
	Payload     []byte  // all of it, raw
	View        viewRef // the modal or Home tab that it happened in, if it did

	runDetached func(func(context.Context)) // runs something beside, longer than the act may take
}

// Handler does what an act asks for and returns what the one who acted is told; nothing when that is empty. An error is
// told too, so it is in words for people.
type Handler func(ctx context.Context, a Interaction) (answer string, err error)

// ViewHandler takes a submitted modal. What it returns travels with the ack: nil closes the modal, field errors are
// {"response_action":"errors","errors":{…}}. It has two seconds.
type ViewHandler func(ctx context.Context, a Interaction) (answer any)

// CommandHandler answers slash commands.
type CommandHandler interface {
	HandleCommand(ctx context.Context, a Interaction) (answer string, err error)
}

// Resender settles the questions under which the buttons of package threads stand.
type Resender interface {
	Resend(ctx context.Context, d threads.ResendChoice) (answer string, err error)
}

// InteractionRouterOptions are what [Doors] are made of. Client, Policy and Sink are required.
type InteractionRouterOptions struct {
	Client   *slack.Client
	Policy   func() authz.Policy
	Sink     sessions.Sink
	Commands CommandHandler // nil: commands are not answered
	// OnHomeDenied is told of who opened the Home tab and was not let in. It may say one thing that reveals nothing.
	OnHomeDenied func(ctx context.Context, a Interaction)
	// AnswerInView shows an answer to an act in a modal or a Home tab, where there is no channel to answer in.
	AnswerInView func(ctx context.Context, a Interaction, text string)
	Timeout      time.Duration // of one handler; default one minute
	Log          *slog.Logger  // nil: silent
}

// Doors let acts in: each is judged by the one policy, run beside the others, and answered for the eyes of the one who
// acted. Whoever is not let in gets no answer; the event log has the drop, and the bot's log the member.
//
// Handlers are registered before the first envelope comes.
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
	// viewAckTimeout is what a submitted modal may take: Slack waits 3 s for the ack.
	viewAckTimeout = 2 * time.Second
)

// NewInteractionRouter makes doors that answer nothing but commands.
func NewInteractionRouter(o InteractionRouterOptions) *InteractionRouter {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &InteractionRouter{o: o, actions: map[string]Handler{}, shortcuts: map[string]Handler{}, views: map[string]ViewHandler{},
		slots: make(chan struct{}, maxConcurrentInteractions)}
}

// OnAction registers the handler of a button by its action_id.
func (d *InteractionRouter) OnAction(id string, h Handler) { d.actions[id] = h }

// OnShortcut registers the handler of a message or global shortcut by its callback_id.
func (d *InteractionRouter) OnShortcut(callback string, h Handler) { d.shortcuts[callback] = h }

// OnView registers the handler of a submitted modal by its callback_id.
func (d *InteractionRouter) OnView(callback string, h ViewHandler) { d.views[callback] = h }

// OnHome registers who is told that somebody opened the app's Home tab. The event app_home_opened must be subscribed to.
func (d *InteractionRouter) OnHome(h Handler) { d.home = h }

// OnResend registers who settles the questions of package threads.
func (d *InteractionRouter) OnResend(decider Resender) {
	decide := func(ctx context.Context, a Interaction) (string, error) {
		return decider.Resend(ctx, threads.ResendChoice{Token: a.Value, Action: a.Name, Actor: a.Actor, TS: a.TS})
	}
	d.OnAction(chat.ActionSend, decide)
	d.OnAction(chat.ActionSkip, decide)
}

// Wait returns when every act that was let in has been handled.
func (d *InteractionRouter) Wait() { d.wg.Wait() }

// HandleInteraction implements [slack.InteractionHandler].
func (d *InteractionRouter) HandleInteraction(ctx context.Context, e slack.Envelope) {
	p := slack.ParseObject(e.Payload)
	act := parseInteraction(d.o.Client, e, p)
	act.runDetached = func(f func(context.Context)) { d.run(ctx, f) }
	if e.AckWith != nil {
		d.run(ctx, func(ctx context.Context) { e.AckWith(d.handleView(ctx, act)) })
		return
	}
	h := d.handlerFor(e.Type, p.Str("type"), act.Name)
	if h == nil {
		d.o.Log.Debug("ignored an interaction", "type", cmp.Or(p.Str("type"), e.Type), "name", act.Name)
		return
	}
	d.run(ctx, func(ctx context.Context) { d.authorizeAndRun(ctx, act, h) })
}

// HandleHomeOpened implements [slack.InteractionHandler].
func (d *InteractionRouter) HandleHomeOpened(ctx context.Context, h slack.HomeOpened) {
	act := Interaction{Actor: authz.Actor{User: h.User}, Name: "app_home_opened", Value: h.Tab, Channel: h.Channel}
	if d.home == nil {
		return
	}
	d.run(ctx, func(ctx context.Context) {
		if d.authorize(ctx, &act) {
			d.runHandler(ctx, act, d.home)
		} else if d.o.OnHomeDenied != nil {
			d.o.OnHomeDenied(ctx, act)
		}
	})
}

func (d *InteractionRouter) handlerFor(envelope, kind, name string) Handler {
	switch {
	case envelope == slack.EnvelopeCommand && d.o.Commands != nil:
		return d.o.Commands.HandleCommand
	case kind == "block_actions":
		return d.actions[name]
	case kind == "message_action" || kind == "shortcut":
		return d.shortcuts[name]
	}
	return nil
}

// run runs f beside the dispatcher, a limited number at once.
func (d *InteractionRouter) run(ctx context.Context, f func(context.Context)) {
	d.wg.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
		defer cancel()
		select {
		case d.slots <- struct{}{}:
			defer func() { <-d.slots }()
			f(ctx)
		case <-ctx.Done():
		}
	})
}

// authorize judges. Whoever the payload does not turn away is looked up: it does not tell of bots and of those who are
// deactivated, and not always of the team.
func (d *InteractionRouter) authorize(ctx context.Context, a *Interaction) bool {
	verdict, reason := d.o.Policy().Authorize(a.Actor)
	if verdict == authz.Allowed || a.Actor.Team == "" {
		actor, _, err := d.o.Client.People().ResolveActor(ctx, a.Actor)
		if err != nil {
			d.o.Log.Warn("cannot tell who acted", "member", a.Actor.User, "error", err)
		}
		a.Actor = actor
		verdict, reason = d.o.Policy().Authorize(a.Actor)
	}
	if verdict == authz.Allowed {
		return true
	}
	why := slack.DropUnauthorized
	if verdict == authz.Suspended || verdict == authz.SuspendedUnlisted {
		why = slack.DropConfigInvalid
	}
	d.o.Log.Warn("not let in", "member", a.Actor.User, "team", a.Actor.Team, "because", reason, "tried", a.Name)
	d.emitDropped(ctx, *a, why)
	return false
}

// emitDropped records that an act was not let in. Nothing is answered.
func (d *InteractionRouter) emitDropped(ctx context.Context, a Interaction, why string) {
	d.o.Sink.Emit(ctx, sessions.Event{Name: threads.EventDropped, Level: slog.LevelInfo, Fields: map[string]any{
		"reason": why, "channel": a.Channel, "thread": a.Root, "ts": a.TS, "user": a.Actor.User, "act": a.Name}})
}

func (d *InteractionRouter) authorizeAndRun(ctx context.Context, a Interaction, h Handler) {
	if d.authorize(ctx, &a) {
		d.runHandler(ctx, a, h)
	}
}

// answer has an act done that was let in, and tells what came of it.
func (d *InteractionRouter) runHandler(ctx context.Context, a Interaction, h Handler) {
	answer, err := h(ctx, a)
	if errors.Is(err, threads.ErrDenied) { // taken off the list meanwhile
		d.emitDropped(ctx, a, slack.DropUnauthorized)
		return
	}
	if err != nil {
		d.o.Log.Warn("an act failed", "name", a.Name, "member", a.Actor.User, "error", err)
		answer = cmp.Or(answer, "That did not work: "+render.Escape(err.Error()))
	}
	if answer != "" {
		d.sendAnswer(ctx, a, answer)
	}
}

// tell answers the one who acted: through the response URL, or in the channel when there is none or it is used up.
func (d *InteractionRouter) sendAnswer(ctx context.Context, a Interaction, text string) {
	if a.View.ID != "" || a.Channel == "" {
		if d.o.AnswerInView != nil {
			d.o.AnswerInView(ctx, a, text)
		}
		return
	}
	if a.ResponseURL != "" {
		err := d.o.Client.Respond(ctx, a.ResponseURL, a.Root, text)
		if err == nil {
			return
		}
		d.o.Log.Info("cannot use the response URL; answering in the channel", "name", a.Name, "error", err)
	}
	if err := d.o.Client.PostEphemeral(ctx, a.Channel, a.Root, a.Actor.User, text); err != nil {
		d.o.Log.Warn("cannot answer", "name", a.Name, "channel", a.Channel, "error", err)
	}
}

// view is what a submitted modal is acked with.
func (d *InteractionRouter) handleView(ctx context.Context, a Interaction) any {
	ctx, cancel := context.WithTimeout(ctx, viewAckTimeout)
	defer cancel()
	if h := d.views[a.Name]; d.authorize(ctx, &a) && h != nil {
		return h(ctx, a)
	}
	return nil
}

// parseInteraction reads the payload of an interaction or a slash command.
func parseInteraction(c *slack.Client, e slack.Envelope, p slack.RawObject) Interaction {
	self := c.Self()
	if e.Type == slack.EnvelopeCommand {
		return parseCommandInteraction(c, e, p)
	}
	button := slack.RawObject{}
	if actions := p.Objects("actions"); len(actions) > 0 {
		button = actions[0]
	}
	container, msg, view := p.Obj("container"), p.Obj("message"), p.Obj("view")
	a := Interaction{
		Actor:       parseActor(self, p.Obj("user")),
		Name:        cmp.Or(button.Str("action_id"), p.Str("callback_id"), view.Str("callback_id")),
		Value:       button.Str("value"),
		Channel:     cmp.Or(p.Obj("channel").Str("id"), container.Str("channel_id")),
		Root:        cmp.Or(container.Str("thread_ts"), msg.Str("thread_ts")),
		TS:          cmp.Or(container.Str("message_ts"), p.Str("message_ts"), msg.Str("ts")),
		TriggerID:   p.Str("trigger_id"),
		ResponseURL: p.Str("response_url"),
		Payload:     e.Payload,
		View:        viewRef{ID: view.Str("id"), Kind: view.Str("type"), Meta: view.Str("private_metadata")},
	}
	return a
}

// parseActor is who acted. Only the member's own team counts, never the one of the workspace that it happened in.
func parseActor(self slack.Self, user slack.RawObject) authz.Actor {
	team := user.Str("team_id")
	if self.Enterprise != "" && team != self.Team {
		team = ""
	}
	return authz.Actor{User: user.Str("id"), Team: team, Bot: user.IsTrue("is_bot")}
}

func parseCommandInteraction(c *slack.Client, e slack.Envelope, p slack.RawObject) Interaction {
	self := c.Self()
	user := slack.RawObject{"id": p["user_id"], "team_id": p["team_id"]}
	return Interaction{Actor: parseActor(self, user), Name: p.Str("command"), Text: c.DecodeText(p.Str("text")),
		Channel: p.Str("channel_id"), TriggerID: p.Str("trigger_id"), ResponseURL: p.Str("response_url"), Payload: e.Payload}
}
