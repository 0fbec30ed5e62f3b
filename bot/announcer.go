package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// How often records, panes and threads are compared when nothing says that they changed: so long an agent that ended on its own
// may stay unnoticed. Where the system tells of ends, of agents' records and of ours, a comparison without a sign only makes sure.
const (
	reconcileEvery     = 3 * time.Second
	reconcileIdleEvery = 30 * time.Second
	reconcileAfterExit = 200 * time.Millisecond // while tmux still shows a process that has ended
)

// An announcement that failed is tried again after a pause that doubles.
const (
	announceRetry    = 5 * time.Second
	announceRetryMax = time.Minute
)

// Slack takes a message a second in a channel, with a short burst over it, and about 50 edits a minute.
const (
	announceEvery = 1100 * time.Millisecond
	announceBurst = 2
	editEvery     = 1300 * time.Millisecond
	editBurst     = 10
)

// announcer reconciles: it announces running sessions, keeps announcements true, tells threads of agents that ended, and
// unbinds the threads of sessions that are gone. One goroutine runs it.
type announcer struct {
	b        *Bot
	wakeup   chan struct{}
	activity chan struct{} // see stirred
	exits    *exitWatcher

	changesSignalled bool                        // what is waited for will be told of
	failures         map[string]*announceFailure // by session id
	postLimits       map[string]*rate.Limiter
	editLimit        *rate.Limiter
	retryIn          time.Duration // retryAt what was put off is due; 0: nothing was

	mu          sync.Mutex // guards the fields that follow
	lastProblem string
	retryNow    bool // what failed is tried again at once
}

// announceFailure is an announcement that did not come through.
type announceFailure struct {
	pause   time.Duration
	retryAt time.Time
	err     error
}

func newAnnouncer(b *Bot) *announcer {
	a := &announcer{b: b, wakeup: make(chan struct{}, 1), activity: make(chan struct{}, 1), failures: map[string]*announceFailure{},
		postLimits: map[string]*rate.Limiter{}, editLimit: rate.NewLimiter(rate.Every(editEvery), editBurst)}
	a.exits = newExitWatcher(a.wake)
	return a
}

// wake has the next comparison made at once.
func (a *announcer) wake() {
	select {
	case a.wakeup <- struct{}{}:
	default:
	}
}

// retry has what failed tried again at once: something may be better now.
func (a *announcer) retry() {
	a.mu.Lock()
	a.retryNow = true
	a.mu.Unlock()
	a.wake()
}

// applyRetry makes what failed due, when something may be better now.
func (a *announcer) applyRetry() {
	a.mu.Lock()
	healing := a.retryNow
	a.retryNow = false
	a.mu.Unlock()
	for _, f := range a.failures {
		if healing {
			f.retryAt = time.Time{}
		}
	}
}

// problem is what keeps sessions from being announced.
func (a *announcer) problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lastProblem
}

// stirred says that an agent did something: what its session is may have changed, and is compared as often as that is done.
func (a *announcer) noteActivity() {
	select {
	case a.activity <- struct{}{}:
	default:
	}
}

func (a *announcer) run(ctx context.Context) {
	defer a.exits.close()
	for ctx.Err() == nil {
		a.reconcileOnce(ctx)
		if a.waitForWork(ctx, time.Now()) {
			a.b.driftNotice.wake()
		}
	}
}

// rest waits until the next comparison is due, and reports whether something called for it.
func (a *announcer) waitForWork(ctx context.Context, now time.Time) (called bool) {
	wait := reconcileEvery
	if a.changesSignalled {
		wait = reconcileIdleEvery
	}
	if a.retryIn > 0 {
		wait = min(wait, a.retryIn)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-a.wakeup:
			return true
		case <-a.b.o.Changed:
			return true
		case <-a.activity:
			if wait > reconcileEvery {
				wait = reconcileEvery
				timer.Reset(max(0, wait-time.Since(now)))
			}
		}
	}
}

// listen has the ends of the agents heard. Of a session of which tmux does not say how it is, it is asked again soon.
func (a *announcer) watchExits(rows []sessions.Row) {
	pids, known := map[int]bool{}, true
	for _, r := range rows {
		known = known && r.State != sessions.StateUnknown
		if r.Running {
			pids[r.PID] = true
		}
	}
	heard := a.exits.watch(pids)
	a.changesSignalled = known && heard && a.b.o.Changed != nil && a.b.transcripts.allWatched()
	if a.exits.exitedRecently() {
		a.scheduleWithin(reconcileAfterExit)
	}
}

