package threads

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// ScreenReader reads the screens of agents.
type ScreenReader interface {
	View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error)
}

// What a status says.
const (
	statusWorking = "is working…"
	statusWaiting = "is waiting for an answer…"
)

const (
	statusDelay        = time.Second // what is over sooner is not shown
	statusMinPause     = 100 * time.Millisecond
	statusRefreshEvery = 100 * time.Second // before Slack takes the status away
	screenTimeout      = 10 * time.Second
	statusCallTimeout  = 10 * time.Second // of one call of Slack
	statusRetry        = 10 * time.Second // after one that failed
	statusRefusedPause = 5 * time.Minute  // how long a thread rests in which we may not write
)

// What is shown may take of Slack and of tmux at most this. Slack tells no limit for statuses; chat.update has some 50 calls a
// minute, which announcements and questions need too.
const (
	statusEvery  = time.Second
	statusBurst  = 20
	editsEvery   = 3 * time.Second
	editsBurst   = 5
	screensEvery = 200 * time.Millisecond
	screensBurst = 5
)

// statusLoop shows in every thread whether its agent is at work: by a status, or else by one message that is edited. One
// goroutine does all of it, so that neither replies nor answers ever wait for that.
type statusLoop struct {
	m      *Manager
	wakeup chan struct{}
	limits map[stepKind]*rate.Limiter

	mu          sync.Mutex // guards the fields that follow
	checkAt     map[*thread]time.Time
	noStatuses  bool      // the workspace has no statuses; asked again after a reconnect
	pausedUntil time.Time // Slack wants to be left alone
	failed      bool
}

func newStatusLoop(m *Manager) *statusLoop {
	edits := rate.NewLimiter(rate.Every(editsEvery), editsBurst)
	return &statusLoop{m: m, wakeup: make(chan struct{}, 1), checkAt: map[*thread]time.Time{}, noStatuses: m.o.StatusSetter == nil,
		limits: map[stepKind]*rate.Limiter{stepReadScreen: rate.NewLimiter(rate.Every(screensEvery), screensBurst),
			stepSetStatus: rate.NewLimiter(rate.Every(statusEvery), statusBurst), stepEditMessage: edits, stepFindMessage: edits}}
}

// want says that what a thread shows may be due to change.
func (k *statusLoop) requestCheck(t *thread) { k.setCheckAt(t, time.Time{}) }

func (k *statusLoop) setCheckAt(t *thread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checkAt[t] = due
	wake(k.wakeup)
}

// onConnected has it asked again whether there are statuses.
func (k *statusLoop) onConnected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.noStatuses && k.m.o.StatusSetter != nil {
		k.noStatuses = false
		k.requestAll()
	}
}

// requestAll has each thread looked at that is kept here. The caller holds mu.
func (k *statusLoop) requestAll() {
	for t := range k.checkAt {
		k.checkAt[t] = time.Time{}
	}
	wake(k.wakeup)
}

