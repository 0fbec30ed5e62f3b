package threads

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions"
)

// Statuses shows below a thread what its agent does, where the workspace has that.
type Statuses interface {
	// SetStatus shows a text of at most 50 characters behind the app's name, until the app posts in the thread or two
	// minutes are over. An empty one takes it away. [ErrNoStatus] where there is no such thing. Other errors as for [History].
	SetStatus(ctx context.Context, channel, root, text string) error
}

// Viewer reads the screens of agents.
type Viewer interface {
	View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error)
}

// ErrNoStatus says that the workspace shows no statuses, or not those of our app.
var ErrNoStatus = errors.New("the workspace shows no statuses of this app")

// What a status says.
const (
	statusWorks = "is working…"
	statusWaits = "is waiting for an answer…"
)

const (
	workSettles = time.Second // what is over sooner is not shown
	workPause   = 100 * time.Millisecond
	statusRenew = 100 * time.Second // before Slack takes the status away
	lookTimeout = 10 * time.Second
	workTimeout = 10 * time.Second // of one call of Slack
	workRetry   = 10 * time.Second // after one that failed
	workRefused = 5 * time.Minute  // how long a thread rests in which we may not write
)

// What is shown may take of Slack and of tmux at most this. Slack tells no limit for statuses; chat.update has some 50 calls a
// minute, which announcements and questions need too.
const (
	statusEvery = time.Second
	statusBurst = 20
	editsEvery  = 3 * time.Second
	editsBurst  = 5
	looksEvery  = 200 * time.Millisecond
	looksBurst  = 5
)

// working shows in every thread whether its agent is at work: by a status, or else by one message that is edited. One
// goroutine does all of it, so that neither replies nor answers ever wait for that.
type working struct {
	m      *Manager
	wake   chan struct{}
	limits map[stepKind]*rate.Limiter

	mu     sync.Mutex // guards the fields that follow
	due    map[*thread]time.Time
	none   bool      // the workspace has no statuses; asked again after a reconnect
	until  time.Time // Slack wants to be left alone
	failed bool
}

func newWorking(m *Manager) *working {
	edits := rate.NewLimiter(rate.Every(editsEvery), editsBurst)
	return &working{m: m, wake: make(chan struct{}, 1), due: map[*thread]time.Time{}, none: m.o.Statuses == nil,
		limits: map[stepKind]*rate.Limiter{stepLook: rate.NewLimiter(rate.Every(looksEvery), looksBurst),
			stepStatus: rate.NewLimiter(rate.Every(statusEvery), statusBurst), stepEdit: edits, stepFind: edits}}
}

// want says that what a thread shows may be due to change.
func (k *working) want(t *thread) { k.at(t, time.Time{}) }

func (k *working) at(t *thread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.due[t] = due
	poke(k.wake)
}

// connected has it asked again whether there are statuses.
func (k *working) connected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.none && k.m.o.Statuses != nil {
		k.none = false
		k.everybody()
	}
}

// everybody has each thread looked at that is kept here. The caller holds mu.
func (k *working) everybody() {
	for t := range k.due {
		k.due[t] = time.Time{}
	}
	poke(k.wake)
}