// reconcileOnce compares once, and keeps what could not be done for the status.
func (a *announcer) reconcileOnce(ctx context.Context) {
	a.retryIn = 0
	a.applyRetry()
	rows, err := a.b.o.Core.List(ctx)
	if err != nil {
		a.b.o.Log.Warn("could not list the sessions", "err", err)
	} else {
		err = a.reconcile(ctx, rows)
	}
	if ctx.Err() != nil {
		return
	}
	a.setProblem(err)
	a.changesSignalled = false
	if rows != nil {
		a.watchExits(rows)
		a.b.transcripts.setRuns(rows)
		a.b.home.refresh(ctx, rows)
	}
}

// setProblem notes what keeps sessions from being announced; nil: nothing does.
func (a *announcer) setProblem(err error) {
	a.mu.Lock()
	before := a.lastProblem
	a.lastProblem = ""
	if err != nil {
		a.lastProblem = err.Error()
	}
	changed := a.lastProblem != before
	a.mu.Unlock()
	if changed {
		a.b.StatusChanged()
	}
}

// reconcile brings Slack in line with the rows. It returns what could not be done, and has done the rest.
func (a *announcer) reconcile(ctx context.Context, rows []sessions.Row) error {
	var errs []error
	for _, r := range rows {
		if err := a.reconcileSession(ctx, r); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, a.unbindDeleted(ctx, rows)...)
	return summarizeErrors(append(errs, a.b.staleChannelIDs(rows)...))
}

// summarizeErrors is the first of errors, and how many more there are: a hundred sessions that cannot be announced have one cause.
func summarizeErrors(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return fmt.Errorf("%w (and %d more)", errs[0], len(errs)-1)
}

// reconcileSession announces a session that runs, brings an announcement up to date, and tells of an agent that ended.
func (a *announcer) reconcileSession(ctx context.Context, r sessions.Row) error {
	bound := a.b.threads.IsBound(r.ID)
	wanted := r.Running && r.Chat.Enabled || bound
	if r.ID == "" || r.State == sessions.StateUnknown || r.State == sessions.StateBroken || !wanted {
		return nil
	}
	if r.State == sessions.StateStopped {
		a.b.threads.AgentEnded(ctx, r.ID, r.Changed)
	}
	if r.State == sessions.StateEnded {
		var sure bool
		if r, sure = a.confirmEnded(ctx, r); !sure {
			return nil
		}
	}
	if f := a.failures[r.ID]; f != nil && time.Now().Before(f.retryAt) {
		return f.err
	}
	err := a.announce(ctx, r, bound)
	switch {
	case errors.Is(err, errDeferred):
		if f := a.failures[r.ID]; f != nil {
			return f.err
		}
		return nil
	case err == nil || ctx.Err() != nil:
		delete(a.failures, r.ID)
		return nil
	}
	return a.recordFailure(ctx, r, bound, err)
}

// inspectTimeout is how long a session whose agent seems to have ended may be busy before it is looked at the next time.
const inspectTimeout = 500 * time.Millisecond

// confirmEnded makes sure that an agent ended on its own, and tells the thread, once for each run. A session that another verb is
// just taking down or up is left alone meanwhile: then it returns false.
func (a *announcer) confirmEnded(ctx context.Context, r sessions.Row) (sessions.Row, bool) {
	once := "ended." + strconv.FormatInt(r.Changed.UnixNano(), 10)
	if a.b.threads.WasNotified(ctx, r.ID, once) {
		return r, true
	}
	looking, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	now, err := a.b.o.Core.InspectLocked(looking, sessions.InspectRequest{Ref: r.Ref})
	switch {
	case err != nil || now.ID != r.ID || now.State == sessions.StateUnknown:
		return r, false
	case now.State != sessions.StateEnded || !now.Changed.Equal(r.Changed):
		return r, false // it was taken down, or up again: the next look shows how it is
	}
	a.b.threads.AgentEnded(ctx, r.ID, time.Now())
	screen := ""
	if p, err := a.b.o.Core.Peek(ctx, sessions.PeekRequest{Ref: r.Ref}); err == nil {
		screen = a.b.scrub(p.Text)
	}
	r.Detail = now.Detail
	if a.b.threads.Notify(ctx, r.ID, threads.Notification{Text: render.Ended(now, screen), Once: once}) {
		a.b.o.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(r.Ref, sessions.EventEnded), Level: slog.LevelWarn, Ref: r.Ref, ID: r.ID,
			Fields: map[string]any{"detail": now.Detail, "harness": r.Harness}})
	}
	return r, true
}

