package threads

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/threads/chat"
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
	wakeup      chan struct{}

	mu             sync.Mutex // guards the fields that follow
	dirty          map[*thread]bool
	lastTurn       map[*thread]int64 // when a thread had its last turn, while it is dirty
	turn           int64
	blockedUntil   map[bool]time.Time      // Slack wants no additions (false) or removals (true) until then
	closedChannels map[string]*backoff     // channels in which nothing can be shown now
	failed         map[receiptKey]*backoff // replies whose receipt could not be shown
}

// receiptKey is one reply of a thread.
type receiptKey struct {
	t  *thread
	ts string
}

// rest is a pause after failures, which grows.
type backoff struct {
	fails int
	until time.Time
}

// The pauses of a [rest].
const (
	receiptRetry    = 5 * time.Second
	receiptRetryMax = 5 * time.Minute
)

// increase adds a failure.
func (r *backoff) increase(now time.Time) {
	r.until = now.Add(min(receiptRetry<<min(r.fails, 6), receiptRetryMax))
	r.fails++
}

func newReceipts(m *Manager) *receipts {
	return &receipts{m: m, wakeup: make(chan struct{}, 1), dirty: map[*thread]bool{}, lastTurn: map[*thread]int64{}, blockedUntil: map[bool]time.Time{},
		closedChannels: map[string]*backoff{}, failed: map[receiptKey]*backoff{},
		add: rate.NewLimiter(rate.Every(addEvery), addBurst), remove: rate.NewLimiter(rate.Every(removeEvery), removeBurst)}
}

// want says that the receipts of a thread may differ from what they should be.
func (r *receipts) markDirty(t *thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty[t] = true
	wake(r.wakeup)
}

// open has what was put off in a channel tried at once: something may be better there.
func (r *receipts) retryChannel(channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closedChannels, channel)
	wake(r.wakeup)
}

// change is one reaction to add or to remove.
type reactionChange struct {
	t        *thread
	ts       string
	mark     Mark
	remove   bool
	priority bool // it makes room for an addition, and goes before others
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
			case <-r.wakeup:
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		r.apply(ctx, *c)
	}
}

