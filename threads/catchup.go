package threads

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/threads/chat"
)

// Reading is bounded by Slack's tier 3 (at least 50 calls a minute); a small burst is allowed.
const (
	readsEvery  = 1200 * time.Millisecond
	readsBurst  = 20
	readsAtOnce = 4
)

// readableThread is a thread as the reader needs it.
type readableThread interface {
	readPosition(ctx context.Context) (from Binding, number int, ok bool)
	applyRead(number int, from string, replies []chat.Reply, now time.Time)
	rootGone()
}

// channelFinder finds the channel of a thread whose own is not known any more; pace waits before each call of the service.
type channelFinder interface {
	findChannel(ctx context.Context, b Binding, pace func(context.Context) error)
}

// threadReader reads threads from their cursors, the urgent ones first, within Slack's rate.
type threadReader struct {
	sv     *services
	finder channelFinder
	limit  *rate.Limiter
	wakeup chan struct{}

	mu       sync.Mutex // guards the field that follows
	requests map[readableThread]*readRequest
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

func newThreadReader(sv *services, finder channelFinder) *threadReader {
	return &threadReader{sv: sv, finder: finder, limit: rate.NewLimiter(rate.Every(readsEvery), readsBurst), wakeup: make(chan struct{}, 1),
		requests: map[readableThread]*readRequest{}}
}

// request has a thread read, before others when urgent; active is when somebody last spoke in it.
func (r *threadReader) request(t readableThread, urgent bool, active time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.requests[t]
	if w == nil {
		w = &readRequest{}
		r.requests[t] = w
	}
	w.urgent, w.active = w.urgent || urgent, active
	wake(r.wakeup)
}

// requestFresh has a thread read from now on: a read that is under way does not count.
func (r *threadReader) requestFresh(t readableThread, urgent bool, active time.Time) {
	r.request(t, urgent, active)
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.requests[t]; w != nil && w.running {
		w.rerun = true
	}
}

func (r *threadReader) cancel(t readableThread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.requests, t)
}

func (r *threadReader) pendingCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run reads until ctx ends.
func (r *threadReader) run(ctx context.Context) {
	slots := make(chan struct{}, readsAtOnce)
	for {
		t, wait := r.pick()
		if t == nil {
			if !r.sleep(ctx, wait) {
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !r.sv.start(func(work context.Context) {
			defer func() { <-slots }()
			r.read(ctx, work, t)
		}) {
			return
		}
	}
}

// sleep waits until there may be something to read. False: ctx ended.
func (r *threadReader) sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-r.wakeup:
	case <-timer.C:
	}
	return true
}

// pick returns the most urgent thread that may be read now, or how long to wait.
func (r *threadReader) pick() (readableThread, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, wait := time.Now(), time.Hour
	var best readableThread
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
func (r *threadReader) read(ctx, work context.Context, t readableThread) {
	from, number, ok := t.readPosition(work)
	if !ok {
		return
	}
	if from.Root == "" {
		r.finish(t, nil)
		return
	}
	began := r.sv.slackTime()
	replies, now, err := r.readPages(ctx, from)
	if now.IsZero() {
		now = began
	}
	switch {
	case errors.Is(err, chat.ErrThreadGone):
		t.rootGone()
	case err == nil:
		t.applyRead(number, from.Cursor, replies, now)
	case ctx.Err() == nil:
		r.sv.Log.Warn("could not read a thread; it is tried again", "ref", from.Ref, "channel", from.Channel, "err", err)
		if errors.Is(err, chat.ErrUnavailable) {
			r.finder.findChannel(ctx, from, r.limit.Wait)
		}
	}
	r.finish(t, err)
}

func (r *threadReader) readPages(ctx context.Context, b Binding) (all []chat.Reply, now time.Time, err error) {
	for cursor := ""; ; {
		if err := r.limit.Wait(ctx); err != nil {
			return nil, now, err
		}
		page, err := r.sv.History.Replies(ctx, b.Channel, b.Root, b.Cursor, cursor)
		if err != nil {
			return nil, now, err
		}
		all = append(all, page.Replies...)
		if !page.Now.IsZero() {
			r.sv.Clock.ObserveDate(page.Now)
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
func (r *threadReader) finish(t readableThread, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer wake(r.wakeup)
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
func (r *threadReader) postponeAll(until time.Time) {
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

// readPosition implements [readableThread].
func (t *thread) readPosition(ctx context.Context) (from Binding, number int, ok bool) {
	type position struct {
		b      Binding
		number int
	}
	p, ok := call(ctx, t.actor, func(context.Context) position { return position{t.b.Clone(), t.replies.readGeneration} })
	return p.b, p.number, ok
}

// applyRead implements [readableThread].
func (t *thread) applyRead(number int, from string, replies []chat.Reply, now time.Time) {
	t.do(func(ctx context.Context) { t.replies.merge(ctx, number, from, replies, now) })
}

// rootGone implements [readableThread].
func (t *thread) rootGone() { t.do(t.dismiss) }
