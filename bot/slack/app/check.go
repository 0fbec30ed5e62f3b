package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"the-loop/authz"
	"the-loop/bot/slack"
	"the-loop/bot/slack/socket"
	"the-loop/threads/chat"
)

// CheckOptions say what is checked. Client and Channel are required.
type CheckOptions struct {
	Client      *slack.Client
	Channel     string // C…
	AllowShared bool
	Users       []string // member ids that are authorized
	// AwaitDrop waits until the drop of the message ts is in the event log. It is set when a bot runs on this root: Slack
	// sends each event to one of an app's connections, so a second one might not receive it.
	AwaitDrop func(ctx context.Context, channel, ts string) error
	Timeout   time.Duration // for the message to come back; default 15 s
	Log       *slog.Logger
}

// Finding is what one check found.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Names of the findings.
const (
	CheckBotToken      = "bot token"
	CheckAppToken      = "app token"
	CheckScopes        = "scopes"
	CheckChannel       = "channel"
	CheckUsers         = "users"
	CheckEventDelivery = "event delivery"
)

// Check checks the tokens, their scopes, the channel and the users, and that a message to itself arrives as an event. What depends
// on a failed check is skipped. It leaves nothing in the channel.
func Check(ctx context.Context, o CheckOptions) []Finding {
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Second
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	c := &checker{o: o}
	botOK := c.checkBotToken(ctx)
	appOK := c.checkAppToken(ctx)
	if !botOK {
		return c.findings
	}
	scopesOK := c.checkScopes()
	channelOK := c.checkChannel(ctx)
	c.checkUsers(ctx)
	if appOK && scopesOK && channelOK {
		c.checkEventDelivery(ctx)
	}
	return c.findings
}

type checker struct {
	o        CheckOptions
	self     slack.Self
	findings []Finding
}

func (c *checker) pass(name, detail string) bool {
	c.findings = append(c.findings, Finding{Name: name, OK: true, Detail: detail})
	return true
}

func (c *checker) fail(name, detail, remedy string) bool {
	c.findings = append(c.findings, Finding{Name: name, Detail: detail, Remedy: remedy})
	return false
}

// failWith is a finding of an error, with its remedy when it has one.
func (c *checker) failWith(name string, err error) bool {
	var f *slack.FatalError
	if errors.As(err, &f) {
		return c.fail(name, f.Code+withPrefix(" ", f.Needed), f.Remedy)
	}
	return c.fail(name, err.Error(), "try again; if it fails again, check that this machine can reach "+c.o.Client.Host())
}