// pick finds the next change: an addition if there is any that can be made now, else a removal.
func (r *receipts) pick(ctx context.Context) (*reactionChange, time.Duration) {
	now := r.m.o.Now()
	ts, wait := r.dirtyThreads(now)
	noAdding, noRemoving := r.blockedFor(false, now), r.blockedFor(true, now)
	var removal *reactionChange
	for _, t := range ts {
		add, remove, due := r.nextChanges(ctx, t, now)
		wait = min(wait, due)
		switch {
		case add != nil && noAdding <= 0:
			return r.reserve(add, r.add)
		case remove != nil && (removal == nil || remove.priority && !removal.priority):
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
	return r.reserve(removal, r.remove)
}

// waiting lists the threads that something may be due for, in turn, and says when the first channel opens again.
func (r *receipts) dirtyThreads(now time.Time) (ts []*thread, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = time.Hour
	for t := range r.dirty {
		if shut := r.closedChannels[t.threadID().Channel]; shut != nil && shut.until.After(now) {
			wait = min(wait, shut.until.Sub(now))
			continue
		}
		ts = append(ts, t)
	}
	slices.SortFunc(ts, func(a, b *thread) int {
		return cmp.Or(cmp.Compare(r.lastTurn[a], r.lastTurn[b]), cmp.Compare(a.sessionID, b.sessionID))
	})
	return ts, wait
}

// blockedFor is how long Slack wants no additions, or no removals.
func (r *receipts) blockedFor(remove bool, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blockedUntil[remove].Sub(now)
}

// reserve takes a permit for the change; when there is none yet it says how long to wait.
func (r *receipts) reserve(c *reactionChange, limit *rate.Limiter) (*reactionChange, time.Duration) {
	permit := limit.Reserve()
	if d := permit.Delay(); d > 0 {
		permit.Cancel()
		return nil, d
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	r.lastTurn[c.t] = r.turn
	return c, 0
}

// changes lists the first addition and the first removal of a thread that can be tried now, and when the next one can be;
// a thread that has none at all is clean.
func (r *receipts) nextChanges(ctx context.Context, t *thread, now time.Time) (add, remove *reactionChange, wait time.Duration) {
	r.mu.Lock()
	delete(r.dirty, t) // before the look, so that what changes after it is seen
	failed := r.retryTimes(t)
	r.mu.Unlock()
	l, _ := call(ctx, t, func(context.Context) threadChanges { return t.pendingReactions(now, failed) })
	if l.add != nil || l.remove != nil || l.retryIn > 0 {
		r.mu.Lock()
		r.dirty[t] = true
		r.mu.Unlock()
	} else {
		r.markClean(t)
	}
	return l.add, l.remove, cmp.Or(l.retryIn, time.Hour)
}

// retryTimes is when the replies of a thread can be tried again that failed. The caller holds mu.
func (r *receipts) retryTimes(t *thread) map[string]time.Time {
	all := map[string]time.Time{}
	for at, f := range r.failed {
		if at.t == t {
			all[at.ts] = f.until
		}
	}
	return all
}

// markClean forgets what is only of use while a thread is dirty.
func (r *receipts) markClean(t *thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dirty[t] {
		return
	}
	delete(r.lastTurn, t)
	for at := range r.failed {
		if at.t == t {
			delete(r.failed, at)
		}
	}
}

// threadChanges is what is due in one thread.
type threadChanges struct {
	add, remove *reactionChange
	retryIn     time.Duration // until something that failed can be tried again; 0: nothing failed
}

func (t *thread) pendingReactions(now time.Time, failed map[string]time.Time) (l threadChanges) {
	if t.b.Root == "" || t.unbound {
		return l
	}
	for ts, e := range t.b.Replies {
		c := t.pendingReaction(ts, e)
		if c == nil {
			continue
		}
		if wait := failed[ts].Sub(now); wait > 0 {
			l.retryIn = min(cmp.Or(l.retryIn, wait), wait)
			continue
		}
		best := &l.add
		if c.remove {
			best = &l.remove
		}
		if *best == nil || chat.CompareTS(ts, (*best).ts) < 0 {
			*best = c
		}
	}
	return l
}

// pendingReaction is the next change of one reply's receipt; nil: it shows what it should.
func (t *thread) pendingReaction(ts string, e Entry) *reactionChange {
	crowded := t.reactionsFull[ts] && len(e.Shown) > 0
	if e.Wanted != "" && !slices.Contains(e.Shown, e.Wanted) && !crowded {
		return &reactionChange{t: t, ts: ts, mark: e.Wanted}
	}
	for _, m := range e.Shown {
		if m != e.Wanted {
			return &reactionChange{t: t, ts: ts, mark: m, remove: true, priority: crowded}
		}
	}
	return nil
}

// apply makes one change in Slack and stores that it is made.
func (r *receipts) apply(ctx context.Context, c reactionChange) {
	calling, cancel := context.WithTimeout(ctx, reactTimeout)
	defer cancel()
	emoji := r.m.o.Settings().Emoji[c.mark]
	channel := c.t.threadID().Channel
	var err error
	switch {
	case emoji == "":
	case c.remove:
		err = r.m.o.Reactions.RemoveReaction(calling, channel, c.ts, emoji)
	default:
		err = r.m.o.Reactions.AddReaction(calling, channel, c.ts, emoji)
	}
	switch {
	case err == nil:
		r.handleSuccess(c, channel)
		c.t.call(ctx, func(context.Context) { c.t.onReactionChanged(c) })
	case ctx.Err() == nil:
		r.handleFailure(ctx, c, channel, err)
	}
}

func (r *receipts) handleSuccess(c reactionChange, channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closedChannels, channel)
	delete(r.failed, receiptKey{c.t, c.ts})
}

// refused has a change tried again when that may help, and not before; nobody else waits for it.
func (r *receipts) handleFailure(ctx context.Context, c reactionChange, channel string, err error) {
	var limited *chat.RateLimitedError
	errors.As(err, &limited)
	now := r.m.o.Now()
	failure := chat.FailureOf(err)
	if failure != chat.FailureWait {
		r.m.o.Log.Warn("could not show a receipt", "ref", c.t.ref, "ts", c.ts, "mark", c.mark, "err", err)
	}
	if failure == chat.FailureMessage {
		c.t.call(ctx, func(context.Context) { c.t.giveUpReaction(c, err) })
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch failure {
	case chat.FailureWait:
		r.blockedUntil[c.remove] = now.Add(limited.After)
	case chat.FailureApp:
		r.blockedUntil[c.remove] = now.Add(receiptRetryMax)
	case chat.FailureChannel:
		increaseBackoff(r.closedChannels, channel, now)
	default:
		increaseBackoff(r.failed, receiptKey{c.t, c.ts}, now)
	}
}

// increaseBackoff lengthens a rest of many.
func increaseBackoff[K comparable](rests map[K]*backoff, key K, now time.Time) {
	if rests[key] == nil {
		rests[key] = &backoff{}
	}
	rests[key].increase(now)
}

// shown stores that a reaction was added or removed.
func (t *thread) onReactionChanged(c reactionChange) {
	e, ok := t.b.Replies[c.ts]
	if !ok {
		return
	}
	e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m Mark) bool { return m == c.mark })
	if !c.remove {
		e.Shown = append(e.Shown, c.mark)
		delete(t.reactionsFull, c.ts)
	}
	t.b.Replies[c.ts] = e
	t.trim()
	t.saveBestEffort()
}

// giveUpReaction gives up what Slack refuses for good: the receipt of a reply that is gone, one reaction, or taking it away. Where
// strangers left no room for another reaction, the old receipt makes room first: it is not true any more.
func (t *thread) giveUpReaction(c reactionChange, err error) {
	e, ok := t.b.Replies[c.ts]
	switch {
	case !ok:
		return
	case errors.Is(err, chat.ErrReplyGone), errors.Is(err, chat.ErrThreadGone):
		e.Wanted, e.Shown = "", nil
	case c.remove:
		e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m Mark) bool { return m == c.mark })
	case errors.Is(err, chat.ErrTooManyReactions) && len(e.Shown) > 0:
		t.reactionsFull[c.ts] = true
		return
	case e.Wanted == c.mark:
		e.Wanted = ""
	}
	delete(t.reactionsFull, c.ts)
	t.b.Replies[c.ts] = e
	t.trim()
	t.saveBestEffort()
}
