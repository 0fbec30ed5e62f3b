package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
)

// reconcileEvery is how often records, panes and threads are compared when nothing says that they changed.
const reconcileEvery = 5 * time.Second

// An announcement that failed is tried again after a pause that doubles.
const (
	announceRetry    = 5 * time.Second
	announceRetryMax = 5 * time.Minute
)

// announcer reconciles: it announces running sessions, keeps announcements true, and unbinds the threads of sessions
// that are gone. One goroutine runs it.
type announcer struct {
	b    *Bot
	wake chan struct{}

	failed  map[string]*failure  // by session id
	allowed map[string]time.Time // channels that were looked at, and until when that holds

	mu  sync.Mutex // guards the field that follows
	why string
}

// failure is an announcement that did not come through.
type failure struct {
	pause time.Duration
	until time.Time
}

func newAnnouncer(b *Bot) *announcer {
	return &announcer{b: b, wake: make(chan struct{}, 1), failed: map[string]*failure{}, allowed: map[string]time.Time{}}
}

// poke has the next comparison made at once.
func (a *announcer) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// problem is what keeps sessions from being announced.
func (a *announcer) problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why
}

func (a *announcer) run(ctx context.Context) {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		why := ""
		if err := a.reconcile(ctx); err != nil && ctx.Err() == nil {
			why = err.Error()
		}
		a.mu.Lock()
		a.why = why
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.wake:
		case <-a.b.o.Changed:
		}
	}
}

// reconcile compares once. It returns what could not be done, and has done the rest.
func (a *announcer) reconcile(ctx context.Context) error {
	rows, err := a.b.o.Core.List(ctx)
	if err != nil {
		a.b.o.Log.Warn("could not list the sessions", "err", err)
		return err
	}
	var errs []error
	for _, r := range rows {
		if err := a.row(ctx, r); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, a.unbind(ctx, rows))...)
}

// row announces a session that runs, and brings an announcement up to date.
func (a *announcer) row(ctx context.Context, r sessions.Row) error {
	wanted := r.Running && r.Slack.Enabled || a.b.threads.Bound(r.ID)
	if r.ID == "" || r.State == sessions.StateUnknown || r.State == sessions.StateBroken || !wanted {
		return nil
	}
	if f := a.failed[r.ID]; f != nil && time.Now().Before(f.until) {
		return fmt.Errorf("%s is not announced yet", r.Ref)
	}
	err := a.announce(ctx, r)
	if err == nil || ctx.Err() != nil {
		delete(a.failed, r.ID)
		return nil
	}
	a.fail(ctx, r, err)
	return err
}

// fail has an announcement tried again later, and records it once.
func (a *announcer) fail(ctx context.Context, r sessions.Row, err error) {
	f := a.failed[r.ID]
	if f == nil {
		f = &failure{pause: announceRetry}
		a.failed[r.ID] = f
		a.b.o.Sink.Emit(ctx, sessions.Event{Name: threads.EventAnnounceErr, Level: slog.LevelWarn, Ref: r.Ref, ID: r.ID,
			Fields: map[string]any{"reason": err.Error()}})
	}
	a.b.o.Log.Warn("could not announce a session; it is tried again", "ref", r.Ref, "err", err, "after", f.pause)
	f.until = time.Now().Add(f.pause)
	f.pause = min(2*f.pause, announceRetryMax)
}

func (a *announcer) announce(ctx context.Context, r sessions.Row) error {
	channel := first(r.Slack.Channel, a.b.o.Config().Channel)
	if channel == "" {
		return fmt.Errorf("%s has no channel: set channels.slack.channel", r.Ref)
	}
	if !a.b.threads.Bound(r.ID) {
		if err := a.mayAnnounce(ctx, channel); err != nil {
			return err
		}
	}
	return a.b.threads.Announce(ctx, threads.Announcing{ID: r.ID, Ref: r.Ref, Channel: channel, Started: r.Changed,
		Post: threads.Post{Text: render.Announcement(r)}})
}

// channelLook is how long a channel that was found to be our organisation's own is not asked about again.
const channelLook = 10 * time.Minute

// mayAnnounce refuses a channel that another organisation can read, unless the operator allows it.
func (a *announcer) mayAnnounce(ctx context.Context, channel string) error {
	if a.b.o.Config().AllowShared || time.Now().Before(a.allowed[channel]) {
		return nil
	}
	shared, err := a.b.o.Client.shared(ctx, channel)
	switch {
	case err != nil:
		return fmt.Errorf("look at the channel %s: %w", channel, err)
	case shared:
		return fmt.Errorf("the channel %s is shared with another organisation, which could read what agents say: "+
			"use another channel, or set channels.slack.allowSharedChannels", channel)
	}
	a.allowed[channel] = time.Now().Add(channelLook)
	return nil
}

// unbind ends the threads of sessions that are gone. While a record cannot be read, its session may not be.
func (a *announcer) unbind(ctx context.Context, rows []sessions.Row) error {
	there, broken := map[string]bool{}, map[sessions.Ref]bool{}
	for _, r := range rows {
		there[r.ID] = true
		broken[r.Ref] = broken[r.Ref] || r.State == sessions.StateBroken
	}
	var errs []error
	for id, ref := range a.b.threads.Sessions() {
		if there[id] || broken[ref] {
			continue
		}
		errs = append(errs, a.b.threads.Unbind(ctx, id))
	}
	return errors.Join(errs...)
}

// shared reports whether another organisation can read the channel, or was asked to.
func (c *Client) shared(ctx context.Context, channel string) (bool, error) {
	a, err := c.call(ctx, methodChannel, url.Values{"channel": {channel}})
	if err != nil {
		return false, err
	}
	ch := a.obj("channel")
	return ch.is("is_ext_shared") || ch.is("is_pending_ext_shared"), nil
}
