package slack

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

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"the-loop/authz"
	"the-loop/bot/localslack"
	"the-loop/bot/render"
	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should happen soon.
const patience = 30 * time.Second

// env is a Slack workspace with a channel, Ann who is authorized, and a client of the bot.
type env struct {
	*localslack.Workspace
	t        *testing.T
	ctx      context.Context
	client   *Client
	ann      *localslack.Person
	ch       string
	recorder *recorder
	router   *EventRouter
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
	x.client = x.newClient(ClientOptions{})
	listed := func(id string) bool { return slices.Contains(x.policy().Users, id) }
	x.client.SetHooks(Hooks{IsListed: listed})
	x.router = NewEventRouter(EventRouterOptions{Client: x.client, Threads: x.recorder, CatchUpAll: x.recorder.CatchUpAll,
		OnDropped: x.recorder.dropped, OnChannelEvent: x.recorder.onChannelEvent, Log: x.logs.logger()})
	return x
}

func (x *env) newClient(o ClientOptions) *Client {
	x.t.Helper()
	o.BotToken, o.AppToken, o.APIURL = cmp.Or(o.BotToken, x.BotToken()), cmp.Or(o.AppToken, x.AppToken()), x.APIURL()
	c := newTestClient(x.t, o)
	return c
}

// scopes are those that the client's methods need.
var scopes = []string{"channels:history", "channels:read", "chat:write", "files:read", "files:write", "groups:history", "groups:read",
	"reactions:write", "users:read"}

// newTestClient returns a client that renders and cleans texts as the bot does.
func newTestClient(t *testing.T, o ClientOptions) *Client {
	t.Helper()
	o.Renderer, o.Text, o.Scopes = render.Renderer{}, withoutNames.TextRules, []string{"chat:write", "reactions:write"}
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (x *env) policy() authz.Policy {
	return authz.Policy{Users: []string{x.ann.ID}, Team: x.TeamID()}
}

// identified asks who we are, which a socket does by itself.
func (x *env) identified() *env {
	x.t.Helper()
	if _, err := x.client.Identify(x.ctx); err != nil {
		x.t.Fatal(err)
	}
	return x
}

// connectAndWait opens a Socket Mode connection, waits for the hello, and routes what comes until the test ends.
func (x *env) connectAndWait() {
	x.t.Helper()
	if _, err := x.client.Identify(x.ctx); err != nil {
		x.t.Fatal(err)
	}
	address, err := x.client.OpenConnection(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	conn, _, err := websocket.DefaultDialer.DialContext(x.ctx, address, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { x.read(conn) })
	x.t.Cleanup(func() {
		_ = conn.Close()
		wg.Wait()
	})
	x.waitUntil("connected", func() bool { return x.recorder.has("connected") })
}

func (x *env) read(conn *websocket.Conn) {
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		o := lenientjson.Parse(data)
		if o.Str("type") == "hello" {
			x.recorder.record("connected")
			continue
		}
		if err := conn.WriteJSON(map[string]string{"envelope_id": o.Str("envelope_id")}); err != nil {
			return
		}
		x.router.Route(x.ctx, Envelope{Type: o.Str("type"), ID: o.Str("envelope_id"), Payload: o["payload"], Retry: o.Num("retry_attempt")})
	}
}

// waitUntil waits for something that the recorder or the workspace shows.
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

// routeEvent routes an inner event, given as JSON.
func (x *env) routeEvent(inner string) {
	x.t.Helper()
	x.router.Route(x.ctx, Envelope{Type: EnvelopeEvent, ID: "e1", Payload: json.RawMessage(`{"type":"event_callback","event":` + inner + `}`)})
}

// recorder records what the event router calls, in order.
type recorder struct {
	mu      sync.Mutex // guards the fields that follow
	changed chan struct{}
	lines   []string
	replies []chat.Reply
	drops   []Dropped
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

func (e *recorder) HandleReply(r chat.Reply) { e.addReply(r); e.record("heard %s", r.TS) }
func (e *recorder) ReplyEdited(r chat.Reply) { e.addReply(r); e.record("edited %s", r.TS) }
func (e *recorder) ReplyDeleted(channel, root, ts string) {
	e.record("withdrawn %s %s %s", channel, root, ts)
}
func (e *recorder) ThreadDeleted(channel, root string) { e.record("rootgone %s %s", channel, root) }
func (e *recorder) CatchUpAll()                        { e.record("catchupall") }
func (e *recorder) onChannelEvent(n ChannelEvent) {
	e.record("notice %s %s %s", n.Kind, n.Channel, n.NewID)
}

func (e *recorder) addReply(r chat.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replies = append(e.replies, r)
}

func (e *recorder) dropped(_ context.Context, d Dropped) {
	e.mu.Lock()
	e.drops = append(e.drops, d)
	e.mu.Unlock()
	e.record("dropped %s", d.Reason)
}

func (e *recorder) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lines)
}

func (e *recorder) has(word string) bool { return slices.Contains(e.all(), word) }

// reply is the last reply with that ts.
func (e *recorder) reply(t *testing.T, ts string) chat.Reply {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range slices.Backward(e.replies) {
		if r.TS == ts {
			return r
		}
	}
	t.Fatalf("no reply %s among %v", ts, e.lines)
	return chat.Reply{}
}

// lastDrop is the last recorded drop.
func (e *recorder) lastDrop() Dropped {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.drops) == 0 {
		return Dropped{}
	}
	return e.drops[len(e.drops)-1]
}

func loadContent(t *testing.T, ctx context.Context, r chat.Reply) chat.Content {
	t.Helper()
	c, err := r.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

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