func withPrefix(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func (c *checker) checkBotToken(ctx context.Context) bool {
	self, err := c.o.Client.AuthTest(ctx)
	if err != nil {
		return c.failWith(CheckBotToken, err)
	}
	if self.Bot == "" {
		return c.fail(CheckBotToken, "the token is a person's, not a bot's", "use the Bot User OAuth Token, xoxb-…")
	}
	c.self = self
	c.o.Client.SetSelf(self)
	return c.pass(CheckBotToken, fmt.Sprintf("@%s (%s) in %s (%s)", self.Name, self.User, self.TeamName, self.Team))
}

func (c *checker) checkAppToken(ctx context.Context) bool {
	if _, err := c.o.Client.OpenConnection(ctx); err != nil {
		return c.failWith(CheckAppToken, err)
	}
	return c.pass(CheckAppToken, "it opens Socket Mode connections")
}

func (c *checker) checkScopes() bool {
	if c.self.Scopes == nil {
		return c.pass(CheckScopes, "Slack did not say which the token has")
	}
	if missing := without(RequiredScopes(), c.self.Scopes); len(missing) > 0 {
		return c.fail(CheckScopes, "missing: "+strings.Join(missing, ", "),
			"add them in the app's settings (`the-loop slack manifest` lists them all), then reinstall the app")
	}
	missing := without(slices.Sorted(maps.Keys(optionalScopes)), c.self.Scopes)
	if len(missing) == 0 {
		return c.pass(CheckScopes, "all that are used are there")
	}
	detail := "all that are required are there"
	for _, s := range missing {
		detail += "; without " + s + " " + optionalScopes[s]
	}
	return c.pass(CheckScopes, detail)
}

// without are the strings of all that are not among some.
func without(all, some []string) (rest []string) {
	for _, s := range all {
		if !slices.Contains(some, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

func (c *checker) checkChannel(ctx context.Context) bool {
	ch, err := c.o.Client.ChannelInfo(ctx, c.o.Channel)
	if slack.ErrorCode(err) == "channel_not_found" {
		return c.fail(CheckChannel, c.o.Channel+" does not exist, or is private and the bot is not in it", c.inviteHint())
	}
	if err != nil {
		return c.failWith(CheckChannel, err)
	}
	name := "#" + ch.Name
	switch {
	case ch.Archived:
		return c.fail(CheckChannel, name+" is archived", "unarchive it, or set another channel in the config")
	case !ch.Member:
		return c.fail(CheckChannel, "the bot is not in "+name, c.inviteHint())
	case ch.Shared && !c.o.AllowShared:
		return c.fail(CheckChannel, name+" is shared with another organisation, which could read what agents say",
			"use another channel, or set channels.slack.allowSharedChannels: true")
	}
	return c.pass(CheckChannel, name)
}

func (c *checker) inviteHint() string {
	return fmt.Sprintf("write `/invite @%s` in the channel", c.self.Name)
}

func (c *checker) checkUsers(ctx context.Context) {
	if len(c.o.Users) == 0 {
		c.fail(CheckUsers, "the list is empty, so nobody is authorized", "add member ids to channels.slack.authorizedUsers")
		return
	}
	ok, names := true, []string{}
	for _, id := range c.o.Users {
		name, problem := c.checkUser(ctx, id)
		if problem != "" {
			ok = c.fail(CheckUsers, id+" "+problem, "correct channels.slack.authorizedUsers (a profile's ⋮ menu copies the member id)")
			continue
		}
		names = append(names, name)
	}
	if ok {
		c.pass(CheckUsers, strings.Join(names, ", "))
	}
}

// checkUser authorizes one member as the bot would.
func (c *checker) checkUser(ctx context.Context, id string) (name, problem string) {
	actor, person, err := c.o.Client.People().ResolveActor(ctx, authz.Actor{User: id})
	if err != nil {
		return "", "could not be looked up: " + err.Error()
	}
	policy := authz.Policy{Users: c.o.Users, Team: c.self.Team, Enterprise: c.self.Enterprise}
	switch verdict, reason := policy.Authorize(actor); {
	case verdict == authz.Allowed:
		return cmp.Or(person.Name, id), ""
	case person.ID == "":
		return "", "is no member of this workspace"
	case person.Deleted:
		return "", "is deactivated"
	default:
		return "", "is " + string(reason)
	}
}

const remedyEventDelivery = "nothing arrived: in the app's settings open Event Subscriptions and switch it on again (Slack switches it " +
	"off when a bot was away for long); is message.channels (for private channels message.groups) subscribed?"

// checkEventDelivery posts a root and a reply to it, and waits until the reply arrives as an event. The bot drops its own message,
// and the record of that is the proof.
func (c *checker) checkEventDelivery(ctx context.Context) {
	post := chat.Post{Channel: c.o.Channel, Text: "Connectivity check; this message will be deleted.", Nonce: "check-" + uuid.NewString()}
	root, err := c.o.Client.Post(ctx, post)
	if err != nil {
		c.failWith(CheckEventDelivery, err)
		return
	}
	defer c.deleteMessage(ctx, root)
	probe := newProbe(c.o.Channel, root)
	watch := c.o.AwaitDrop
	if watch == nil {
		listen, stop, err := c.openProbe(ctx, probe)
		if err != nil {
			c.failWith(CheckEventDelivery, err)
			return
		}
		defer stop()
		watch = listen
	}
	post.Root, post.Text, post.Nonce = root, "Connectivity check.", "check-"+uuid.NewString()
	began := time.Now()
	reply, err := c.o.Client.Post(ctx, post)
	if err != nil {
		c.failWith(CheckEventDelivery, err)
		return
	}
	defer c.deleteMessage(ctx, reply)
	c.awaitReply(ctx, watch, probe, reply, began)
}

func (c *checker) awaitReply(ctx context.Context, watch func(context.Context, string, string) error, p *probe, ts string, began time.Time) {
	waiting, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	err := watch(waiting, c.o.Channel, ts)
	switch others := p.connectionCount(); {
	case err == nil:
		c.pass(CheckEventDelivery, "a message came back after "+time.Since(began).Round(time.Millisecond).String())
	case others > 1:
		c.fail(CheckEventDelivery, fmt.Sprintf("nothing came back within %s; %d connections are open on this app, and each gets a part of the events",
			c.o.Timeout, others), "end the other bot of this app, then check again")
	default:
		c.fail(CheckEventDelivery, fmt.Sprintf("nothing came back within %s", c.o.Timeout), remedyEventDelivery)
	}
}

// deleteMessage deletes a message, also when the check was canceled.
func (c *checker) deleteMessage(ctx context.Context, ts string) {
	if err := c.o.Client.Delete(context.WithoutCancel(ctx), c.o.Channel, ts); err != nil {
		c.fail(CheckEventDelivery, "could not delete its own message: "+err.Error(), "delete it in Slack")
	}
}

// openProbe opens a connection of its own and waits for the hello.
func (c *checker) openProbe(ctx context.Context, p *probe) (watch func(context.Context, string, string) error, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	router := slack.NewEventRouter(slack.EventRouterOptions{Client: c.o.Client, Threads: noThreads{}, CatchUpAll: func() {}, OnDropped: p.onDropped, Log: c.o.Log})
	conn := socket.New(socket.Options{API: c.o.Client, Router: router, CatchUps: catchUps{p}, Recorder: unrecorded{}, Log: c.o.Log})
	p.socket = conn
	ran := make(chan error, 1)
	go func() { ran <- conn.Run(ctx) }()
	stop = func() { cancel(); <-ran }
	select {
	case <-p.connected:
		return p.awaitDrop, stop, nil
	case err = <-ran:
		ran <- nil
	case <-time.After(c.o.Timeout):
		err = fmt.Errorf("no connection within %s: %s", c.o.Timeout, conn.State().Problem)
	}
	stop()
	return nil, nil, err
}

// probe receives events on a connection of its own and sees which messages are dropped.
type probe struct {
	channel, root string
	connected     chan struct{}
	once          sync.Once
	socket        *socket.Socket
	changed       chan struct{}

	mu       sync.Mutex // guards the field that follows
	received map[string]bool
}

func newProbe(channel, root string) *probe {
	return &probe{channel: channel, root: root, connected: make(chan struct{}), changed: make(chan struct{}, 1), received: map[string]bool{}}
}

// onDropped records that a reply of the probe's thread came back.
func (p *probe) onDropped(_ context.Context, d slack.Dropped) {
	if d.Channel != p.channel || d.Thread != p.root {
		return
	}
	p.mu.Lock()
	p.received[d.TS] = true
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *probe) awaitDrop(ctx context.Context, _, ts string) error {
	for {
		p.mu.Lock()
		seen := p.received[ts]
		p.mu.Unlock()
		if seen {
			return nil
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connectionCount is how many connections the app has, ours included; 0 when that is not known.
func (p *probe) connectionCount() int {
	if p.socket == nil {
		return 0
	}
	return p.socket.State().Connections
}

// catchUps implements [socket.CatchUps].
type catchUps struct{ p *probe }

// Connected implements [socket.CatchUps].
func (c catchUps) Connected(bool) { c.p.once.Do(func() { close(c.p.connected) }) }

// CatchUpAll implements [socket.CatchUps]. The probe's thread is not bound, so there is nothing to read.
func (c catchUps) CatchUpAll() {}

// unrecorded implements [socket.Recorder].
type unrecorded struct{}

// Connected implements [socket.Recorder].
func (unrecorded) Connected(context.Context, socket.State) {}

// Disconnected implements [socket.Recorder].
func (unrecorded) Disconnected(context.Context, string, time.Duration) {}

// noThreads ignores what happens in threads.
type noThreads struct{}

// HandleReply implements [slack.ThreadHandler].
func (noThreads) HandleReply(chat.Reply) {}

// ReplyEdited implements [slack.ThreadHandler].
func (noThreads) ReplyEdited(chat.Reply) {}

// ReplyDeleted implements [slack.ThreadHandler].
func (noThreads) ReplyDeleted(string, string, string) {}

// ThreadDeleted implements [slack.ThreadHandler].
func (noThreads) ThreadDeleted(string, string) {}
