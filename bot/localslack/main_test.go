package localslack

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"go.uber.org/goleak"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 20 * time.Second

var startTime = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// fixture is a workspace with a channel, a member and the bot in it.
type fixture struct {
	*Workspace
	t     *testing.T
	ctx   context.Context
	clock *slacktime.FakeClock
	ch    string
	ann   *Person
	api   *slack.Client
}

func startFixture(t *testing.T, change ...func(*store.Options)) *fixture {
	t.Helper()
	clock := slacktime.NewFakeClock(startTime)
	opts := store.Options{Clock: clock, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&opts)
	}
	w := New(opts)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	ann := w.AddUser("ann")
	ch := w.AddChannel("general", store.Members(ann.ID, w.BotUserID()))
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{Workspace: w, t: t, ctx: ctx, clock: clock, ch: ch.ID, ann: ann}
	f.api = f.client(w.BotToken())
	return f
}

func (f *fixture) client(token string) *slack.Client {
	return slack.New(token, slack.OptionAppLevelToken(f.AppToken()), slack.OptionAPIURL(f.APIURL()))
}

// waitUntil fails the test when cond does not come true.
func (f *fixture) waitUntil(what string, cond func() bool) {
	f.t.Helper()
	if err := f.WaitFor(f.ctx, cond); err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (f *fixture) post(text string, opts ...PostOption) string {
	f.t.Helper()
	return must[string](f.t)(f.ann.Post(f.ch, text, opts...))
}

func (f *fixture) reply(thread, text string, opts ...PostOption) string {
	f.t.Helper()
	return must[string](f.t)(f.ann.Reply(f.ch, thread, text, opts...))
}

// connect runs slack-go's Socket Mode client and hands its events to handle, one at a time.
func (f *fixture) connect(handle func(*socketmode.Client, socketmode.Event)) {
	f.t.Helper()
	client := socketmode.New(f.api)
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan struct{}, 2)
	go func() { defer func() { done <- struct{}{} }(); _ = client.RunContext(ctx) }()
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			select {
			case ev := <-client.Events:
				handle(client, ev)
			case <-ctx.Done():
				return
			}
		}
	}()
	f.t.Cleanup(func() { cancel(); <-done; <-done })
}

// call speaks to the Web API without a client library.
func (f *fixture) call(method string, args url.Values) (map[string]any, *http.Response) {
	f.t.Helper()
	return f.callAs(f.BotToken(), method, args)
}

func (f *fixture) callAs(token, method string, args url.Values) (map[string]any, *http.Response) {
	f.t.Helper()
	req := must[*http.Request](f.t)(http.NewRequestWithContext(f.ctx, http.MethodPost, f.APIURL()+method, strings.NewReader(args.Encode())))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return f.do(req)
}

func (f *fixture) do(req *http.Request) (map[string]any, *http.Response) {
	f.t.Helper()
	res := must[*http.Response](f.t)(http.DefaultClient.Do(req))
	defer res.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		f.t.Fatalf("%s: %v", req.URL, err)
	}
	return out, res
}

// callFails checks the error that a call gets.
func (f *fixture) callFails(want, method string, args url.Values) {
	f.t.Helper()
	if out, _ := f.call(method, args); out["error"] != want {
		f.t.Errorf("%s: got %v, want %s", method, out["error"], want)
	}
}

func (f *fixture) callOK(method string, args url.Values) map[string]any {
	f.t.Helper()
	out, _ := f.call(method, args)
	if out["ok"] != true {
		f.t.Errorf("%s: got %v", method, out)
	}
	return out
}

// form is url.Values from pairs.
func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

func noRates(o *store.Options) { o.RateLimits = store.RateLimitsOff }

// rawSocket is a Socket Mode client that does only what it is told.
type rawSocket struct {
	f  *fixture
	ws *websocket.Conn
}

func (f *fixture) dial() *rawSocket {
	f.t.Helper()
	s, err := f.tryDial()
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) tryDial() (*rawSocket, error) {
	f.t.Helper()
	out, _ := f.callAs(f.AppToken(), "apps.connections.open", nil)
	return f.dialURL(blockkit.Str(out["url"]))
}

func (f *fixture) dialURL(u string) (*rawSocket, error) {
	ws, res, err := websocket.DefaultDialer.DialContext(f.ctx, u, nil)
	if err != nil {
		if res != nil {
			return nil, fmt.Errorf("%w: %s", err, res.Status)
		}
		return nil, err
	}
	ws.SetReadLimit(1 << 20)
	stop := context.AfterFunc(f.ctx, func() { _ = ws.Close() })
	f.t.Cleanup(func() { stop(); _ = ws.Close() })
	return &rawSocket{f: f, ws: ws}, nil
}

// dialReady dials and reads the hello.
func (f *fixture) dialReady() *rawSocket {
	f.t.Helper()
	s := f.dial()
	if h := s.next(); h["type"] != "hello" {
		f.t.Fatalf("got %v instead of hello", h)
	}
	return s
}

func (s *rawSocket) read() ([]byte, error) {
	_, data, err := s.ws.ReadMessage()
	return data, err
}

// write sends a text frame.
func (s *rawSocket) write(data []byte) error { return s.ws.WriteMessage(websocket.TextMessage, data) }

// next is the next frame.
func (s *rawSocket) next() map[string]any {
	s.f.t.Helper()
	data, err := s.read()
	if err != nil {
		s.f.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		s.f.t.Fatalf("%s: %v", data, err)
	}
	return out
}

// event reads an envelope, acks it and returns its payload and inner event.
func (s *rawSocket) event() (payload, inner map[string]any) {
	s.f.t.Helper()
	env := s.next()
	s.ack(env)
	payload, _ = env["payload"].(map[string]any)
	inner, _ = payload["event"].(map[string]any)
	return payload, inner
}

func (s *rawSocket) ack(env map[string]any) {
	s.send(map[string]any{"envelope_id": env["envelope_id"]})
}

func (s *rawSocket) send(v any) {
	s.f.t.Helper()
	data := must[[]byte](s.f.t)(json.Marshal(v))
	if err := s.write(data); err != nil {
		s.f.t.Fatal(err)
	}
}

// waitClosed reads until the socket is over.
func (s *rawSocket) waitClosed() {
	for {
		if _, err := s.read(); err != nil {
			return
		}
	}
}
