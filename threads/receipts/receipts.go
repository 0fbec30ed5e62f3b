// Package receipts makes the reactions on replies show what became of them, within the chat service's rate.
package receipts

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions"
	"the-loop/sessions/loop"
	"the-loop/threads/binding"
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

// Thread is a thread as receipts need it.
type Thread interface {
	Identity() (id string, ref sessions.Ref, at chat.ThreadID)
	PendingReactions(ctx context.Context, now time.Time, failed map[string]time.Time) Changes
	OnReactionChanged(ctx context.Context, c Change)
	GiveUpReaction(ctx context.Context, c Change, err error)
}

func idOf(t Thread) string {
	id, _, _ := t.Identity()
	return id
}

func channelOf(t Thread) string {
	_, _, at := t.Identity()
	return at.Channel
}

// Options are what [Receipts] are made of. All fields are required.
type Options struct {
	Reactions chat.ReactionWriter
	Emoji     func(binding.Mark) string // empty: the mark is not shown
	Now       func() time.Time
	Log       *slog.Logger
}

// Receipts makes the reactions on replies show what they should. Additions come first: a removal waits until nothing is to be
// added, since Slack allows few of them. Threads take turns, and a failure of one reply, channel or thread holds up no other.
type Receipts struct {
	o           Options
	add, remove *rate.Limiter
	wakeup      chan struct{}

	mu             sync.Mutex // guards the fields that follow
	dirty          map[Thread]bool
	lastTurn       map[Thread]int64 // when a thread had its last turn, while it is dirty
	turn           int64
	blockedUntil   map[bool]time.Time      // Slack wants no additions (false) or removals (true) until then
	closedChannels map[string]*backoff     // channels in which nothing can be shown now
	failed         map[receiptKey]*backoff // replies whose receipt could not be shown
}

// receiptKey is one reply of a thread.
type receiptKey struct {
	t  Thread
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

// New makes receipts; [Receipts.Run] must run for anything to be shown.
func New(o Options) *Receipts {
	return &Receipts{o: o, wakeup: make(chan struct{}, 1), dirty: map[Thread]bool{}, lastTurn: map[Thread]int64{}, blockedUntil: map[bool]time.Time{},
		closedChannels: map[string]*backoff{}, failed: map[receiptKey]*backoff{},
		add: rate.NewLimiter(rate.Every(addEvery), addBurst), remove: rate.NewLimiter(rate.Every(removeEvery), removeBurst)}
}

// MarkDirty says that the receipts of a thread may differ from what they should be.
func (r *Receipts) MarkDirty(t Thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty[t] = true
	loop.Wake(r.wakeup)
}

// RetryChannel ends the pause of a channel.
func (r *Receipts) RetryChannel(channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closedChannels, channel)
	loop.Wake(r.wakeup)
}

// Change is one reaction to add or to remove.
type Change struct {
	T        Thread
	TS       string
	Mark     binding.Mark
	Remove   bool
	Priority bool // it makes room for an addition, and goes before others
}

// Run works until ctx ends.
func (r *Receipts) Run(ctx context.Context) {
	loop.Run(ctx, r.wakeup, func(ctx context.Context) time.Duration {
		c, wait := r.pick(ctx)
		if c == nil {
			return wait
		}
		r.apply(ctx, *c)
		return 0
	})
}

