package threads

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Mark is what a receipt shows, as one reaction on the reply.
type Mark string

// The marks. Which emoji each one is, the configuration says.
const (
	MarkReceived Mark = "received" // heard, and not settled within 2 s
	MarkTyped    Mark = "typed"
	MarkAccepted Mark = "accepted"
	MarkHeld     Mark = "held"
	MarkFailed   Mark = "failed"
	MarkInDoubt  Mark = "inDoubt"
)

// Slack takes about 50 reactions.add a minute (tier 3) and 20 reactions.remove (tier 2). A short burst is allowed.
const (
	addEvery    = 1200 * time.Millisecond
	addBurst    = 20
	removeEvery = 3 * time.Second
	removeBurst = 5
)

// reactTimeout bounds one call.
const reactTimeout = 15 * time.Second

// receipts brings the reactions on replies to what they should show. Adding comes first: removing an old one waits
// until nothing is to be added, since Slack takes few of them.
type receipts struct {
	m           *Manager
	add, remove *rate.Limiter
	wake        chan struct{}

	mu    sync.Mutex // guards the fields that follow
	dirty map[*thread]bool
	until time.Time // Slack asked to wait
}

func newReceipts(m *Manager) *receipts {
	return &receipts{m: m, wake: make(chan struct{}, 1), dirty: map[*thread]bool{},
		add: rate.NewLimiter(rate.Every(addEvery), addBurst), remove: rate.NewLimiter(rate.Every(removeEvery), removeBurst)}
}

// want says that the receipts of a thread may differ from what they should be.
func (r *receipts) want(t *thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty[t] = true
	poke(r.wake)
}

// change is one reaction to add or to remove.
type change struct {
	t      *thread
	ts     string
	mark   Mark
	remove bool
}

// run works until ctx ends.
func (r *receipts) run(ctx context.Context) {
	for {
		c, wait := r.pick(ctx)
		if c == nil {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-r.wake:
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		r.apply(ctx, *c)
	}
}

// pick finds the next change: an addition if there is any, else a removal if the rate allows one now.
func (r *receipts) pick(ctx context.Context) (*change, time.Duration) {
	r.mu.Lock()
	wait := r.until.Sub(r.m.o.Now())
	ts := make([]*thread, 0, len(r.dirty))
	for t := range r.dirty {
		ts = append(ts, t)
	}
	r.mu.Unlock()
	if wait > 0 {
		return nil, wait
	}
	var removal *change
	for _, t := range ts {
		add, remove := r.changes(ctx, t)
		switch {
		case add != nil:
			return r.allowed(add, r.add)
		case remove != nil:
			removal = remove
		}
	}
	if removal != nil {
		return r.allowed(removal, r.remove)
	}
	return nil, time.Hour
}

// allowed takes a permit for the change; when there is none yet it says how long to wait.
func (r *receipts) allowed(c *change, limit *rate.Limiter) (*change, time.Duration) {
	permit := limit.Reserve()
	if d := permit.Delay(); d > 0 {
		permit.Cancel()
		return nil, d
	}
	return c, 0
}

// changes lists the first addition and the first removal of a thread; one that has none is clean.
func (r *receipts) changes(ctx context.Context, t *thread) (add, remove *change) {
	r.mu.Lock()
	delete(r.dirty, t) // before the look, so that what changes after it is seen
	r.mu.Unlock()
	c, _ := ask(ctx, t, func(context.Context) [2]*change { add, remove := t.changes(); return [2]*change{add, remove} })
	add, remove = c[0], c[1]
	if add != nil || remove != nil {
		r.mu.Lock()
		r.dirty[t] = true
		r.mu.Unlock()
	}
	return add, remove
}

func (t *thread) changes() (add, remove *change) {
	if t.b.Root == "" || t.gone {
		return nil, nil
	}
	for ts, e := range t.b.Replies {
		if e.Wanted != "" && !slices.Contains(e.Shown, e.Wanted) {
			return &change{t: t, ts: ts, mark: e.Wanted}, nil
		}
		for _, m := range e.Shown {
			if m != e.Wanted {
				remove = &change{t: t, ts: ts, mark: m, remove: true}
			}
		}
	}
	return nil, remove
}

// apply makes one change in Slack and stores that it is made.
func (r *receipts) apply(ctx context.Context, c change) {
	calling, cancel := context.WithTimeout(ctx, reactTimeout)
	defer cancel()
	emoji := r.m.o.Settings().Emoji[c.mark]
	channel := c.t.place().channel
	var err error
	switch {
	case emoji == "":
	case c.remove:
		err = r.m.o.Receipts.RemoveReaction(calling, channel, c.ts, emoji)
	default:
		err = r.m.o.Receipts.AddReaction(calling, channel, c.ts, emoji)
	}
	var limited *RateLimitedError
	switch {
	case err == nil:
		c.t.call(ctx, func(context.Context) { c.t.shown(c) })
	case errors.As(err, &limited):
		r.pause(limited.After)
	case errors.Is(err, ErrReplyGone), errors.Is(err, ErrThreadGone):
		c.t.call(ctx, func(context.Context) { c.t.unshowable(c.ts) })
	case ctx.Err() == nil:
		r.m.o.Log.Warn("could not show a receipt; it is tried again", "ref", c.t.ref, "ts", c.ts, "mark", c.mark, "err", err)
		r.pause(receiptRetry)
	}
}

// receiptRetry is how long receipts rest after Slack could not be reached.
const receiptRetry = 5 * time.Second

func (r *receipts) pause(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = r.m.o.Now().Add(d)
}

// shown stores that a reaction was added or removed.
func (t *thread) shown(c change) {
	e, ok := t.b.Replies[c.ts]
	if !ok {
		return
	}
	e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m Mark) bool { return m == c.mark })
	if !c.remove {
		e.Shown = append(e.Shown, c.mark)
	}
	t.b.Replies[c.ts] = e
	t.keep()
}

// unshowable gives up the receipt of a reply that is gone.
func (t *thread) unshowable(ts string) {
	if e, ok := t.b.Replies[ts]; ok {
		e.Wanted, e.Shown = "", nil
		t.b.Replies[ts] = e
		t.keep()
	}
}
