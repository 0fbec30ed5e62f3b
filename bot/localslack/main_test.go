package localslack

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"go.uber.org/goleak"

	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 20 * time.Second

var startTime = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// fixture is a workspace with a channel, a member and the bot in it.
type fixture struct {
	*Workspace
	*wiretest.Client
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
	f := &fixture{Workspace: w, t: t,
		Client: wiretest.New(ctx, t, w.APIURL(), w.BotToken(), w.AppToken()), ctx: ctx, clock: clock, ch: ch.ID, ann: ann}
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

func noRates(o *store.Options) { o.RateLimits = store.RateLimitsOff }
