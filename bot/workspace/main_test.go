package workspace

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

var epoch = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// fixture is a workspace with a channel, a member and the bot in it.
type fixture struct {
	*Workspace
	t     *testing.T
	ctx   context.Context
	clock *FakeClock
	ch    string
	ann   *Person
	api   *slack.Client
}

func start(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	clock := NewFakeClock(epoch)
	opts := Options{Clock: clock, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&opts)
	}
	w := New(opts)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ann := w.AddUser("ann")
	ch := w.AddChannel("general", Members(ann.ID, w.BotUserID()))
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

// wait fails the test when cond does not come true.
func (f *fixture) wait(what string, cond func() bool) {
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
