package page

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/goleak"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 20 * time.Second

var startTime = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// fixture is a workspace with a channel, a member and the bot in it.
type fixture struct {
	*localslack.Workspace
	*wiretest.Client
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
	f := &fixture{Workspace: w, t: t,
		Client: wiretest.New(ctx, t, w.APIURL(), w.BotToken(), w.AppToken()), ctx: ctx, clock: clock, ch: ch.ID, ann: ann}
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

func noRates(o *store.Options) { o.RateLimits = store.RateLimitsOff }
