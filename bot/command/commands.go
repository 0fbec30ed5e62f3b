package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// Poster posts answers.
type Poster interface {
	// Post posts a message for everybody in its channel.
	Post(ctx context.Context, p chat.Post) (ts string, err error)
	// PostEphemeral posts what only one member sees, in a thread when root is set.
	PostEphemeral(ctx context.Context, channel, root, user, text string, buttons ...render.Button) error
}

// Channels knows who reads a channel.
type Channels interface {
	Announces(channel string) bool                     // sessions are announced there
	IsShared(ctx context.Context, channel string) bool // another organisation reads there, and must not read of sessions
}

// Restarter restarts every running session onto the declared environment.
type Restarter interface {
	RestartAll(ctx context.Context, user string, dryRun bool) (answer string, err error)
}

// Prompter asks a member for more than a command line holds.
type Prompter interface {
	OpenCreateForm(ctx context.Context) error
	// ConfirmDelete asks whether to delete the session; handle is its id or its ref.
	ConfirmDelete(ctx context.Context, handle string) error
}

// Options are what [Commands] are made of. All fields are required.
type Options struct {
	Actions   *Actions
	Restarter Restarter
	Poster    Poster
	Channels  Channels
	Health    func() string // the state of the bot, in a few lines
	Log       *slog.Logger
}

// Commands runs commands.
type Commands struct{ o Options }

// New returns the commands over what they need.
func New(o Options) *Commands { return &Commands{o} }

// Call is one command that a member gave.
type Call struct {
	Command  chat.Command
	Prefix   string // of a slash command: its own name, with the slash
	Role     Role   // of the member
	User     string // id of the member
	Channel  string
	Session  string // id of the session in whose thread it was given; empty: it is a slash command
	Ref      sessions.Ref
	Prompter Prompter
}

func (c Call) place() place {
	if c.Session != "" {
		return inThread
	}
	return inSlash
}

// Answer is what a member is told. An empty text says nothing.
type Answer struct {
	Text    string
	Private bool // for the member alone, also in a thread
}

// invocation is a call with its arguments.
type invocation struct {
	Call
	args args
}

// Run runs a command. One that is not understood changes nothing, and is answered with its usage.
func (c *Commands) Run(ctx context.Context, call Call) (Answer, error) {
	v := find(call.Command.Verb, call.place())
	switch {
	case call.Role < Member:
		return Answer{}, errors.New("commands are for authorized members")
	case v == nil || v.run == nil:
		return c.help(ctx, invocation{Call: call})
	case call.Role < v.who:
		return Answer{}, fmt.Errorf("you may not use %s", v.name)
	}
	in := invocation{Call: call}
	var err error
	if !v.freeText {
		in.args, err = parseArgs(call.Command.Rest, v.flags)
	}
	var answer Answer
	if err == nil {
		answer, err = v.run(c, ctx, in)
	}
	if errors.Is(err, errUsage) {
		return Answer{Text: render.Escape(capitalize(err.Error())) + ".\n" + v.usageText(call.Prefix, call.place())}, nil
	}
	return answer, err
}

// target is the session that a command is about: the one that is named, or the thread's.
func (c *Commands) target(ctx context.Context, in invocation) (ref sessions.Ref, id string, err error) {
	if in.Session != "" {
		row, err := c.o.Actions.Find(ctx, in.Session)
		return row.Ref, row.ID, err
	}
	name, err := in.args.sessionName()
	if err != nil {
		return "", "", err
	}
	ref, err = parseRef(name)
	return ref, "", err
}

func (c *Commands) help(_ context.Context, in invocation) (Answer, error) {
	text := helpText(in.Prefix, in.place())
	if verb := in.Command.Verb; in.place() == inThread && verb != "" && verb != "help" {
		text = "I do not know " + render.InlineCode(verb) + ".\n" + text
	}
	return Answer{Text: text}, nil
}

func (c *Commands) list(ctx context.Context, _ invocation) (Answer, error) {
	rows, err := c.o.Actions.o.Sessions.List(ctx)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Text: render.SessionList(rows)}, nil
}

// status shows a thread its session. As a slash command it tells the channel the state of everything where sessions are announced;
// elsewhere, and where Slack refuses it, only the member is told.
func (c *Commands) status(ctx context.Context, in invocation) (Answer, error) {
	rows, err := c.o.Actions.o.Sessions.List(ctx)
	if err != nil {
		return Answer{}, err
	}
	drift := c.o.Actions.o.Sessions.Drift(ctx)
	if in.Session != "" {
		for _, r := range rows {
			if r.ID == in.Session {
				return Answer{Text: render.WithDrift(render.SessionLine(r), drift, r.ID)}, nil
			}
		}
		return Answer{Text: "This session was deleted."}, nil
	}
	text := render.WithDrift(c.o.Health()+"\n"+render.SessionList(rows), drift, "")
	if !c.o.Channels.Announces(in.Channel) || c.o.Channels.IsShared(ctx, in.Channel) {
		return Answer{Text: text}, nil
	}
	if _, err := c.o.Poster.Post(ctx, chat.Post{Channel: in.Channel, Text: text, Nonce: rand.Text()}); err != nil {
		c.o.Log.Info("could not post the status in the channel; only the member is told", "channel", in.Channel, "error", err)
		return Answer{Text: text}, nil
	}
	return Answer{}, nil
}

