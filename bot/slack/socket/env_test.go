package socket

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
	"the-loop/threads/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should happen soon.
const patience = 30 * time.Second

// env is a workspace with a channel, Ann who is authorized, and a client of the bot.
type env struct {
	*localslack.Workspace
	t        *testing.T
	ctx      context.Context
	client   *slack.Client
	ann      *localslack.Person
	ch       string
	recorder *recorder
	router   *slack.EventRouter
	logs     *logBuffer
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
	x := &env{Workspace: w, t: t, ctx: ctx, recorder: newRecorder(), logs: new(logBuffer)}
	x.ann = w.AddUser("ann")
	x.ch = w.AddChannel("agents", localslack.Members(x.ann.ID, w.BotUserID())).ID
	x.client = x.newClient(slack.ClientOptions{})
	x.router = slack.NewEventRouter(slack.EventRouterOptions{Client: x.client, Threads: x.recorder, CatchUpAll: x.recorder.CatchUpAll, Log: x.logs.logger()})
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
	return slack.NewClient(o)
}

// connect runs a socket until the test ends.
func (x *env) connect(change ...func(*Options)) *Socket {
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

func (x *env) socket(change ...func(*Options)) (*Socket, chan error) {
	o := Options{API: x.client, Router: x.router, CatchUps: x.recorder, Recorder: connections{x.recorder}, Log: x.logs.logger(),
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Stable: time.Hour}
	for _, c := range change {
		c(&o)
	}
	return New(o), make(chan error, 1)
}

// connectAndWait connects and waits for the hello.
func (x *env) connectAndWait(change ...func(*Options)) *Socket {
	x.t.Helper()
	s := x.connect(change...)
	x.waitUntil("connected", func() bool { return s.State().Connected && x.recorder.count("connected") > 0 })
	return s
}

// waitUntil waits for something that the recorder, the workspace or the socket shows.
func (x *env) waitUntil(what string, cond func() bool) {
	x.t.Helper()
	for {
		heard, changed := x.recorder.changes(), x.Changed()
		if cond() {
			return
		}
		select {
		case <-heard:
		case <-changed:
		case <-time.After(20 * time.Millisecond): // the state of a socket tells nobody
		case <-x.ctx.Done():
			x.t.Fatalf("waiting for %s in vain; heard %v; log:\n%s", what, x.recorder.all(), x.logs)
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

func (x *env) postRoot() string { return x.post(chat.Post{Text: "root", Nonce: "n-root"}) }

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
	lines   []string
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{})} }

func (e *recorder) record(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
	e.signal()
}

func (e *recorder) signal() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *recorder) changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

func (e *recorder) HandleReply(r chat.Reply) { e.record("heard %s", r.TS) }
func (e *recorder) ReplyEdited(r chat.Reply) { e.record("edited %s", r.TS) }
func (e *recorder) ReplyDeleted(channel, root, ts string) {
	e.record("withdrawn %s %s %s", channel, root, ts)
}
func (e *recorder) ThreadDeleted(channel, root string) { e.record("rootgone %s %s", channel, root) }
func (e *recorder) Connected(bool)                     { e.record("connected") }
func (e *recorder) CatchUpAll()                        { e.record("catchupall") }

// connections records connections; both it and catching up are told of them.
type connections struct{ *recorder }

func (c connections) Connected(context.Context, State)                    { c.record("open") }
func (c connections) Disconnected(context.Context, string, time.Duration) { c.record("closed") }

func (e *recorder) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lines)
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

// logBuffer is a log that a test reads.
type logBuffer struct {
	mu sync.Mutex // guards the field that follows
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
