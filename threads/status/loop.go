// Package status shows in each thread whether its agent works: by a status of the chat service, or where it has none by one
// message that is edited.
package status

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions"
	"the-loop/sessions/loop"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

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

// ScreenReader reads the screens of agents.
type ScreenReader interface {
	View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error)
}

// Outbox queues messages.
type Outbox interface {
	Put(m *outbox.Message) error
	Withdraw(nonce string) bool
	IsPending(nonce string) bool
}

// Options are what a [Loop] and its [Turn]s are made of. All fields but the marked ones are required.
type Options struct {
	Chat         outbox.Chat
	Outbox       Outbox
	StatusSetter chat.StatusSetter // optional: messages tell of long turns
	ScreenReader ScreenReader      // optional: whether an agent works is known by its transcript alone
	AnswersOff   func() bool       // nothing that agents do is shown
	Clock        *chat.Clock
	Now          func() time.Time
	Log          *slog.Logger
}

// Thread is a thread as the loop needs it.
type Thread interface {
	Identity() (id string, ref sessions.Ref)
	NextStep(ctx context.Context, now time.Time, noStatuses bool) (Step, bool)
	BeginStep(ctx context.Context, s Step)
	FinishStep(ctx context.Context, s Step, r Result)
}

// Loop shows in every thread whether its agent is at work: by a status, or else by one message that is edited. One
// goroutine does all of it, so that neither replies nor answers ever wait for that.
type Loop struct {
	o      Options
	wakeup chan struct{}
	limits map[stepKind]*rate.Limiter

	mu          sync.Mutex // guards the fields that follow
	checkAt     map[Thread]time.Time
	noStatuses  bool      // the workspace has no statuses; asked again after a reconnect
	pausedUntil time.Time // Slack wants to be left alone
	failed      bool
}

// NewLoop makes a loop; [Loop.Run] must run for anything to be shown.
func NewLoop(o Options) *Loop {
	edits := rate.NewLimiter(rate.Every(editsEvery), editsBurst)
	return &Loop{o: o, wakeup: make(chan struct{}, 1), checkAt: map[Thread]time.Time{}, noStatuses: o.StatusSetter == nil,
		limits: map[stepKind]*rate.Limiter{stepReadScreen: rate.NewLimiter(rate.Every(screensEvery), screensBurst),
			stepSetStatus: rate.NewLimiter(rate.Every(statusEvery), statusBurst), stepEditMessage: edits, stepFindMessage: edits}}
}

// RequestCheck says that what a thread shows may be due to change.
func (k *Loop) RequestCheck(t Thread) { k.setCheckAt(t, time.Time{}) }

func (k *Loop) setCheckAt(t Thread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checkAt[t] = due
	loop.Wake(k.wakeup)
}

// OnConnected has the workspace tried again for statuses.
func (k *Loop) OnConnected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.noStatuses && k.o.StatusSetter != nil {
		k.noStatuses = false
		k.requestAll()
	}
}

// requestAll has each known thread checked. The caller holds mu.
func (k *Loop) requestAll() {
	for t := range k.checkAt {
		k.checkAt[t] = time.Time{}
	}
	loop.Wake(k.wakeup)
}

// Run works until ctx ends.
func (k *Loop) Run(ctx context.Context) {
	loop.Run(ctx, k.wakeup, func(ctx context.Context) time.Duration {
		t, wait := k.pick()
		if t == nil {
			return wait
		}
		k.process(ctx, t)
		return 0
	})
}

// pick takes the thread that has been due for the longest, or says how long to wait.
func (k *Loop) pick() (first Thread, wait time.Duration) {
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
	if wait = due.Sub(k.o.Now()); wait > 0 {
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

// Step is what is to be done for a thread now, outside of its goroutine.
type Step struct {
	kind  stepKind
	text  string
	post  chat.Post
	ts    string
	since time.Time // it was not posted before
	final bool      // the message is done with
	next  time.Time // when there is nothing to do: when there may be again; zero: not by itself
}

// Result is what became of a Step.
type Result struct {
	at   time.Time
	view sessions.View // of [stepReadScreen]
	ts   string        // of [stepFindMessage]
	err  error
}

// process takes the next Step for one thread.
func (k *Loop) process(ctx context.Context, t Thread) {
	k.mu.Lock()
	none := k.noStatuses
	k.mu.Unlock()
	now := k.o.Now()
	s, ok := t.NextStep(ctx, now, none)
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
func (k *Loop) scheduleCheck(t Thread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.checkAt[t]; !ok || due.Before(have) {
		k.checkAt[t] = due
	}
}

// runStep takes one Step.
func (k *Loop) runStep(ctx context.Context, t Thread, s Step) {
	calling, cancel := context.WithTimeout(ctx, statusCallTimeout)
	defer cancel()
	t.BeginStep(ctx, s)
	r := k.callFor(calling, t, s)
	r.at = k.o.Now()
	t.FinishStep(ctx, s, r)
	if ctx.Err() == nil {
		k.finishStep(t, s, r.err)
	}
}

func (k *Loop) callFor(ctx context.Context, t Thread, s Step) (r Result) {
	message := &outbox.Current{Chat: k.o.Chat, Post: s.post, State: outbox.State{TS: s.ts, Since: s.since, MaybePosted: true},
		Store: func(context.Context, outbox.State) error { return nil }} // the thread stores it with the result
	switch s.kind {
	case stepReadScreen:
		id, ref := t.Identity()
		r.view, r.err = k.o.ScreenReader.View(ctx, sessions.ViewRequest{Ref: ref, ID: id})
	case stepSetStatus:
		r.err = k.o.StatusSetter.SetStatus(ctx, s.post.Channel, s.post.Root, s.text)
	case stepFindMessage:
		r.err = message.Find(ctx)
	case stepEditMessage:
		r.err = message.Show(ctx)
	}
	r.ts = message.State.TS
	return r
}

// finishStep decides when a thread is checked again.
func (k *Loop) finishStep(t Thread, s Step, err error) {
	var limited *chat.RateLimitedError
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	k.checkAt[t] = time.Time{}
	switch {
	case err == nil, s.kind == stepReadScreen: // what a screen that cannot be read means is for the thread
		k.failed = false
	case errors.Is(err, chat.ErrNoStatus):
		k.o.Log.Info("this workspace shows no statuses; messages tell of long turns instead", "err", err)
		k.noStatuses = true
		k.requestAll()
	case errors.As(err, &limited):
		k.pausedUntil = now.Add(limited.After)
	default:
		k.checkAt[t] = now.Add(k.backoffFor(t, err))
	}
}

// backoffFor is how long one thread is left alone after a failure. The others are not.
func (k *Loop) backoffFor(t Thread, err error) time.Duration {
	if chat.FailureOf(err) != chat.FailureRetry {
		return statusRefusedPause
	}
	if _, ref := t.Identity(); !k.failed {
		k.o.Log.Warn("could not show whether an agent works; it is tried again", "ref", ref, "err", err)
	}
	k.failed = true
	return statusRetry
}
