package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"the-loop/bot/localslack"
	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/bot/slack/socket"
	"the-loop/threads/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should happen soon.
const patience = 30 * time.Second

// env is a workspace with a channel, Ann who is authorized, and a client of the bot.
type env struct {
	*localslack.Workspace
	t      *testing.T
	ctx    context.Context
	client *slack.Client
	ann    *localslack.Person
	ch     string
	heard  *recorder
	router *slack.EventRouter
	logs   *logbook
}

func newEnv(t *testing.T, change ...func(*localslack.Options)) *env {
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
	x := &env{Workspace: w, t: t, ctx: ctx, heard: newRecorder(), logs: new(logbook)}
	x.ann = w.AddUser("ann")
	x.ch = w.AddChannel("agents", localslack.Members(x.ann.ID, w.BotUserID())).ID
	x.client = x.newClient(slack.ClientOptions{})
	x.router = slack.NewEventRouter(slack.EventRouterOptions{Client: x.client, Threads: x.heard, CatchUpAll: x.heard.CatchUpAll,
		OnDropped: x.heard.dropped, OnChannelEvent: x.heard.notice, Log: x.logs.logger()})
	return x
}

func (x *env) newClient(o slack.ClientOptions) *slack.Client {
	x.t.Helper()
	o.BotToken, o.AppToken, o.APIURL = cmp.Or(o.BotToken, x.BotToken()), cmp.Or(o.AppToken, x.AppToken()), x.APIURL()
	c, err := newClient(o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(c.Close)
	return c
}

// newClient returns a client that renders as the bot does.
func newClient(o slack.ClientOptions) (*slack.Client, error) {
	same := func(text string) string { return text }
	o.Renderer, o.Text = render.Renderer{}, slack.TextRules{DisplayName: same, Handle: same, Clean: same}
	o.Scopes = RequiredScopes()
	return slack.NewClient(o)
}

// connect runs a socket until the test ends.
func (x *env) connect(change ...func(*socket.Options)) *socket.Socket {
	x.t.Helper()
	s, ran := x.socket(change...)
	ctx, cancel := context.WithCancel(x.ctx)
	go func() { ran <- s.Run(ctx) }()
	x.t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			x.t.Errorf("the socket ended with %v", err)
		}
	})
	return s
}

func (x *env) socket(change ...func(*socket.Options)) (*socket.Socket, chan error) {
	o := socket.Options{API: x.client, Router: x.router, CatchUps: x.heard, Recorder: connections{x.heard}, Log: x.logs.logger(),
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Stable: time.Hour}
	for _, c := range change {
		c(&o)
	}
	return socket.New(o), make(chan error, 1)
}

// up connects and waits for the hello.
func (x *env) up(change ...func(*socket.Options)) *socket.Socket {
	x.t.Helper()
	s := x.connect(change...)
	x.until("connected", func() bool { return s.State().Connected && x.heard.count("connected") > 0 })
	return s
}

// until waits for something that the recorder, the workspace or the socket shows.
func (x *env) until(what string, cond func() bool) {
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

func (x *env) post(p chat.Post) string {
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

func (x *env) root() string { return x.post(chat.Post{Text: "root", Nonce: "n-root"}) }

func (x *env) reply(root, text string, opts ...localslack.PostOption) string {
	x.t.Helper()
	return x.replyBy(x.ann, root, text, opts...)
}

func (x *env) replyBy(p *localslack.Person, root, text string, opts ...localslack.PostOption) string {
	x.t.Helper()
	ts, err := p.Reply(x.ch, root, text, opts...)
	if err != nil {
		x.t.Fatal(err)
	}
	return ts
}

// recorder records what the event router and the socket call, in order.
type recorder struct {
	mu      sync.Mutex // guards the fields that follow
	changed chan struct{}
	words   []string
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{})} }

func (e *recorder) say(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.words = append(e.words, fmt.Sprintf(format, args...))
	e.tell()
}

func (e *recorder) tell() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *recorder) changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

func (e *recorder) HandleReply(r chat.Reply) { e.say("heard %s", r.TS) }
func (e *recorder) ReplyEdited(r chat.Reply) { e.say("edited %s", r.TS) }
func (e *recorder) ReplyDeleted(channel, root, ts string) {
	e.say("withdrawn %s %s %s", channel, root, ts)
}
func (e *recorder) ThreadDeleted(channel, root string) { e.say("rootgone %s %s", channel, root) }
func (e *recorder) Connected(bool)                     { e.say("connected") }
func (e *recorder) CatchUpAll()                        { e.say("catchupall") }

func (e *recorder) notice(n slack.ChannelEvent) { e.say("notice %s %s %s", n.Kind, n.Channel, n.NewID) }

func (e *recorder) dropped(_ context.Context, d slack.Dropped) {
	e.say("dropped %s %s %s", d.Reason, d.Channel, d.TS)
}

// connections records connections; both it and catching up are told of them.
type connections struct{ *recorder }

func (c connections) Connected(context.Context, socket.State)             { c.say("open") }
func (c connections) Disconnected(context.Context, string, time.Duration) { c.say("closed") }

func (e *recorder) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.words)
}

// count is how many words begin with prefix.
func (e *recorder) count(prefix string) int {
	n := 0
	for _, w := range e.all() {
		if strings.HasPrefix(w, prefix) {
			n++
		}
	}
	return n
}

func (e *recorder) has(word string) bool { return slices.Contains(e.all(), word) }

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