func (c *Commands) create(ctx context.Context, in invocation) (Answer, error) {
	if in.args.isEmpty() {
		return Answer{}, in.Prompter.OpenCreateForm(ctx)
	}
	name, err := in.args.sessionName()
	if err != nil {
		return Answer{}, err
	}
	text, err := c.o.Actions.Create(ctx, CreateRequest{Name: name, Harness: in.args.flags["harness"], Cwd: in.args.flags["cwd"],
		Brief: in.args.brief, NoStart: in.args.hasFlag("no-start")})
	return Answer{Text: text}, err
}

func (c *Commands) delete(ctx context.Context, in invocation) (Answer, error) {
	if in.Session != "" {
		return Answer{}, in.Prompter.ConfirmDelete(ctx, in.Session)
	}
	ref, _, err := c.target(ctx, in)
	if err != nil {
		return Answer{}, err
	}
	return Answer{}, in.Prompter.ConfirmDelete(ctx, string(ref))
}

func (c *Commands) changeState(ctx context.Context, in invocation) (Answer, error) {
	ref, id, err := c.target(ctx, in)
	if err != nil {
		return Answer{}, err
	}
	row, err := c.o.Actions.ChangeState(ctx, in.Command.Verb, ref, id)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Text: render.SessionLine(row)}, nil
}

// restart restarts one session, or with --all every running one.
func (c *Commands) restart(ctx context.Context, in invocation) (Answer, error) {
	all, dryRun := in.args.hasFlag("all"), in.args.hasFlag("dry-run")
	switch {
	case all && len(in.args.positional) > 0:
		return Answer{}, fmt.Errorf("%w: it takes either a name or --all", errUsage)
	case dryRun && !all:
		return Answer{}, fmt.Errorf("%w: --dry-run goes with --all", errUsage)
	case !all:
		return c.changeState(ctx, in)
	}
	text, err := c.o.Restarter.RestartAll(ctx, in.User, dryRun)
	return Answer{Text: text}, err
}

func (c *Commands) say(ctx context.Context, in invocation) (Answer, error) {
	rest := chat.ParseCommand(in.Command.Rest)
	if rest.Verb == "" || rest.Rest == "" {
		return Answer{}, fmt.Errorf("%w: it takes a name and a text", errUsage)
	}
	ref, err := parseRef(rest.Verb)
	if err != nil {
		return Answer{}, err
	}
	text, err := c.o.Actions.Send(ctx, in.User, ref, rest.Rest)
	return Answer{Text: text}, err
}

func (c *Commands) peek(ctx context.Context, in invocation) (Answer, error) {
	ref, _, err := c.target(ctx, in)
	if err != nil {
		return Answer{}, err
	}
	text, err := c.o.Actions.Peek(ctx, ref, in.User, in.args.hasFlag("share"))
	return Answer{Text: text, Private: true}, err
}

func (c *Commands) interrupt(ctx context.Context, in invocation) (Answer, error) {
	return c.pressKeys(ctx, in, sessions.KeysRequest{Interrupt: true}, "Interrupted.")
}

func (c *Commands) keys(ctx context.Context, in invocation) (Answer, error) {
	return c.pressKeys(ctx, in, sessions.KeysRequest{Keys: in.Command.Args}, "Pressed "+render.InlineCode(strings.Join(in.Command.Args, " "))+".")
}

// pressKeys presses keys in the thread's session. When they answered the agent, the thread is told whose they were.
func (c *Commands) pressKeys(ctx context.Context, in invocation, keys sessions.KeysRequest, text string) (Answer, error) {
	keys.Ref, keys.ID, keys.Actor = in.Ref, in.Session, in.User
	effect, err := c.o.Actions.o.Terminal.Keys(ctx, keys)
	switch {
	case err != nil:
		return Answer{}, err
	case effect == sessions.KeysDeny:
		text += fmt.Sprintf(" <@%s> denied what the agent asked for, or closed its menu.", in.User)
	case effect == sessions.KeysMode:
		text += fmt.Sprintf(" <@%s> changed what the agent may do without asking. `peek` shows its mode.", in.User)
	}
	return Answer{Text: text}, nil
}

// capitalize makes the first letter a capital.
func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
