package threads

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
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
	statusCallTimeout  = 10 * time.Second  // of one call of Slack
	statusRetry        = 10 * time.Second  // after one that failed
	statusRefusedPause = 5 * time.Minute   // how long a thread is left alone in which we may not write
)

// The most calls for statuses. Slack documents no limit for them; chat.update has some 50 calls a minute, which announcements and
// prompts need too.
const (
	statusEvery  = time.Second
	statusBurst  = 20
	editsEvery   = 3 * time.Second
	editsBurst   = 5
	screensEvery = 200 * time.Millisecond
	screensBurst = 5
)

// statusThread is a thread as the status loop needs it.
type statusThread interface {
	identity() (id string, ref sessions.Ref, at chat.ThreadID)
	nextStatusStep(ctx context.Context, now time.Time, noStatuses bool) (step, bool)
	beginStatusStep(ctx context.Context, s step)
	finishStatusStep(ctx context.Context, s step, r stepResult)
}

// statusLoop shows in every thread whether its agent is at work: by a status, or else by one message that is edited. One
// goroutine does all of it, so that neither replies nor answers ever wait for that.
type statusLoop struct {
	sv     *services
	wakeup chan struct{}
	limits map[stepKind]*rate.Limiter

	mu          sync.Mutex // guards the fields that follow
	checkAt     map[statusThread]time.Time
	noStatuses  bool      // the workspace has no statuses; asked again after a reconnect
	pausedUntil time.Time // Slack wants to be left alone
	failed      bool
}

func newStatusLoop(sv *services) *statusLoop {
	edits := rate.NewLimiter(rate.Every(editsEvery), editsBurst)
	return &statusLoop{sv: sv, wakeup: make(chan struct{}, 1), checkAt: map[statusThread]time.Time{}, noStatuses: sv.StatusSetter == nil,
		limits: map[stepKind]*rate.Limiter{stepReadScreen: rate.NewLimiter(rate.Every(screensEvery), screensBurst),
			stepSetStatus: rate.NewLimiter(rate.Every(statusEvery), statusBurst), stepEditMessage: edits, stepFindMessage: edits}}
}

// requestCheck says that what a thread shows may be due to change.
func (k *statusLoop) requestCheck(t statusThread) { k.setCheckAt(t, time.Time{}) }

func (k *statusLoop) setCheckAt(t statusThread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checkAt[t] = due
	wake(k.wakeup)
}

// onConnected has the workspace tried again for statuses.
func (k *statusLoop) onConnected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.noStatuses && k.sv.StatusSetter != nil {
		k.noStatuses = false
		k.requestAll()
	}
}

// requestAll has each known thread checked. The caller holds mu.
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

// pick takes the thread that has been due for the longest, or says how long to wait.
func (k *statusLoop) pick() (first statusThread, wait time.Duration) {
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
	if wait = due.Sub(k.sv.Now()); wait > 0 {
		return nil, wait
	}
	delete(k.checkAt, first)
	return first, 0
}

// stepKind says what is to be done for a thread.
type stepKind int

const (
	stepNone        stepKind = iota
	stepReadScreen           // read its agent's screen
	stepSetStatus            // set the status
	stepFindMessage          // look for the message that tells of the turn
	stepEditMessage          // edit that message
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

// stepResult is what became of a step.
type stepResult struct {
	at   time.Time
	view sessions.View // of [stepReadScreen]
	ts   string        // of [stepFindMessage]
	err  error
}

// process takes the next step for one thread.
func (k *statusLoop) process(ctx context.Context, t statusThread) {
	k.mu.Lock()
	none := k.noStatuses
	k.mu.Unlock()
	now := k.sv.Now()
	s, ok := t.nextStatusStep(ctx, now, none)
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

// scheduleCheck has a thread checked then, unless that is due sooner.
func (k *statusLoop) scheduleCheck(t statusThread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.checkAt[t]; !ok || due.Before(have) {
		k.checkAt[t] = due
	}
}

// runStep takes one step.
func (k *statusLoop) runStep(ctx context.Context, t statusThread, s step) {
	calling, cancel := context.WithTimeout(ctx, statusCallTimeout)
	defer cancel()
	t.beginStatusStep(ctx, s)
	r := k.callFor(calling, t, s)
	r.at = k.sv.Now()
	t.finishStatusStep(ctx, s, r)
	if ctx.Err() == nil {
		k.finishStep(t, s, r.err)
	}
}

func (k *statusLoop) callFor(ctx context.Context, t statusThread, s step) (r stepResult) {
	message := &outbox.Current{Chat: k.sv.chat(), Post: s.post, State: outbox.State{TS: s.ts, Since: s.since, MaybePosted: true},
		Store: func(context.Context, outbox.State) error { return nil }} // the thread stores it with the result
	switch s.kind {
	case stepReadScreen:
		id, ref, _ := t.identity()
		r.view, r.err = k.sv.ScreenReader.View(ctx, sessions.ViewRequest{Ref: ref, ID: id})
	case stepSetStatus:
		r.err = k.sv.StatusSetter.SetStatus(ctx, s.post.Channel, s.post.Root, s.text)
	case stepFindMessage:
		r.err = message.Find(ctx)
	case stepEditMessage:
		r.err = message.Show(ctx)
	}
	r.ts = message.State.TS
	return r
}

// finishStep decides when a thread is checked again.
func (k *statusLoop) finishStep(t statusThread, s step, err error) {
	var limited *chat.RateLimitedError
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.sv.Now()
	k.checkAt[t] = time.Time{}
	switch {
	case err == nil, s.kind == stepReadScreen: // what a screen that cannot be read means is for the thread
		k.failed = false
	case errors.Is(err, chat.ErrNoStatus):
		k.sv.Log.Info("this workspace shows no statuses; messages tell of long turns instead", "err", err)
		k.noStatuses = true
		k.requestAll()
	case errors.As(err, &limited):
		k.pausedUntil = now.Add(limited.After)
	default:
		k.checkAt[t] = now.Add(k.backoffFor(t, err))
	}
}

// backoffFor is how long one thread is left alone after a failure. The others are not.
func (k *statusLoop) backoffFor(t statusThread, err error) time.Duration {
	if chat.FailureOf(err) != chat.FailureRetry {
		return statusRefusedPause
	}
	if _, ref, _ := t.identity(); !k.failed {
		k.sv.Log.Warn("could not show whether an agent works; it is tried again", "ref", ref, "err", err)
	}
	k.failed = true
	return statusRetry
}
