package page

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
	"go.uber.org/goleak"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 20 * time.Second

var startTime = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// fixture is a workspace with a channel, a member and the bot in it.
type fixture struct {
	*localslack.Workspace
	t     *testing.T
	ctx   context.Context
	clock *slacktime.FakeClock
	ch    string
	ann   *localslack.Person
	api   *slack.Client
}

func startFixture(t *testing.T, change ...func(*store.Options)) *fixture {
	t.Helper()
	clock := slacktime.NewFakeClock(startTime)
	opts := store.Options{Clock: clock, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&opts)
	}
	w := localslack.New(opts)
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

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (f *fixture) post(text string, opts ...localslack.PostOption) string {
	f.t.Helper()
	return must[string](f.t)(f.ann.Post(f.ch, text, opts...))
}

func (f *fixture) reply(thread, text string, opts ...localslack.PostOption) string {
	f.t.Helper()
	return must[string](f.t)(f.ann.Reply(f.ch, thread, text, opts...))
}

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

func (f *fixture) callOK(method string, args url.Values) map[string]any {
	f.t.Helper()
	out, _ := f.call(method, args)
	if out["ok"] != true {
		f.t.Errorf("%s: got %v", method, out)
	}
	return out
}

func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

func noRates(o *store.Options) { o.RateLimits = store.RateLimitsOff }

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

func (s *rawSocket) write(data []byte) error { return s.ws.WriteMessage(websocket.TextMessage, data) }

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

func (s *rawSocket) send(v any) {
	s.f.t.Helper()
	data := must[[]byte](s.f.t)(json.Marshal(v))
	if err := s.write(data); err != nil {
		s.f.t.Fatal(err)
	}
}
