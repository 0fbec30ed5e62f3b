package threads

import (
	"cmp"
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
// until nothing is to be added, since Slack takes few of them. Threads take turns, and what one reply, channel or thread is
// refused holds up no other.
type receipts struct {
	m           *Manager
	add, remove *rate.Limiter
	wake        chan struct{}

	mu     sync.Mutex // guards the fields that follow
	dirty  map[*thread]bool
	turns  map[*thread]int64 // when a thread had its last turn, while it is dirty
	turn   int64
	rests  map[bool]time.Time     // Slack wants no additions (false) or removals (true) until then
	shut   map[string]*rest       // channels in which nothing can be shown now
	failed map[receiptPlace]*rest // replies whose receipt could not be shown
}

// receiptPlace is one reply of a thread.
type receiptPlace struct {
	t  *thread
	ts string
}

// rest is a pause after failures, which grows.
type rest struct {
	fails int
	until time.Time
}

// The pauses of a [rest].
const (
	receiptRetry    = 5 * time.Second
	receiptRetryMax = 5 * time.Minute
)

// lengthen adds a failure.
func (r *rest) lengthen(now time.Time) {
	r.until = now.Add(min(receiptRetry<<min(r.fails, 6), receiptRetryMax))
	r.fails++
}

func newReceipts(m *Manager) *receipts {
	return &receipts{m: m, wake: make(chan struct{}, 1), dirty: map[*thread]bool{}, turns: map[*thread]int64{}, rests: map[bool]time.Time{},
		shut: map[string]*rest{}, failed: map[receiptPlace]*rest{},
		add: rate.NewLimiter(rate.Every(addEvery), addBurst), remove: rate.NewLimiter(rate.Every(removeEvery), removeBurst)}
}

// want says that the receipts of a thread may differ from what they should be.
func (r *receipts) want(t *thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty[t] = true
	poke(r.wake)
}

// open has what was put off in a channel tried at once: something may be better there.
func (r *receipts) open(channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.shut, channel)
	poke(r.wake)
}

