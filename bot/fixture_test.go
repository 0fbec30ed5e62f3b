package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"the-loop/authz"
	"the-loop/bot/interact"
	"the-loop/bot/localslack"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should happen soon.
const patience = 30 * time.Second

// world is a workspace with a channel, Ann who is on the list, and a client of the bot.
type world struct {
	*localslack.Workspace
	t      *testing.T
	ctx    context.Context
	client *slack.Client
	ann    *localslack.Person
	ch     string
	heard  *ear
	doors  *interact.InteractionRouter
	inb    *slack.EventRouter
	logs   *logbook
}

func start(t *testing.T, change ...func(*localslack.Options)) *world {
	t.Helper()
	o := localslack.Options{RateLimits: localslack.RateLimitsOff, PingEvery: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w := localslack.New(o)
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	x := &world{Workspace: w, t: t, ctx: ctx, heard: newEar(), logs: new(logbook)}
	x.ann = w.AddUser("ann")
	x.ch = w.AddChannel("agents", localslack.Members(x.ann.ID, w.BotUserID())).ID
	x.client = x.newClient(slack.ClientOptions{})
	listed := func(id string) bool { return slices.Contains(x.policy().Users, id) }
	x.client.SetHooks(slack.Hooks{IsListed: listed})
	x.doors = interact.NewInteractionRouter(interact.InteractionRouterOptions{Slack: x.client, People: x.client.People(), Policy: x.policy, Sink: x.heard, Log: x.logs.logger()})
	x.inb = slack.NewEventRouter(slack.EventRouterOptions{Client: x.client, Threads: x.heard, CatchUpAll: x.heard.CatchUpAll, Interactions: x.doors,
		OnDropped:      emitDropped(x.heard),
		OnChannelEvent: x.heard.notice, Log: x.logs.logger()})
	return x
}

func (x *world) newClient(o slack.ClientOptions) *slack.Client {
	x.t.Helper()
	o.BotToken, o.AppToken, o.APIURL = cmp.Or(o.BotToken, x.BotToken()), cmp.Or(o.AppToken, x.AppToken()), x.APIURL()
	c, err := NewClient(o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(c.Close)
	return c
}

func (x *world) policy() authz.Policy {
	return authz.Policy{Users: []string{x.ann.ID}, Team: x.TeamID()}
}

// identified asks who we are, which a socket does by itself.
func (x *world) identified() *world {
	x.t.Helper()
	if _, err := x.client.Identify(x.ctx); err != nil {
		x.t.Fatal(err)
	}
	return x
}

// connect runs a socket until the test ends.
func (x *world) connect(change ...func(*SocketOptions)) *Socket {
	x.t.Helper()
	s, ran := x.socket(change...)
	ctx, cancel := context.WithCancel(x.ctx)
	go func() { ran <- s.Run(ctx) }()
	x.t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			x.t.Errorf("the socket ended with %v", err)
		}
		x.doors.Wait()
	})
	return s
}

func (x *world) socket(change ...func(*SocketOptions)) (*Socket, chan error) {
	o := SocketOptions{API: x.client, Router: x.inb, CatchUps: x.heard, Recorder: connectionRecorder{x.heard}, Log: x.logs.logger(),
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Stable: time.Hour}
	for _, c := range change {
		c(&o)
	}
	return NewSocket(o), make(chan error, 1)
}

// up connects and waits for the hello.
func (x *world) up(change ...func(*SocketOptions)) *Socket {
	x.t.Helper()
	s := x.connect(change...)
	x.until("connected", func() bool { return s.State().Connected && x.heard.count("connected") > 0 })
	return s
}

// until waits for something that the ear, the workspace or the socket shows.
func (x *world) until(what string, cond func() bool) {
	x.t.Helper()
	for {
		heard, changed := x.heard.changes(), x.Changed()
		if cond() {
			return
		}
		select {
		case <-heard:
		case <-changed:
		case <-time.After(20 * time.Millisecond): // the state of a socket tells nobody
		case <-x.ctx.Done():
			x.t.Fatalf("waiting for %s in vain; heard %v; log:\n%s", what, x.heard.all(), x.logs)
		}
	}
}

