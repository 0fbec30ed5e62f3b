package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// CheckOptions say what is checked. Client and Channel are required.
type CheckOptions struct {
	Client      *Client
	Channel     string // C…
	AllowShared bool
	Users       []string // member ids that are let in
	// AwaitDrop waits until the drop of the message ts is in the event log. It is set when a bot runs on this root: Slack
	// gives each event to one of an app's connections, so a second one could not be sure to see it.
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
	CheckUsers         = "people"
	CheckEventDelivery = "way in"
)

// Check tries the tokens, their scopes, the channel and the people, and sends itself a message through the whole way
// in. What depends on something that failed is not tried. It leaves nothing behind in the channel.
func Check(ctx context.Context, o CheckOptions) []Finding {
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Second
	}
	o.Log = loggerOrDiscard(o.Log)
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
	self     Self
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

// failed is a finding of an error, with the error's own remedy when it has one.
func (c *checker) failWith(name string, err error) bool {
	var f *FatalError
	if errors.As(err, &f) {
		return c.fail(name, f.Code+withPrefix(" ", f.Needed), f.Remedy)
	}
	return c.fail(name, err.Error(), "try again; if it stays, see whether this machine reaches "+c.o.Client.transport.base.Host)
}

func withPrefix(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func (c *checker) checkBotToken(ctx context.Context) bool {
	self, err := c.o.Client.authTest(ctx)
	if err != nil {
		return c.failWith(CheckBotToken, err)
	}
	if self.Bot == "" {
		return c.fail(CheckBotToken, "the token is a person's, not a bot's", "use the Bot User OAuth Token, xoxb-…")
	}
	c.self = self
	c.o.Client.self.Store(&self)
	return c.pass(CheckBotToken, fmt.Sprintf("@%s (%s) in %s (%s)", self.Name, self.User, self.TeamName, self.Team))
}

func (c *checker) checkAppToken(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.o.Client.timeout)
	defer cancel()
	_, _, err := c.o.Client.api.StartSocketModeContext(ctx)
	if err = classify(methodOpen, appTokenName, false, err); err != nil {
		return c.failWith(CheckAppToken, err)
	}
	return c.pass(CheckAppToken, "it opens Socket Mode connections")
}

func (c *checker) checkScopes() bool {
	if c.self.Scopes == nil {
		return c.pass(CheckScopes, "Slack did not say which the token has")
	}
	if missing := missingScopes(c.self.Scopes); len(missing) > 0 {
		return c.fail(CheckScopes, "missing: "+strings.Join(missing, ", "),
			"add them in the app's settings (`the-loop slack manifest` lists them all), then reinstall the app")
	}
	without := []string{"all that are needed are there"}
	for _, s := range slices.Sorted(maps.Keys(optionalScopes)) {
		if !slices.Contains(c.self.Scopes, s) {
			without = append(without, "without "+s+" "+optionalScopes[s])
		}
	}
	if len(without) > 1 {
		return c.pass(CheckScopes, strings.Join(without, "; "))
	}
	return c.pass(CheckScopes, "all that are used are there")
}

