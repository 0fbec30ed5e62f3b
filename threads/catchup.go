package threads

import (
	"cmp"
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

// Threads that were active within sweepActive are read every sweepEvery, so that a reply whose event never came is found.
const (
	sweepEvery  = 10 * time.Minute
	sweepActive = time.Hour
)

// threadReader reads threads from their cursors, the urgent ones first, within Slack's rate.
type threadReader struct {
	m      *Manager
	limit  *rate.Limiter
	wakeup chan struct{}

	mu         sync.Mutex // guards the fields that follow
	requests   map[*thread]*readRequest
	searchedAt map[string]time.Time // channels that Slack did not know, and when they were looked for
}

// reading is a thread that waits to be read, or is being read.
type readRequest struct {
	urgent    bool // a live reply waits for it
	rerun     bool // it was wanted anew while it was being read
	active    time.Time
	notBefore time.Time // not before
	fails     int
	running   bool
}

func newThreadReader(m *Manager) *threadReader {
	return &threadReader{m: m, limit: rate.NewLimiter(rate.Every(readsEvery), readsBurst), wakeup: make(chan struct{}, 1),
		requests: map[*thread]*readRequest{}, searchedAt: map[string]time.Time{}}
}

// want has a thread read, soon when urgent. The thread's goroutine calls it.
func (r *threadReader) request(t *thread, urgent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.requests[t]
	if w == nil {
		w = &readRequest{}
		r.requests[t] = w
	}
	w.urgent, w.active = w.urgent || urgent, t.b.LastActive
	wake(r.wakeup)
}

// anew has a thread read from now on: a read that is under way does not count.
func (r *threadReader) requestFresh(t *thread, urgent bool) {
	r.request(t, urgent)
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.requests[t]; w != nil && w.running {
		w.rerun = true
	}
}

func (r *threadReader) cancel(t *thread) {
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
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	slots := make(chan struct{}, readsAtOnce)
	for {
		t, wait := r.pick()
		if t == nil {
			if !r.sleep(ctx, wait, sweep.C) {
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !r.m.start(func(work context.Context) {
			defer func() { <-slots }()
			r.read(ctx, work, t)
		}) {
			return
		}
	}
}

// rest waits until there may be something to read. False: ctx ended.
func (r *threadReader) sleep(ctx context.Context, wait time.Duration, sweep <-chan time.Time) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-sweep:
		r.sweep()
	case <-r.wakeup:
	case <-timer.C:
	}
	return true
}

// pick takes the most urgent thread that may be read now; without one, how long to wait.
func (r *threadReader) pick() (*thread, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, wait := time.Now(), time.Hour
	var best *thread
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

func (r *threadReader) sweep() {
	for _, t := range r.m.threads() {
		t.do(func(context.Context) {
			if t.b.Root != "" && t.m.now().Sub(t.b.LastActive) < sweepActive {
				r.requestFresh(t, false)
			}
		})
	}
}

// read reads one thread from its cursor to its end and hands the replies over.
func (r *threadReader) read(ctx, work context.Context, t *thread) {
	from, number, ok := t.readPosition(work)
	if !ok {
		return
	}
	if from.Root == "" {
		r.finish(t, nil)
		return
	}
	began := r.m.slackTime()
	replies, now, err := r.readPages(ctx, from)
	if now.IsZero() {
		now = began
	}
	switch {
	case errors.Is(err, chat.ErrThreadGone):
		t.do(t.dismiss)
	case err == nil:
		t.do(func(ctx context.Context) { t.merge(ctx, number, from.Cursor, replies, now) })
	case ctx.Err() == nil:
		r.m.o.Log.Warn("could not read a thread; it is tried again", "ref", t.ref, "channel", from.Channel, "err", err)
		if errors.Is(err, chat.ErrUnavailable) {
			r.findChannel(ctx, t, from.Channel)
		}
	}
	r.finish(t, err)
}

// readPosition is where to read from, and the number of the read.
func (t *thread) readPosition(ctx context.Context) (Binding, int, bool) {
	type start struct {
		b      Binding
		number int
	}
	s, ok := call(ctx, t, func(context.Context) start { return start{t.b.clone(), t.readGeneration} })
	return s.b, s.number, ok
}

func (r *threadReader) readPages(ctx context.Context, b Binding) (all []chat.Reply, now time.Time, err error) {
	for cursor := ""; ; {
		if err := r.limit.Wait(ctx); err != nil {
			return nil, now, err
		}
		page, err := r.m.o.History.Replies(ctx, b.Channel, b.Root, b.Cursor, cursor)
		if err != nil {
			return nil, now, err
		}
		all = append(all, page.Replies...)
		if !page.Now.IsZero() {
			r.m.o.Clock.ObserveDate(page.Now)
		}
		if now.IsZero() {
			now = page.Now // of the first page: what comes after it may not have been read
		}
		if cursor = page.Next; cursor == "" {
			return all, now, nil
		}
	}
}

// finish takes a thread off the list, or puts it back for later.
func (r *threadReader) finish(t *thread, err error) {
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

// postponeAll rests every thread: Slack's limit is on the method, not on the thread.
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

// requireRead has the thread read before anything of it is typed: events may have been missed.
func (t *thread) requireRead(context.Context) {
	if t.b.Root == "" {
		return
	}
	t.stale = true
	t.readGeneration++
	t.m.reader.requestFresh(t, len(t.queue.items) > 0)
}

// readFirst has the thread read before the reply that was just heard is typed, if that is done within the patience: where much is
// written in many threads, Slack's rate would make everybody wait for what may not be missing.
func (t *thread) readFirst(ctx context.Context, patience time.Duration) {
	if t.stale { // it is read for a better reason
		return
	}
	t.requireRead(ctx)
	number := t.readGeneration
	time.AfterFunc(patience, func() {
		t.do(func(ctx context.Context) {
			if t.stale && t.readGeneration == number {
				t.stale = false
				t.sendNext(ctx)
			}
		})
	})
}

// readLag is how long before a read a message must have been written to be in it for certain.
const readLag = 10 * time.Second

// How long a reply waits for a read: a live one, because another connection may have got events, and one that Slack sends again.
const (
	livePatience       = 1500 * time.Millisecond
	redeliveryPatience = 30 * time.Second
)

// merge takes a complete read of the thread from a cursor.
func (t *thread) merge(ctx context.Context, number int, from string, replies []chat.Reply, now time.Time) {
	if t.unbound || t.b.Cursor != from {
		return
	}
	if number == t.readGeneration {
		t.stale = false
	}
	there := make(map[string]bool, len(replies))
	newest := from
	for _, r := range replies {
		there[r.TS] = true
		newest = maxTS(newest, r.TS)
	}
	if !now.IsZero() {
		newest = maxTS(newest, chat.TimeTS(now.Add(-readLag)))
	}
	t.withdrawMissing(ctx, from, there, newest)
	for _, r := range replies {
		t.enqueue(ctx, r, false)
	}
	t.advanceCursor(replies, now)
	t.sendNext(ctx)
}

func maxTS(a, b string) string {
	if chat.CompareTS(a, b) >= 0 {
		return a
	}
	return b
}

// anew is a reply that is read from Slack again when it is due.
func (t *thread) lazyReply(ts string) chat.Reply {
	r := chat.Reply{Channel: t.b.Channel, Root: t.b.Root, TS: ts}
	r.Actor.User = t.b.Replies[ts].User
	r.Load = func(ctx context.Context) (chat.Content, error) {
		at := t.threadID() // the channel may have got another id meanwhile
		fresh, err := t.m.o.History.Reply(ctx, at.Channel, at.Root, ts)
		if err != nil {
			return chat.Content{}, err
		}
		c, err := fresh.Load(ctx)
		if err == nil && fresh.Command != nil {
			c.Text = cmp.Or(fresh.Command.Rest, c.Text)
		}
		return c, err
	}
	return r
}