func (x *world) post(p chat.Post) string {
	x.t.Helper()
	if p.Channel == "" {
		p.Channel = x.ch
	}
	ts, err := x.client.Post(x.ctx, p)
	if err != nil {
		x.t.Fatal(err)
	}
	return ts
}

func (x *world) root() string { return x.post(chat.Post{Text: "root", Nonce: "n-root"}) }

func (x *world) reply(root, text string, opts ...localslack.PostOption) string {
	x.t.Helper()
	return x.replyBy(x.ann, root, text, opts...)
}

func (x *world) replyBy(p *localslack.Person, root, text string, opts ...localslack.PostOption) string {
	x.t.Helper()
	ts, err := p.Reply(x.ch, root, text, opts...)
	if err != nil {
		x.t.Fatal(err)
	}
	return ts
}

// route hands an inner event to the inbound side, as JSON of the caller's making.
func (x *world) route(inner string) {
	x.t.Helper()
	x.inb.Route(x.ctx, slack.Envelope{Type: slack.EnvelopeEvent, ID: "e1", Payload: json.RawMessage(`{"type":"event_callback","event":` + inner + `}`)})
}

// ear records everything that the inbound side says, in order.
type ear struct {
	mu      sync.Mutex // guards the fields that follow
	changed chan struct{}
	words   []string
	replies []chat.Reply
	events  []sessions.Event
}

func newEar() *ear { return &ear{changed: make(chan struct{})} }

func (e *ear) say(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.words = append(e.words, fmt.Sprintf(format, args...))
	e.tell()
}

func (e *ear) tell() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *ear) changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

func (e *ear) HandleReply(r chat.Reply)              { e.keep(r); e.say("heard %s", r.TS) }
func (e *ear) ReplyEdited(r chat.Reply)              { e.keep(r); e.say("edited %s", r.TS) }
func (e *ear) ReplyDeleted(channel, root, ts string) { e.say("withdrawn %s %s %s", channel, root, ts) }
func (e *ear) ThreadDeleted(channel, root string)    { e.say("rootgone %s %s", channel, root) }
func (e *ear) Connected(bool)                        { e.say("connected") }
func (e *ear) CatchUpAll()                           { e.say("catchupall") }
func (e *ear) notice(n slack.ChannelEvent)           { e.say("notice %s %s %s", n.Kind, n.Channel, n.NewID) }

func (e *ear) keep(r chat.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies = append(e.replies, r)
}

func (e *ear) Emit(_ context.Context, ev sessions.Event) {
	e.mu.Lock()
	e.events = append(e.events, ev)
	e.mu.Unlock()
	e.say("%s %v", ev.Name, cmp.Or(fmt.Sprint(ev.Fields["reason"])))
}

func (e *ear) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.words)
}

// count is how many words begin with prefix.
func (e *ear) count(prefix string) int {
	n := 0
	for _, w := range e.all() {
		if strings.HasPrefix(w, prefix) {
			n++
		}
	}
	return n
}

func (e *ear) has(word string) bool { return slices.Contains(e.all(), word) }

// reply is the last reply with that ts.
func (e *ear) reply(t *testing.T, ts string) chat.Reply {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range slices.Backward(e.replies) {
		if r.TS == ts {
			return r
		}
	}
	t.Fatalf("no reply %s among %v", ts, e.words)
	return chat.Reply{}
}

// drop is the last recorded drop.
func (e *ear) drop() map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range slices.Backward(e.events) {
		if ev.Name == threads.EventDropped {
			return ev.Fields
		}
	}
	return nil
}

func load(t *testing.T, ctx context.Context, r chat.Reply) chat.Content {
	t.Helper()
	c, err := r.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logbook is a log that a test reads.
type logbook struct {
	mu sync.Mutex // guards the field that follows
	b  strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
