package threads

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions"
	"the-loop/threads/chat"
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

// receiptThread is a thread as receipts need it.
type receiptThread interface {
	identity() (id string, ref sessions.Ref, at chat.ThreadID)
	pendingReactions(ctx context.Context, now time.Time, failed map[string]time.Time) threadChanges
	onReactionChanged(ctx context.Context, c reactionChange)
	giveUpReaction(ctx context.Context, c reactionChange, err error)
}

func idOf(t receiptThread) string {
	id, _, _ := t.identity()
	return id
}

func channelOf(t receiptThread) string {
	_, _, at := t.identity()
	return at.Channel
}

// receipts makes the reactions on replies show what they should. Additions come first: a removal waits until nothing is to be
// added, since Slack allows few of them. Threads take turns, and a failure of one reply, channel or thread holds up no other.
type receipts struct {
	sv          *services
	add, remove *rate.Limiter
	wakeup      chan struct{}

	mu             sync.Mutex // guards the fields that follow
	dirty          map[receiptThread]bool
	lastTurn       map[receiptThread]int64 // when a thread had its last turn, while it is dirty
	turn           int64
	blockedUntil   map[bool]time.Time      // Slack wants no additions (false) or removals (true) until then
	closedChannels map[string]*backoff     // channels in which nothing can be shown now
	failed         map[receiptKey]*backoff // replies whose receipt could not be shown
}

// receiptKey is one reply of a thread.
type receiptKey struct {
	t  receiptThread
	ts string
}

// backoff is a pause after failures, which grows.
type backoff struct {
	fails int
	until time.Time
}

// The pauses of a [backoff].
const (
	receiptRetry    = 5 * time.Second
	receiptRetryMax = 5 * time.Minute
)

// increase adds a failure.
func (r *backoff) increase(now time.Time) {
	r.until = now.Add(min(receiptRetry<<min(r.fails, 6), receiptRetryMax))
	r.fails++
}

func newReceipts(sv *services) *receipts {
	return &receipts{sv: sv, wakeup: make(chan struct{}, 1), dirty: map[receiptThread]bool{}, lastTurn: map[receiptThread]int64{}, blockedUntil: map[bool]time.Time{},
		closedChannels: map[string]*backoff{}, failed: map[receiptKey]*backoff{},
		add: rate.NewLimiter(rate.Every(addEvery), addBurst), remove: rate.NewLimiter(rate.Every(removeEvery), removeBurst)}
}

// markDirty says that the receipts of a thread may differ from what they should be.
func (r *receipts) markDirty(t receiptThread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty[t] = true
	wake(r.wakeup)
}

// retryChannel ends the pause of a channel.
func (r *receipts) retryChannel(channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closedChannels, channel)
	wake(r.wakeup)
}

// reactionChange is one reaction to add or to remove.
type reactionChange struct {
	t        receiptThread
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
	now := r.sv.Now()
	threads, wait := r.dirtyThreads(now)
	noAdding, noRemoving := r.blockedFor(false, now), r.blockedFor(true, now)
	var removal *reactionChange
	for _, t := range threads {
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

// dirtyThreads are the threads that something may be due for, in turn, and how long until the first closed channel is tried again.
func (r *receipts) dirtyThreads(now time.Time) (threads []receiptThread, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = time.Hour
	for t := range r.dirty {
		if closed := r.closedChannels[channelOf(t)]; closed != nil && closed.until.After(now) {
			wait = min(wait, closed.until.Sub(now))
			continue
		}
		threads = append(threads, t)
	}
	slices.SortFunc(threads, func(a, b receiptThread) int {
		return cmp.Or(cmp.Compare(r.lastTurn[a], r.lastTurn[b]), cmp.Compare(idOf(a), idOf(b)))
	})
	return threads, wait
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

// nextChanges are the first addition and the first removal of a thread that can be tried now, and how long until the next one can be.
// A thread that has none is clean.
func (r *receipts) nextChanges(ctx context.Context, t receiptThread, now time.Time) (add, remove *reactionChange, wait time.Duration) {
	r.mu.Lock()
	delete(r.dirty, t) // before the look, so that what changes after it is seen
	failed := r.retryTimes(t)
	r.mu.Unlock()
	l := t.pendingReactions(ctx, now, failed)
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
func (r *receipts) retryTimes(t receiptThread) map[string]time.Time {
	all := map[string]time.Time{}
	for at, f := range r.failed {
		if at.t == t {
			all[at.ts] = f.until
		}
	}
	return all
}

// markClean forgets what is only of use while a thread is dirty.
func (r *receipts) markClean(t receiptThread) {
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

// apply makes one change in Slack and stores that it is made.
func (r *receipts) apply(ctx context.Context, c reactionChange) {
	calling, cancel := context.WithTimeout(ctx, reactTimeout)
	defer cancel()
	emoji := r.sv.Settings().Emoji[c.mark]
	channel := channelOf(c.t)
	var err error
	switch {
	case emoji == "":
	case c.remove:
		err = r.sv.Reactions.RemoveReaction(calling, channel, c.ts, emoji)
	default:
		err = r.sv.Reactions.AddReaction(calling, channel, c.ts, emoji)
	}
	switch {
	case err == nil:
		r.handleSuccess(c, channel)
		c.t.onReactionChanged(ctx, c)
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

// handleFailure schedules another try where that may help; no other change waits for it.
func (r *receipts) handleFailure(ctx context.Context, c reactionChange, channel string, err error) {
	var limited *chat.RateLimitedError
	errors.As(err, &limited)
	now := r.sv.Now()
	failure := chat.FailureOf(err)
	if failure != chat.FailureWait {
		r.sv.Log.Warn("could not show a receipt", "session", idOf(c.t), "ts", c.ts, "mark", c.mark, "err", err)
	}
	if failure == chat.FailureMessage {
		c.t.giveUpReaction(ctx, c, err)
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

// increaseBackoff adds a failure to one of many pauses.
func increaseBackoff[K comparable](rests map[K]*backoff, key K, now time.Time) {
	if rests[key] == nil {
		rests[key] = &backoff{}
	}
	rests[key].increase(now)
}

// pendingReactions implements [receiptThread].
func (t *thread) pendingReactions(ctx context.Context, now time.Time, failed map[string]time.Time) threadChanges {
	l, _ := call(ctx, t.actor, func(context.Context) threadChanges { return t.entries.pendingReactions(now, failed) })
	for _, c := range []*reactionChange{l.add, l.remove} {
		if c != nil {
			c.t = t
		}
	}
	return l
}

// onReactionChanged implements [receiptThread].
func (t *thread) onReactionChanged(ctx context.Context, c reactionChange) {
	t.call(ctx, func(context.Context) { t.entries.onReactionChanged(c) })
}

// giveUpReaction implements [receiptThread].
func (t *thread) giveUpReaction(ctx context.Context, c reactionChange, err error) {
	t.call(ctx, func(context.Context) { t.entries.giveUpReaction(c, err) })
}
