package reconcile

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

// RollingRestarter finds sessions with a stale environment, and restarts them onto the declared one.
type RollingRestarter interface {
	Drift(ctx context.Context) sessions.Drift
	RollingRestart(ctx context.Context, q sessions.RollingRestartRequest) (sessions.RestartResult, error)
}

// NoticeChannel is where the notice on drift is posted.
type NoticeChannel interface {
	// Channel is the configured channel; empty: none.
	Channel() string
	// CurrentChannel is the id that a channel has now.
	CurrentChannel(id string) string
	// CheckPostable fails when nothing of sessions may be posted in the channel.
	CheckPostable(ctx context.Context, channel string) error
}

// DriftNoticeOptions are what a [DriftNotice] is made of. All fields are required.
type DriftNoticeOptions struct {
	Root        string // the folder of the state
	Restarter   RollingRestarter
	Chat        outbox.Chat
	Clock       *chat.Clock // of the chat service
	Channel     NoticeChannel
	Authorize   func(ctx context.Context, user string) error // fails when the member may not restart sessions now
	OnRestarted func()                                       // called when a restart is over; must not block
	Log         *slog.Logger
}

const (
	// driftEvery is how often environments are compared without a signal.
	driftEvery = 15 * time.Second
	// staleConfirmAfter is how long sessions must be stale before the channel is told: while a file is written, or an agent starts, they
	// look stale for a moment.
	staleConfirmAfter = 700 * time.Millisecond
	// restartWait is how long a command waits for its answer; below the time-out of an interaction.
	restartWait = 50 * time.Second
)

// DriftNotice keeps one message in the channel while sessions run on a stale environment, and restarts them when a member asks for it,
// one restart at a time. One goroutine posts and edits.
type DriftNotice struct {
	o          DriftNoticeOptions
	wakeup     chan struct{}
	editLimit  *rate.Limiter
	nextIn     time.Duration // until the next comparison is due
	retryAt    time.Time     // nothing is posted before
	backoff    time.Duration // after a failure
	staleSince time.Time     // since when sessions are stale while there is no message
	lastChange int           // [sessions.Drift.ChangeCount] that the message is about; 0: not known since the start

	mu      sync.Mutex // guards the fields that follow
	state   driftState
	loadErr error // the state cannot be read: nothing is posted, so that nothing is posted twice
	job     *restartJob
}

// NewDriftNotice reads the stored state. [DriftNotice.Run] starts the notice.
func NewDriftNotice(o DriftNoticeOptions) *DriftNotice {
	r := &DriftNotice{o: o, wakeup: make(chan struct{}, 1), editLimit: rate.NewLimiter(rate.Every(editEvery), 3)}
	r.state, r.loadErr = loadDriftState(o.Root)
	if r.loadErr != nil {
		o.Log.Error("cannot read the state of the message on stale sessions; none is posted until the file is fixed or removed", "err", r.loadErr)
	}
	return r
}

// Wake makes the next comparison happen at once.
func (r *DriftNotice) Wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// Run compares, posts and restarts until ctx ends, and returns when every goroutine has.
func (r *DriftNotice) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	r.resumeJob(ctx)
	for {
		r.startJob(ctx, &wg)
		r.nextIn = driftEvery
		r.reconcile(ctx)
		timer := time.NewTimer(r.nextIn)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wakeup:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// updateState changes the state and stores it. An error is logged: the state counts as long as this process runs.
func (r *DriftNotice) updateState(f func(*driftState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.state)
	if r.loadErr != nil {
		return
	}
	if err := r.state.save(r.o.Root); err != nil {
		r.o.Log.Error("could not store the state of the message on stale sessions", "err", err)
	}
}

// snapshot is what is to be shown now, and the message, if there is one.
func (r *DriftNotice) snapshot(d sessions.Drift) (render.DriftNotice, *driftMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := render.DriftNotice{Drift: d, Rows: r.state.LastResult}
	if r.job != nil {
		p.RequestedBy, p.Total, p.Rows = r.job.by, r.job.total, slices.Clone(r.job.rows)
		slices.SortFunc(p.Rows, func(a, b sessions.RestartRow) int { return cmp.Compare(a.Ref, b.Ref) })
	}
	if r.state.Message == nil {
		return p, nil
	}
	m := *r.state.Message
	p.Token = m.Nonce
	return p, &m
}

// reconcile compares, and brings the message in line with the result.
func (r *DriftNotice) reconcile(ctx context.Context) {
	if r.loadErr != nil || time.Now().Before(r.retryAt) {
		r.scheduleWithin(time.Until(r.retryAt))
		return
	}
	d := r.o.Restarter.Drift(ctx)
	if ctx.Err() != nil {
		return
	}
	var err error
	p, m := r.snapshot(d)
	switch {
	case m == nil && d.Stale > 0:
		err = r.createMessage(ctx, p)
	case m == nil:
		r.staleSince = time.Time{}
	default:
		err = r.refreshMessage(ctx, p, *m)
	}
	r.scheduleRetry(ctx, err)
}

// scheduleWithin makes the next comparison happen after d at the latest.
func (r *DriftNotice) scheduleWithin(d time.Duration) {
	r.nextIn = min(r.nextIn, max(d, 10*time.Millisecond))
}

// scheduleRetry schedules another comparison after a failure.
func (r *DriftNotice) scheduleRetry(ctx context.Context, err error) {
	var limited *chat.RateLimitedError
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		r.backoff = 0
		return
	case errors.As(err, &limited):
		r.retryAt = time.Now().Add(limited.After)
	default:
		r.backoff = min(max(2*r.backoff, announceRetry), announceRetryMax)
		r.retryAt = time.Now().Add(r.backoff)
		r.o.Log.Warn("could not update the message on stale sessions; retrying", "err", err, "after", r.backoff)
	}
	r.scheduleWithin(time.Until(r.retryAt))
}