// pick finds the next change: an addition if there is any that can be made now, else a removal.
func (r *Receipts) pick(ctx context.Context) (*Change, time.Duration) {
	now := r.o.Now()
	threads, wait := r.dirtyThreads(now)
	noAdding, noRemoving := r.blockedFor(false, now), r.blockedFor(true, now)
	var removal *Change
	for _, t := range threads {
		add, remove, due := r.nextChanges(ctx, t, now)
		wait = min(wait, due)
		switch {
		case add != nil && noAdding <= 0:
			return r.reserve(add, r.add)
		case remove != nil && (removal == nil || remove.Priority && !removal.Priority):
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
func (r *Receipts) dirtyThreads(now time.Time) (threads []Thread, wait time.Duration) {
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
	slices.SortFunc(threads, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(r.lastTurn[a], r.lastTurn[b]), cmp.Compare(idOf(a), idOf(b)))
	})
	return threads, wait
}

// blockedFor is how long Slack wants no additions, or no removals.
func (r *Receipts) blockedFor(remove bool, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blockedUntil[remove].Sub(now)
}

// reserve takes a permit for the change; when there is none yet it says how long to wait.
func (r *Receipts) reserve(c *Change, limit *rate.Limiter) (*Change, time.Duration) {
	permit := limit.Reserve()
	if d := permit.Delay(); d > 0 {
		permit.Cancel()
		return nil, d
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	r.lastTurn[c.T] = r.turn
	return c, 0
}

// nextChanges are the first addition and the first removal of a thread that can be tried now, and how long until the next one can be.
// A thread that has none is clean.
func (r *Receipts) nextChanges(ctx context.Context, t Thread, now time.Time) (Add, Remove *Change, wait time.Duration) {
	r.mu.Lock()
	delete(r.dirty, t) // before the look, so that what changes after it is seen
	failed := r.retryTimes(t)
	r.mu.Unlock()
	l := t.PendingReactions(ctx, now, failed)
	if l.Add != nil || l.Remove != nil || l.RetryIn > 0 {
		r.mu.Lock()
		r.dirty[t] = true
		r.mu.Unlock()
	} else {
		r.markClean(t)
	}
	return l.Add, l.Remove, cmp.Or(l.RetryIn, time.Hour)
}

// retryTimes is when the replies of a thread can be tried again that failed. The caller holds mu.
func (r *Receipts) retryTimes(t Thread) map[string]time.Time {
	all := map[string]time.Time{}
	for at, f := range r.failed {
		if at.t == t {
			all[at.ts] = f.until
		}
	}
	return all
}

// markClean forgets what is only of use while a thread is dirty.
func (r *Receipts) markClean(t Thread) {
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

// Changes is what is due in one thread.
type Changes struct {
	Add, Remove *Change
	RetryIn     time.Duration // until something that failed can be tried again; 0: nothing failed
}

// apply makes one change in Slack and stores that it is made.
func (r *Receipts) apply(ctx context.Context, c Change) {
	calling, cancel := context.WithTimeout(ctx, reactTimeout)
	defer cancel()
	emoji := r.o.Emoji(c.Mark)
	channel := channelOf(c.T)
	var err error
	switch {
	case emoji == "":
	case c.Remove:
		err = r.o.Reactions.RemoveReaction(calling, channel, c.TS, emoji)
	default:
		err = r.o.Reactions.AddReaction(calling, channel, c.TS, emoji)
	}
	switch {
	case err == nil:
		r.handleSuccess(c, channel)
		c.T.OnReactionChanged(ctx, c)
	case ctx.Err() == nil:
		r.handleFailure(ctx, c, channel, err)
	}
}

func (r *Receipts) handleSuccess(c Change, channel string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.closedChannels, channel)
	delete(r.failed, receiptKey{c.T, c.TS})
}

// handleFailure schedules another try where that may help; no other change waits for it.
func (r *Receipts) handleFailure(ctx context.Context, c Change, channel string, err error) {
	var limited *chat.RateLimitedError
	errors.As(err, &limited)
	now := r.o.Now()
	failure := chat.FailureOf(err)
	if failure != chat.FailureWait {
		r.o.Log.Warn("could not show a receipt", "session", idOf(c.T), "ts", c.TS, "mark", c.Mark, "err", err)
	}
	if failure == chat.FailureMessage {
		c.T.GiveUpReaction(ctx, c, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch failure {
	case chat.FailureWait:
		r.blockedUntil[c.Remove] = now.Add(limited.After)
	case chat.FailureApp:
		r.blockedUntil[c.Remove] = now.Add(receiptRetryMax)
	case chat.FailureChannel:
		increaseBackoff(r.closedChannels, channel, now)
	default:
		increaseBackoff(r.failed, receiptKey{c.T, c.TS}, now)
	}
}

// increaseBackoff adds a failure to one of many pauses.
func increaseBackoff[K comparable](rests map[K]*backoff, key K, now time.Time) {
	if rests[key] == nil {
		rests[key] = &backoff{}
	}
	rests[key].increase(now)
}