// run works until ctx ends.
func (k *statusLoop) run(ctx context.Context) {
	for {
		t, wait := k.pick()
		if t != nil {
			k.process(ctx, t)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-k.wakeup:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pick takes the thread that has been due for the longest; without one, it says how long to wait.
func (k *statusLoop) pick() (first *thread, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for t, due := range k.checkAt {
		if first == nil || due.Before(k.checkAt[first]) {
			first = t
		}
	}
	if first == nil {
		return nil, time.Hour
	}
	due := k.checkAt[first]
	if k.pausedUntil.After(due) {
		due = k.pausedUntil
	}
	if wait = due.Sub(k.m.o.Now()); wait > 0 {
		return nil, wait
	}
	delete(k.checkAt, first)
	return first, 0
}

// stepKind says what is to be done for a thread.
type stepKind int

const (
	stepNone        stepKind = iota
	stepReadScreen           // at its agent's screen
	stepSetStatus            // have the status say something else
	stepFindMessage          // readScreen for the message that tells of the turn
	stepEditMessage          // change that message
)

// step is what is to be done for a thread now, outside of its goroutine.
type step struct {
	kind  stepKind
	text  string
	post  chat.Post
	ts    string
	since time.Time // it was not posted before
	final bool      // the message is done with
	next  time.Time // when there is nothing to do: when there may be again; zero: not by itself
}

// process does what is to be done for one thread now, one thing at a time.
func (k *statusLoop) process(ctx context.Context, t *thread) {
	k.mu.Lock()
	none := k.noStatuses
	k.mu.Unlock()
	now := k.m.o.Now()
	s, ok := call(ctx, t, func(context.Context) step { return t.nextStep(now, none) })
	switch {
	case !ok:
	case s.kind == stepNone && !s.next.IsZero():
		k.scheduleCheck(t, latest(s.next, now.Add(statusMinPause)))
	case s.kind != stepNone:
		if wait := k.limits[s.kind].Reserve(); wait.Delay() > 0 {
			k.scheduleCheck(t, now.Add(wait.Delay()))
			wait.Cancel()
			return
		}
		k.runStep(ctx, t, s)
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// later has a thread looked at again then, unless somebody wants it sooner.
func (k *statusLoop) scheduleCheck(t *thread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.checkAt[t]; !ok || due.Before(have) {
		k.checkAt[t] = due
	}
}

func (k *statusLoop) runStep(ctx context.Context, t *thread, s step) {
	calling, cancel := context.WithTimeout(ctx, statusCallTimeout)
	defer cancel()
	var err error
	switch s.kind {
	case stepReadScreen:
		k.readScreen(ctx, t)
	case stepSetStatus:
		t.call(ctx, func(context.Context) { t.turn.statusCallPending, t.turn.statusUncertain = true, false })
		err = k.m.o.StatusSetter.SetStatus(calling, s.post.Channel, s.post.Root, s.text)
		t.call(ctx, func(context.Context) { t.onStatusSet(s.text, k.m.o.Now(), err) })
	case stepFindMessage:
		s.ts, err = k.m.o.History.FindPost(calling, s.post.Channel, s.post.Root, s.post.Nonce, s.since)
		t.call(ctx, func(context.Context) { t.onTurnMessageFound(s.post.Nonce, s.ts, err) })
	case stepEditMessage:
		err = k.m.o.Poster.Update(calling, s.ts, s.post)
		t.call(ctx, func(context.Context) { t.onTurnMessageEdited(s, k.m.o.Now(), err) })
	}
	if ctx.Err() == nil {
		k.finishStep(t, err)
	}
}

// after decides when a thread is looked at again, and takes in what Slack said.
func (k *statusLoop) finishStep(t *thread, err error) {
	var limited *chat.RateLimitedError
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.m.o.Now()
	k.checkAt[t] = time.Time{}
	switch {
	case err == nil:
		k.failed = false
	case errors.Is(err, chat.ErrNoStatus):
		k.m.o.Log.Info("this workspace shows no statuses; messages tell of long turns instead", "err", err)
		k.noStatuses = true
		k.requestAll()
	case errors.As(err, &limited):
		k.pausedUntil = now.Add(limited.After)
	default:
		k.checkAt[t] = now.Add(k.backoffFor(t, err))
	}
}

// pause is how long one thread rests after a failure. The others do not.
func (k *statusLoop) backoffFor(t *thread, err error) time.Duration {
	if chat.FailureOf(err) != chat.FailureRetry {
		return statusRefusedPause
	}
	if !k.failed {
		k.m.o.Log.Warn("could not show whether an agent works; it is tried again", "ref", t.ref, "err", err)
	}
	k.failed = true
	return statusRetry
}

// open has what was put off in a channel tried at once.
func (k *statusLoop) retryChannel(channel string) {
	for _, t := range k.m.threads() {
		if t.threadID().Channel == channel {
			t.do(func(context.Context) { t.turn.refusedAt = time.Time{}; k.requestCheck(t) })
		}
	}
}

func (k *statusLoop) readScreen(ctx context.Context, t *thread) {
	looking, cancel := context.WithTimeout(ctx, screenTimeout)
	defer cancel()
	view, err := k.m.o.ScreenReader.View(looking, sessions.ViewRequest{Ref: t.ref, ID: t.sessionID})
	t.call(ctx, func(context.Context) { t.onScreen(view.State, k.m.o.Now(), err) })
}