// createMessage posts a message when sessions have been stale for staleConfirmAfter.
func (r *DriftNotice) createMessage(ctx context.Context, p render.DriftNotice) error {
	if r.staleSince.IsZero() {
		r.staleSince = time.Now()
	}
	if wait := staleConfirmAfter - time.Since(r.staleSince); wait > 0 {
		r.scheduleWithin(wait)
		return nil
	}
	channel := r.o.Channel.Channel()
	if channel == "" {
		return nil
	}
	if err := r.o.Channel.CheckPostable(ctx, channel); err != nil {
		return err
	}
	r.lastChange = p.Drift.ChangeCount
	r.updateState(func(s *driftState) {
		s.Message = &driftMessage{Channel: channel, Nonce: rand.Text(), TriedAt: time.Now()}
		if s.Restart == nil {
			s.LastResult = nil
		}
	})
	p, m := r.snapshot(p.Drift)
	return r.postOnce(ctx, p, *m)
}

// updateMessage changes the stored message, if it still has the nonce.
func (r *DriftNotice) updateMessage(nonce string, f func(*driftMessage)) {
	r.updateState(func(s *driftState) {
		if s.Message != nil && s.Message.Nonce == nonce {
			f(s.Message)
		}
	})
}

// current is the message as it should be, with what is known of it.
func (r *DriftNotice) current(p render.DriftNotice, m driftMessage) *outbox.Current {
	return &outbox.Current{Chat: r.o.Chat, Post: driftPost(p, m),
		State: outbox.State{TS: m.TS, Since: r.o.Clock.FromLocal(m.TriedAt), MaybePosted: m.MaybePosted, Shown: m.ShownHash},
		Store: func(_ context.Context, s outbox.State) error {
			r.updateMessage(m.Nonce, func(m *driftMessage) {
				if s.TS == "" && s.MaybePosted { // it is about to be posted
					m.TriedAt = time.Now()
				}
				m.TS, m.MaybePosted, m.ShownHash = s.TS, s.MaybePosted, s.Shown
			})
			return nil
		}}
}

// postOnce posts the message, unless an earlier attempt did.
func (r *DriftNotice) postOnce(ctx context.Context, p render.DriftNotice, m driftMessage) error {
	c := r.current(p, m)
	if err := c.Ensure(ctx); err != nil {
		return fmt.Errorf("post the message on stale sessions: %w", err)
	}
	if c.State.Shown == "" { // an earlier attempt posted it, perhaps with another text
		r.scheduleWithin(0)
	}
	return nil
}

// refreshMessage edits the message until it is true. It forgets it when nothing is stale any more, and when the file changed again.
func (r *DriftNotice) refreshMessage(ctx context.Context, p render.DriftNotice, m driftMessage) error {
	m.Channel = r.o.Channel.CurrentChannel(m.Channel)
	if r.lastChange == 0 {
		r.lastChange = p.Drift.ChangeCount
	}
	over := p.RequestedBy == "" && p.Drift.Stale == 0 && p.Drift.Problem == ""
	if over && p.Drift.Starting > 0 { // those count when they run
		r.scheduleWithin(staleConfirmAfter)
		return nil
	}
	if !over && p.RequestedBy == "" && p.Drift.ChangeCount != r.lastChange && p.Drift.Stale > 0 {
		over, p.Superseded = true, true
	}
	switch {
	case m.TS == "" && over:
		return r.forgetMessage(ctx, p, m)
	case m.TS == "":
		return r.postOnce(ctx, p, m)
	}
	done, err := r.edit(ctx, p, m)
	if err == nil && done && over {
		r.staleSince = time.Time{}
		if p.Superseded {
			r.staleSince = time.Now().Add(-staleConfirmAfter) // confirmed before
		}
		r.updateState(func(s *driftState) { s.Message, s.LastResult = nil, nil })
		r.scheduleWithin(0)
	}
	return err
}

// forgetMessage forgets a message that was never posted. One that may have been posted is looked for first, so that it is not left.
func (r *DriftNotice) forgetMessage(ctx context.Context, p render.DriftNotice, m driftMessage) error {
	c := r.current(p, m)
	if err := c.Find(ctx); err != nil {
		return fmt.Errorf("look for the message on stale sessions: %w", err)
	}
	if c.State.TS != "" {
		r.scheduleWithin(0)
		return nil
	}
	r.updateState(func(s *driftState) { s.Message = nil })
	return nil
}

// edit edits the message if it shows something else. It reports false when that is deferred by the rate limit.
func (r *DriftNotice) edit(ctx context.Context, p render.DriftNotice, m driftMessage) (bool, error) {
	c := r.current(p, m)
	if m.Dismissed || m.ShownHash == outbox.Fingerprint(c.Post) {
		return true, nil
	}
	permit := r.editLimit.Reserve()
	if wait := permit.Delay(); wait > 0 {
		permit.Cancel()
		r.scheduleWithin(wait)
		return false, nil
	}
	err := c.Show(ctx)
	switch {
	case errors.Is(err, chat.ErrReplyGone): // somebody deleted it: it is not posted again
		r.updateMessage(m.Nonce, func(m *driftMessage) { m.Dismissed = true })
		return true, nil
	case err != nil:
		return false, fmt.Errorf("edit the message on stale sessions: %w", err)
	}
	return true, nil
}

// driftPost is the message.
func driftPost(p render.DriftNotice, m driftMessage) chat.Post {
	post := chat.Post{Channel: m.Channel, Nonce: m.Nonce, Text: p.Text()}
	for _, b := range p.Buttons() {
		post.Buttons = append(post.Buttons, chat.Button(b))
	}
	return post
}
