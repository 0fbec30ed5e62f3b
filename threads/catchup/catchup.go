// Package catchup reads threads from their cursors, so that no reply is missed, within the chat service's rate.
package catchup

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions/loop"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// Reading is bounded by Slack's tier 3 (at least 50 calls a minute); a small burst is allowed.
const (
	readsEvery  = 1200 * time.Millisecond
	readsBurst  = 20
	readsAtOnce = 4
)

// Thread is a thread as the reader needs it.
type Thread interface {
	ReadPosition(ctx context.Context) (from binding.Binding, number int, ok bool)
	ApplyRead(number int, from string, replies []chat.Reply, now time.Time)
	HandleThreadGone()
}

// ChannelFinder finds the channel of a thread whose own is not known any more; pace waits before each call of the service.
type ChannelFinder interface {
	FindChannel(ctx context.Context, b binding.Binding, pace func(context.Context) error)
}

// Options are what a [Reader] is made of. All fields are required.
type Options struct {
	History chat.History
	Finder  ChannelFinder
	Clock   *chat.Clock // hears the time of every response
	Start   func(func(context.Context)) bool
	Log     *slog.Logger
}

// Reader reads threads from their cursors, the urgent ones first, within Slack's rate.
type Reader struct {
	o      Options
	limit  *rate.Limiter
	wakeup chan struct{}

	mu       sync.Mutex // guards the field that follows
	requests map[Thread]*readRequest
}

// readRequest is a thread that waits to be read, or is being read.
type readRequest struct {
	urgent    bool // a live reply waits for it
	rerun     bool // it was requested again while it was being read
	active    time.Time
	notBefore time.Time
	fails     int
	running   bool
}

// New makes a reader; [Reader.Run] must run for anything to be read.
func New(o Options) *Reader {
	return &Reader{o: o, limit: rate.NewLimiter(rate.Every(readsEvery), readsBurst), wakeup: make(chan struct{}, 1),
		requests: map[Thread]*readRequest{}}
}

// Request has a thread read, before others when urgent; active is when somebody last spoke in it.
func (r *Reader) Request(t Thread, urgent bool, active time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.requests[t]
	if w == nil {
		w = &readRequest{}
		r.requests[t] = w
	}
	w.urgent, w.active = w.urgent || urgent, active
	loop.Wake(r.wakeup)
}

// RequestFresh has a thread read from now on: a read that is under way does not count.
func (r *Reader) RequestFresh(t Thread, urgent bool, active time.Time) {
	r.Request(t, urgent, active)
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.requests[t]; w != nil && w.running {
		w.rerun = true
	}
}

// Cancel forgets the request of a thread.
func (r *Reader) Cancel(t Thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.requests, t)
}

// Len is how many threads wait to be read.
func (r *Reader) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) {
	slots := make(chan struct{}, readsAtOnce)
	for {
		t, wait := r.pick()
		if t == nil {
			if !loop.Wait(ctx, r.wakeup, wait) {
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !r.o.Start(func(work context.Context) {
			defer func() { <-slots }()
			r.read(ctx, work, t)
		}) {
			return
		}
	}
}

// pick returns the most urgent thread that may be read now, or how long to wait.
func (r *Reader) pick() (Thread, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, wait := time.Now(), time.Hour
	var best Thread
	for t, w := range r.requests {
		switch {
		case w.running:
		case w.notBefore.After(now):
			wait = min(wait, w.notBefore.Sub(now))
		case best == nil || w.isBefore(r.requests[best]):
			best = t
		}
	}
	if best != nil {
		r.requests[best].running = true
	}
	return best, wait
}

func (w *readRequest) isBefore(o *readRequest) bool {
	if w.urgent != o.urgent {
		return w.urgent
	}
	return w.active.After(o.active)
}

// read reads one thread from its cursor to its end and hands the replies over.
func (r *Reader) read(ctx, work context.Context, t Thread) {
	from, number, ok := t.ReadPosition(work)
	if !ok {
		return
	}
	if from.Root == "" {
		r.finish(t, nil)
		return
	}
	began := r.slackTime()
	replies, now, err := r.readPages(ctx, from)
	if now.IsZero() {
		now = began
	}
	switch {
	case errors.Is(err, chat.ErrThreadGone):
		t.HandleThreadGone()
	case err == nil:
		t.ApplyRead(number, from.Cursor, replies, now)
	case ctx.Err() == nil:
		r.o.Log.Warn("could not read a thread; it is tried again", "ref", from.Ref, "channel", from.Channel, "err", err)
		if errors.Is(err, chat.ErrUnavailable) {
			r.o.Finder.FindChannel(ctx, from, r.limit.Wait)
		}
	}
	r.finish(t, err)
}

func (r *Reader) readPages(ctx context.Context, b binding.Binding) (all []chat.Reply, now time.Time, err error) {
	for cursor := ""; ; {
		if err := r.limit.Wait(ctx); err != nil {
			return nil, now, err
		}
		page, err := r.o.History.Replies(ctx, b.Channel, b.Root, b.Cursor, cursor)
		if err != nil {
			return nil, now, err
		}
		all = append(all, page.Replies...)
		if !page.Now.IsZero() {
			r.o.Clock.ObserveDate(page.Now)
		}
		if now.IsZero() {
			now = page.Now // of the first page: what comes after it may not have been read
		}
		if cursor = page.Next; cursor == "" {
			return all, now, nil
		}
	}
}

// finish ends the request of a thread, or schedules another try.
func (r *Reader) finish(t Thread, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer loop.Wake(r.wakeup)
	w := r.requests[t]
	switch {
	case w == nil:
	case w.rerun:
		w.rerun, w.running = false, false
	case err == nil || errors.Is(err, chat.ErrThreadGone):
		delete(r.requests, t)
	default:
		w.running = false
		w.notBefore = time.Now().Add(w.backoff(err))
		w.fails++
		var limited *chat.RateLimitedError
		if errors.As(err, &limited) {
			r.postponeAll(w.notBefore)
		}
	}
}

// postponeAll delays every read: Slack's limit is on the method, not on the thread. The caller holds mu.
func (r *Reader) postponeAll(until time.Time) {
	for _, w := range r.requests {
		if w.notBefore.Before(until) {
			w.notBefore = until
		}
	}
}

func (w *readRequest) backoff(err error) time.Duration {
	var limited *chat.RateLimitedError
	switch chat.FailureOf(err) {
	case chat.FailureWait:
		errors.As(err, &limited)
		return limited.After
	case chat.FailureRetry:
		return min(time.Second<<min(w.fails, 6), time.Minute)
	}
	return time.Minute
}

// slackTime is the time by the chat service's clock; zero: not known.
func (r *Reader) slackTime() time.Time {
	now, _ := r.o.Clock.Now()
	return now
}