// recordFailure has an announcement tried again later, and records it once.
func (a *announcer) recordFailure(ctx context.Context, r sessions.Row, bound bool, err error) error {
	f := a.failures[r.ID]
	if f == nil {
		f = &announceFailure{pause: announceRetry}
		a.failures[r.ID] = f
		if !bound {
			a.b.o.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(r.Ref, threads.EventAnnounceErr), Level: slog.LevelWarn, Ref: r.Ref, ID: r.ID,
				Fields: map[string]any{"reason": err.Error()}})
		}
	}
	var limited *chat.RateLimitedError
	pause := f.pause
	switch chat.FailureOf(err) {
	case chat.FailureWait:
		errors.As(err, &limited)
		pause = max(limited.After, time.Second)
	case chat.FailureMessage, chat.FailureApp:
		pause = announceRetryMax
	default:
		f.pause = min(2*f.pause, announceRetryMax)
	}
	a.b.o.Log.Warn("could not announce a session; it is tried again", "ref", r.Ref, "err", err, "after", pause)
	f.retryAt, f.err = time.Now().Add(pause), fmt.Errorf("%s is not announced as it is: %w", r.Ref, a.withAdvice(err))
	a.scheduleWithin(pause)
	return f.err
}

// withAdvice adds to an error of Slack's what to do about it.
func (a *announcer) withAdvice(err error) error {
	switch slack.ErrorCode(err) {
	case "not_in_channel", "channel_not_found":
		return fmt.Errorf("%w: write `/invite @%s` in the channel", err, a.b.o.Client.Self().Name)
	case "is_archived":
		return fmt.Errorf("%w: unarchive the channel, or use another one", err)
	}
	return err
}

// scheduleWithin has the next comparison made after d at the latest.
func (a *announcer) scheduleWithin(d time.Duration) {
	if a.retryIn == 0 || d < a.retryIn {
		a.retryIn = max(d, 10*time.Millisecond)
	}
}

func (a *announcer) announce(ctx context.Context, r sessions.Row, bound bool) error {
	channel := a.b.announceChannel(r)
	if channel == "" {
		return fmt.Errorf("%s has no channel: set channels.slack.channel", r.Ref)
	}
	post := announcementPost(r)
	if bound && a.b.threads.AnnouncementMatches(ctx, r.ID, post) {
		return nil
	}
	if !a.reserve(channel, bound) {
		return errDeferred
	}
	if !bound {
		if err := a.b.sharing.Check(ctx, channel); err != nil {
			return err
		}
	}
	return a.b.threads.Announce(ctx, threads.AnnounceRequest{ID: r.ID, Ref: r.Ref, Channel: channel, Started: r.Changed, Post: post})
}

// announcementPost is the announcement of a session as it is.
func announcementPost(r sessions.Row) chat.Post {
	p := chat.Post{Text: render.Announcement(r)}
	for _, b := range render.Buttons(r) {
		p.Buttons = append(p.Buttons, chat.Button(b))
	}
	return p
}

// errDeferred says that Slack takes no more for the moment.
var errDeferred = errors.New("put off")

// reserve reports whether Slack takes another post in the channel, or another edit, now. If not it is put off.
func (a *announcer) reserve(channel string, edit bool) bool {
	limit := a.editLimit
	if !edit {
		if limit = a.postLimits[channel]; limit == nil {
			limit = rate.NewLimiter(rate.Every(announceEvery), announceBurst)
			a.postLimits[channel] = limit
		}
	}
	permit := limit.Reserve()
	wait := permit.Delay()
	if wait == 0 {
		return true
	}
	permit.Cancel()
	a.scheduleWithin(wait)
	return false
}

// unbindDeleted ends the threads of sessions that are gone. While a record cannot be read, its session may not be.
func (a *announcer) unbindDeleted(ctx context.Context, rows []sessions.Row) []error {
	there, broken := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		there[r.ID] = true
		broken[r.TmuxTarget] = broken[r.TmuxTarget] || r.State == sessions.StateBroken
	}
	var errs []error
	for id, ref := range a.b.threads.Sessions() {
		if there[id] || broken[ref.TmuxName()] {
			continue
		}
		if err := a.unbindSession(ctx, id, ref); err != nil && ctx.Err() == nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// part has the announcement say that its session is gone, and ends the thread. Where the announcement cannot be changed
// any more, the thread ends all the same.
func (a *announcer) unbindSession(ctx context.Context, id string, ref sessions.Ref) error {
	if f := a.failures[id]; f != nil && time.Now().Before(f.retryAt) {
		return f.err
	}
	err := a.b.threads.UpdateAnnouncement(ctx, id, chat.Post{Text: render.Deleted(ref)})
	if f := chat.FailureOf(err); err == nil || f == chat.FailureMessage || f == chat.FailureChannel {
		delete(a.failures, id)
		return a.b.threads.Unbind(ctx, id)
	}
	return a.recordFailure(ctx, sessions.Row{ID: id, Ref: ref}, true, err)
}