func (c *checker) checkChannel(ctx context.Context) bool {
	a, err := c.o.Client.call(ctx, methodChannel, url.Values{"channel": {c.o.Channel}})
	if errorCode(err) == "channel_not_found" {
		return c.fail(CheckChannel, c.o.Channel+" does not exist, or is private and the bot is not in it", c.inviteHint())
	}
	if err != nil {
		return c.failWith(CheckChannel, err)
	}
	ch := a.obj("channel")
	name := "#" + firstNonEmpty(ch.str("name"), c.o.Channel)
	switch {
	case ch.isTrue("is_archived"):
		return c.fail(CheckChannel, name+" is archived", "unarchive it, or set another channel in the config")
	case !ch.isTrue("is_member"):
		return c.fail(CheckChannel, "the bot is not in "+name, c.inviteHint())
	case (ch.isTrue("is_ext_shared") || ch.isTrue("is_pending_ext_shared")) && !c.o.AllowShared:
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
		c.fail(CheckUsers, "nobody is on the list, so nobody is let in", "add member ids to channels.slack.authorizedUsers")
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

// checkUser looks one member up with the eyes of the door.
func (c *checker) checkUser(ctx context.Context, id string) (name, problem string) {
	actor, person, err := c.o.Client.People().ResolveActor(ctx, authz.Actor{User: id})
	if err != nil {
		return "", "could not be looked up: " + err.Error()
	}
	policy := authz.Policy{Users: c.o.Users, Team: c.self.Team, Enterprise: c.self.Enterprise}
	switch verdict, reason := policy.Authorize(actor); {
	case verdict == authz.Allowed:
		return firstNonEmpty(person.Name, id), ""
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

// checkEventDelivery posts a root and a reply to it, and waits until the reply comes in through a connection as one of that thread.
// Being the bot's own, it is dropped there, and the record of that drop is the proof.
func (c *checker) checkEventDelivery(ctx context.Context) {
	post := chat.Post{Channel: c.o.Channel, Text: "Checking the way in; this message goes away.", Nonce: "check-" + uuid.NewString()}
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
	post.Root, post.Text, post.Nonce = root, "Checking.", "check-"+uuid.NewString()
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

// remove takes a message back, also when the check was called off.
func (c *checker) deleteMessage(ctx context.Context, ts string) {
	if err := c.o.Client.Delete(context.WithoutCancel(ctx), c.o.Channel, ts); err != nil {
		c.fail(CheckEventDelivery, "could not take its own message back: "+err.Error(), "delete it in Slack")
	}
}

// listen opens a connection of the check's own and waits for its hello.
func (c *checker) openProbe(ctx context.Context, p *probe) (watch func(context.Context, string, string) error, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	in := NewEventRouter(EventRouterOptions{Client: c.o.Client, Threads: p, Sink: p, Log: c.o.Log})
	socket := NewSocket(SocketOptions{Client: c.o.Client, Router: in, CatchUps: p, Sink: p, Log: c.o.Log})
	p.socket = socket
	ran := make(chan error, 1)
	go func() { ran <- socket.Run(ctx) }()
	stop = func() { cancel(); <-ran }
	select {
	case <-p.connected:
		return p.awaitDrop, stop, nil
	case err = <-ran:
		ran <- nil
	case <-time.After(c.o.Timeout):
		err = fmt.Errorf("no connection within %s: %s", c.o.Timeout, socket.State().Problem)
	}
	stop()
	return nil, nil, err
}

// probe is the check's end of the way in: it takes nothing and sees the drops.
type probe struct {
	channel, root string
	connected     chan struct{}
	once          sync.Once
	socket        *Socket
	changed       chan struct{}

	mu       sync.Mutex // guards the field that follows
	received map[string]bool
}

func newProbe(channel, root string) *probe {
	return &probe{channel: channel, root: root, connected: make(chan struct{}), changed: make(chan struct{}, 1), received: map[string]bool{}}
}

// Emit implements [sessions.Sink].
func (p *probe) Emit(_ context.Context, e sessions.Event) {
	ts, _ := e.Fields["ts"].(string)
	if e.Name != threads.EventDropped || e.Fields["channel"] != p.channel || e.Fields["thread"] != p.root {
		return
	}
	p.mu.Lock()
	p.received[ts] = true
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

// Connected implements [CatchUpRequester].
func (p *probe) Connected(bool) { p.once.Do(func() { close(p.connected) }) }

// The probe's thread is nobody's, so there is nothing to do with what else comes.

// HandleReply implements [ReplyHandler].
func (p *probe) HandleReply(chat.Reply) {}

// ReplyEdited implements [ReplyHandler].
func (p *probe) ReplyEdited(chat.Reply) {}

// ReplyDeleted implements [ReplyHandler].
func (p *probe) ReplyDeleted(string, string, string) {}

// ThreadDeleted implements [ThreadHandler].
func (p *probe) ThreadDeleted(string, string) {}

// CatchUpAll implements [CatchUpRequester].
func (p *probe) CatchUpAll() {}

// CatchUp implements [CatchUpRequester].
func (p *probe) CatchUp(string, string) {}