// change is one reaction to add or to remove.
type change struct {
	t      *thread
	ts     string
	mark   Mark
	remove bool
	first  bool // it makes room for an addition, and goes before others
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

// pick finds the next change: an addition if there is any that can be made now, else a removal.
func (r *receipts) pick(ctx context.Context) (*change, time.Duration) {
	now := r.m.o.Now()
	ts, wait := r.waiting(now)
	noAdding, noRemoving := r.resting(false, now), r.resting(true, now)
	var removal *change
	for _, t := range ts {
		add, remove, due := r.changes(ctx, t, now)
		wait = min(wait, due)
		switch {
		case add != nil && noAdding <= 0:
			return r.allowed(add, r.add)
		case remove != nil && (removal == nil || remove.first && !removal.first):
			removal = remove
		}
		if add != nil {
			wait = min(wait, noAdding)
		}
	}
	switch {
	case removal == nil:
		return nil, wait
	case noRemoving > 0:
		return nil, min(wait, noRemoving)
	}
	return r.allowed(removal, r.remove)
}

// waiting lists the threads that something may be due for, in turn, and says when the first channel opens again.
func (r *receipts) waiting(now time.Time) (ts []*thread, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = time.Hour
	for t := range r.dirty {
		if shut := r.shut[t.place().channel]; shut != nil && shut.until.After(now) {
			wait = min(wait, shut.until.Sub(now))
			continue
		}
		ts = append(ts, t)
	}
	slices.SortFunc(ts, func(a, b *thread) int { return cmp.Or(cmp.Compare(r.turns[a], r.turns[b]), cmp.Compare(a.id, b.id)) })
	return ts, wait
}

// resting is how long Slack wants no additions, or no removals.
func (r *receipts) resting(remove bool, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rests[remove].Sub(now)
}

// allowed takes a permit for the change; when there is none yet it says how long to wait.
func (r *receipts) allowed(c *change, limit *rate.Limiter) (*change, time.Duration) {
	permit := limit.Reserve()
	if d := permit.Delay(); d > 0 {
		permit.Cancel()
		return nil, d
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	r.turns[c.t] = r.turn
	return c, 0
}

// changes lists the first addition and the first removal of a thread that can be tried now, and when the next one can be;
// a thread that has none at all is clean.
func (r *receipts) changes(ctx context.Context, t *thread, now time.Time) (add, remove *change, wait time.Duration) {
	r.mu.Lock()
	delete(r.dirty, t) // before the look, so that what changes after it is seen
	failed := r.failedOf(t)
	r.mu.Unlock()
	l, _ := ask(ctx, t, func(context.Context) receiptLook { return t.changes(now, failed) })
	if l.add != nil || l.remove != nil || l.later > 0 {
		r.mu.Lock()
		r.dirty[t] = true
		r.mu.Unlock()
	} else {
		r.clean(t)
	}
	return l.add, l.remove, cmp.Or(l.later, time.Hour)
}

// failedOf is when the replies of a thread can be tried again that failed. The caller holds mu.
func (r *receipts) failedOf(t *thread) map[string]time.Time {
	all := map[string]time.Time{}
	for at, f := range r.failed {
		if at.t == t {
			all[at.ts] = f.until
		}
	}
	return all
}

// clean forgets what is only of use while a thread is dirty.
func (r *receipts) clean(t *thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dirty[t] {
		return
	}
	delete(r.turns, t)
	for at := range r.failed {
		if at.t == t {
			delete(r.failed, at)
		}
	}
}

// receiptLook is what is due in one thread.
type receiptLook struct {
	add, remove *change
	later       time.Duration // until something that failed can be tried again; 0: nothing failed
}

func (t *thread) changes(now time.Time, failed map[string]time.Time) (l receiptLook) {
	if t.b.Root == "" || t.gone {
		return l
	}
	for ts, e := range t.b.Replies {
		c := t.changeOf(ts, e)
		if c == nil {
			continue
		}
		if wait := failed[ts].Sub(now); wait > 0 {
			l.later = min(cmp.Or(l.later, wait), wait)
			continue
		}
		best := &l.add
		if c.remove {
			best = &l.remove
		}
		if *best == nil || CompareTS(ts, (*best).ts) < 0 {
			*best = c
		}
	}
	return l
}

// changeOf is the next change of one reply's receipt; nil: it shows what it should.
func (t *thread) changeOf(ts string, e Entry) *change {
	crowded := t.crowded[ts] && len(e.Shown) > 0
	if e.Wanted != "" && !slices.Contains(e.Shown, e.Wanted) && !crowded {
		return &change{t: t, ts: ts, mark: e.Wanted}
	}
	for _, m := range e.Shown {
		if m != e.Wanted {
			return &change{t: t, ts: ts, mark: m, remove: true, first: crowded}
		}
	}
	return nil
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
	switch {
	case err == nil:
		r.succeeded(c, channel)
		c.t.call(ctx, func(context.Context) { c.t.shown(c) })
	case ctx.Err() == nil:
		r.refused(ctx, c, channel, err)
	}
}

func (r *receipts) succeeded(c change, channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.shut, channel)
	delete(r.failed, receiptPlace{c.t, c.ts})
}

// refused has a change tried again when that may help, and not before; nobody else waits for it.
func (r *receipts) refused(ctx context.Context, c change, channel string, err error) {
	var limited *RateLimitedError
	errors.As(err, &limited)
	now := r.m.o.Now()
	failure := FailureOf(err)
	if failure != FailureWait {
		r.m.o.Log.Warn("could not show a receipt", "ref", c.t.ref, "ts", c.ts, "mark", c.mark, "err", err)
	}
	if failure == FailureMessage {
		c.t.call(ctx, func(context.Context) { c.t.unshowable(c, err) })
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch failure {
	case FailureWait:
		r.rests[c.remove] = now.Add(limited.After)
	case FailureApp:
		r.rests[c.remove] = now.Add(receiptRetryMax)
	case FailureChannel:
		longer(r.shut, channel, now)
	default:
		longer(r.failed, receiptPlace{c.t, c.ts}, now)
	}
}

// longer lengthens a rest of many.
func longer[K comparable](rests map[K]*rest, key K, now time.Time) {
	if rests[key] == nil {
		rests[key] = &rest{}
	}
	rests[key].lengthen(now)
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
		delete(t.crowded, c.ts)
	}
	t.b.Replies[c.ts] = e
	t.trim()
	t.keep()
}

// unshowable gives up what Slack refuses for good: the receipt of a reply that is gone, one reaction, or taking it away. Where
// strangers left no room for another reaction, the old receipt makes room first: it is not true any more.
func (t *thread) unshowable(c change, err error) {
	e, ok := t.b.Replies[c.ts]
	switch {
	case !ok:
		return
	case errors.Is(err, ErrReplyGone), errors.Is(err, ErrThreadGone):
		e.Wanted, e.Shown = "", nil
	case c.remove:
		e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m Mark) bool { return m == c.mark })
	case errors.Is(err, ErrCrowded) && len(e.Shown) > 0:
		t.crowded[c.ts] = true
		return
	case e.Wanted == c.mark:
		e.Wanted = ""
	}
	delete(t.crowded, c.ts)
	t.b.Replies[c.ts] = e
	t.trim()
	t.keep()
}