// run works until ctx ends.
func (k *working) run(ctx context.Context) {
	for {
		t, wait := k.pick()
		if t != nil {
			k.tend(ctx, t)
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
		case <-k.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pick takes the thread that has been due for the longest; without one, it says how long to wait.
func (k *working) pick() (first *thread, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for t, due := range k.due {
		if first == nil || due.Before(k.due[first]) {
			first = t
		}
	}
	if first == nil {
		return nil, time.Hour
	}
	due := k.due[first]
	if k.until.After(due) {
		due = k.until
	}
	if wait = due.Sub(k.m.o.Now()); wait > 0 {
		return nil, wait
	}
	delete(k.due, first)
	return first, 0
}

// stepKind says what is to be done for a thread.
type stepKind int

const (
	stepNone   stepKind = iota
	stepLook            // at its agent's screen
	stepStatus          // have the status say something else
	stepFind            // look for the message that tells of the turn
	stepEdit            // change that message
)

// step is what is to be done for a thread now, outside of its goroutine.
type step struct {
	kind  stepKind
	text  string
	post  Post
	ts    string
	since time.Time // it was not posted before
	final bool      // the message is done with
	next  time.Time // when there is nothing to do: when there may be again; zero: not by itself
}

// tend does what is to be done for one thread now, one thing at a time.
func (k *working) tend(ctx context.Context, t *thread) {
	k.mu.Lock()
	none := k.none
	k.mu.Unlock()
	now := k.m.o.Now()
	s, ok := ask(ctx, t, func(context.Context) step { return t.step(now, none) })
	switch {
	case !ok:
	case s.kind == stepNone && !s.next.IsZero():
		k.later(t, latest(s.next, now.Add(workPause)))
	case s.kind != stepNone:
		if wait := k.limits[s.kind].Reserve(); wait.Delay() > 0 {
			k.later(t, now.Add(wait.Delay()))
			wait.Cancel()
			return
		}
		k.do(ctx, t, s)
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// later has a thread looked at again then, unless somebody wants it sooner.
func (k *working) later(t *thread, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if have, ok := k.due[t]; !ok || due.Before(have) {
		k.due[t] = due
	}
}

func (k *working) do(ctx context.Context, t *thread, s step) {
	calling, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	var err error
	switch s.kind {
	case stepLook:
		k.look(ctx, t)
	case stepStatus:
		t.call(ctx, func(context.Context) { t.work.setting, t.work.unsure = true, false })
		err = k.m.o.Statuses.SetStatus(calling, s.post.Channel, s.post.Root, s.text)
		t.call(ctx, func(context.Context) { t.statusSet(s.text, k.m.o.Now(), err) })
	case stepFind:
		s.ts, err = k.m.o.History.FindPost(calling, s.post.Channel, s.post.Root, s.post.Nonce, s.since)
		t.call(ctx, func(context.Context) { t.workFound(s.post.Nonce, s.ts, err) })
	case stepEdit:
		err = k.m.o.Speaker.Update(calling, s.ts, s.post)
		t.call(ctx, func(context.Context) { t.workEdited(s, k.m.o.Now(), err) })
	}
	if ctx.Err() == nil {
		k.after(t, err)
	}
}

// after decides when a thread is looked at again, and takes in what Slack said.
func (k *working) after(t *thread, err error) {
	var limited *RateLimitedError
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.m.o.Now()
	k.due[t] = time.Time{}
	switch {
	case err == nil:
		k.failed = false
	case errors.Is(err, ErrNoStatus):
		k.m.o.Log.Info("this workspace shows no statuses; messages tell of long turns instead", "err", err)
		k.none = true
		k.everybody()
	case errors.As(err, &limited):
		k.until = now.Add(limited.After)
	default:
		k.due[t] = now.Add(k.pause(t, err))
	}
}

// pause is how long one thread rests after a failure. The others do not.
func (k *working) pause(t *thread, err error) time.Duration {
	if FailureOf(err) != FailureRetry {
		return workRefused
	}
	if !k.failed {
		k.m.o.Log.Warn("could not show whether an agent works; it is tried again", "ref", t.ref, "err", err)
	}
	k.failed = true
	return workRetry
}

// open has what was put off in a channel tried at once.
func (k *working) open(channel string) {
	for _, t := range k.m.threads() {
		if t.place().channel == channel {
			t.do(func(context.Context) { t.work.refused = time.Time{}; k.want(t) })
		}
	}
}

func (k *working) look(ctx context.Context, t *thread) {
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	view, err := k.m.o.Viewer.View(looking, sessions.ViewRequest{Ref: t.ref, ID: t.id})
	t.call(ctx, func(context.Context) { t.saw(view.State, k.m.o.Now(), err) })
}
