package reconcile

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
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// How often records, panes and threads are compared without a signal: so long the end of an agent may stay unnoticed. Where every change
// is signalled, the comparison is only a safeguard.
const (
	reconcileEvery     = 3 * time.Second
	reconcileIdleEvery = 30 * time.Second
	reconcileAfterExit = 200 * time.Millisecond // while tmux still shows a process that has ended
)

// A failed announcement is retried after a pause that doubles.
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

// SessionInspector shows how sessions are.
type SessionInspector interface {
	List(ctx context.Context) ([]sessions.Row, error)
	InspectLocked(ctx context.Context, q sessions.InspectRequest) (sessions.Row, error)
	Peek(ctx context.Context, q sessions.PeekRequest) (sessions.PeekResult, error)
}

// Bindings are the threads of sessions.
type Bindings interface {
	Sessions() map[string]sessions.Ref
	IsBound(id string) bool
	Unbind(ctx context.Context, id string) error
}

// Announcements posts and edits the roots of threads.
type Announcements interface {
	Announce(ctx context.Context, a threads.AnnounceRequest) error
	AnnouncementMatches(ctx context.Context, id string, p chat.Post) bool
	UpdateAnnouncement(ctx context.Context, id string, p chat.Post) error
}

// Notifier tells threads what happened to their sessions.
type Notifier interface {
	Notify(ctx context.Context, id string, n threads.Notification) bool
	WasNotified(ctx context.Context, id, once string) bool
	AgentEnded(ctx context.Context, id string, at time.Time)
}

// Channels knows where sessions are announced.
type Channels interface {
	// AnnounceChannel is where a session is announced, by the id that the channel has now; empty: nowhere.
	AnnounceChannel(r sessions.Row) string
	// CheckPostable fails when nothing of sessions may be posted in the channel.
	CheckPostable(ctx context.Context, channel string) error
	// StaleIDs are the entries of the configuration that name a channel by an old id.
	StaleIDs(rows []sessions.Row) []error
	// Advise adds to an error of the chat service what to do about it.
	Advise(err error) error
}

// AnnouncerOptions are what an [Announcer] is made of. All fields but Changed are required. The functions must not block, but for
// OnRows.
type AnnouncerOptions struct {
	Sessions      SessionInspector
	Bindings      Bindings
	Announcements Announcements
	Notifier      Notifier
	Channels      Channels
	Sink          sessions.Sink
	Changed       <-chan struct{}                                // signals that records or the configuration changed; nil: never
	Complete      func() bool                                    // whether every change of a session is signalled, beside ends of agents
	OnRows        func(ctx context.Context, rows []sessions.Row) // called with the sessions after each comparison
	OnChange      func()                                         // called when something asked for another comparison
	OnProblem     func()                                         // called when [Announcer.Problem] changed
	Scrub         func(string) string                            // removes the values of the environment from a text
	Log           *slog.Logger
}

// Announcer announces running sessions, keeps announcements true, tells threads of agents that ended, and unbinds the threads of
// deleted sessions. One goroutine runs it.
type Announcer struct {
	o        AnnouncerOptions
	wakeup   chan struct{}
	activity chan struct{} // see NoteActivity
	exits    *exitWatcher

	changesSignalled bool                        // the next change will be signalled
	failures         map[string]*announceFailure // by session id
	postLimits       map[string]*rate.Limiter    // by channel
	editLimit        *rate.Limiter
	retryIn          time.Duration // when the next deferred post is due; 0: none was deferred

	mu          sync.Mutex // guards the fields that follow
	lastProblem string
	retryNow    bool // retry failed posts at once
}

// announceFailure is an announcement that failed.
type announceFailure struct {
	pause   time.Duration
	retryAt time.Time
	err     error
}

// NewAnnouncer returns an announcer that [Announcer.Run] starts.
func NewAnnouncer(o AnnouncerOptions) *Announcer {
	a := &Announcer{o: o, wakeup: make(chan struct{}, 1), activity: make(chan struct{}, 1), failures: map[string]*announceFailure{},
		postLimits: map[string]*rate.Limiter{}, editLimit: rate.NewLimiter(rate.Every(editEvery), editBurst)}
	a.exits = newExitWatcher(a.Wake)
	return a
}

// Wake makes the next comparison happen at once.
func (a *Announcer) Wake() {
	select {
	case a.wakeup <- struct{}{}:
	default:
	}
}

// Retry retries failed posts at once: they may succeed now.
func (a *Announcer) Retry() {
	a.mu.Lock()
	a.retryNow = true
	a.mu.Unlock()
	a.Wake()
}

// applyRetry makes failed posts due after a call of Retry.
func (a *Announcer) applyRetry() {
	a.mu.Lock()
	now := a.retryNow
	a.retryNow = false
	a.mu.Unlock()
	for _, f := range a.failures {
		if now {
			f.retryAt = time.Time{}
		}
	}
}

// Problem says why sessions are not announced; empty: they are.
func (a *Announcer) Problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lastProblem
}

// NoteActivity says that an agent did something: its session may have changed. It does not hasten the regular comparison.
func (a *Announcer) NoteActivity() {
	select {
	case a.activity <- struct{}{}:
	default:
	}
}

// Run compares until ctx ends.
func (a *Announcer) Run(ctx context.Context) {
	defer a.exits.close()
	for ctx.Err() == nil {
		a.reconcileOnce(ctx)
		if a.waitForWork(ctx, time.Now()) {
			a.o.OnChange()
		}
	}
}

// waitForWork waits until the next comparison is due, and reports whether a change asked for it.
func (a *Announcer) waitForWork(ctx context.Context, now time.Time) (asked bool) {
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
		case <-a.o.Changed:
			return true
		case <-a.activity:
			if wait > reconcileEvery {
				wait = reconcileEvery
				timer.Reset(max(0, wait-time.Since(now)))
			}
		}
	}
}

// watchExits watches the processes of the agents. While the state of a session is unknown, comparisons stay frequent.
func (a *Announcer) watchExits(rows []sessions.Row) {
	pids, known := map[int]bool{}, true
	for _, r := range rows {
		known = known && r.State != sessions.StateUnknown
		if r.Running {
			pids[r.PID] = true
		}
	}
	watched := a.exits.watch(pids)
	a.changesSignalled = known && watched && a.o.Changed != nil && a.o.Complete()
	if a.exits.exitedRecently() {
		a.scheduleWithin(reconcileAfterExit)
	}
}

// reconcileOnce compares once, and keeps what failed for the status.
func (a *Announcer) reconcileOnce(ctx context.Context) {
	a.retryIn = 0
	a.applyRetry()
	rows, err := a.o.Sessions.List(ctx)
	if err != nil {
		a.o.Log.Warn("could not list the sessions", "err", err)
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
		a.o.OnRows(ctx, rows)
	}
}

// setProblem keeps why sessions are not announced; nil: they are.
func (a *Announcer) setProblem(err error) {
	a.mu.Lock()
	before := a.lastProblem
	a.lastProblem = ""
	if err != nil {
		a.lastProblem = err.Error()
	}
	changed := a.lastProblem != before
	a.mu.Unlock()
	if changed {
		a.o.OnProblem()
	}
}

// reconcile brings the channels in line with the rows. It does what it can and returns what failed.
func (a *Announcer) reconcile(ctx context.Context, rows []sessions.Row) error {
	var errs []error
	for _, r := range rows {
		if err := a.reconcileSession(ctx, r); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, a.unbindDeleted(ctx, rows)...)
	return summarizeErrors(append(errs, a.o.Channels.StaleIDs(rows)...))
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

// reconcileSession announces a running session, updates its announcement, and tells its thread when the agent ended.
func (a *Announcer) reconcileSession(ctx context.Context, r sessions.Row) error {
	bound := a.o.Bindings.IsBound(r.ID)
	wanted := r.Running && r.Chat.Enabled || bound
	if r.ID == "" || r.State == sessions.StateUnknown || r.State == sessions.StateBroken || !wanted {
		return nil
	}
	if r.State == sessions.StateStopped {
		a.o.Notifier.AgentEnded(ctx, r.ID, r.Changed)
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

// inspectTimeout is how long a session whose agent seems to have ended may be locked by another verb before the next comparison inspects
// it again.
const inspectTimeout = 500 * time.Millisecond

// confirmEnded makes sure that an agent ended on its own, and tells the thread once per run. It returns false while another verb stops
// or starts the session.
func (a *Announcer) confirmEnded(ctx context.Context, r sessions.Row) (sessions.Row, bool) {
	once := "ended." + strconv.FormatInt(r.Changed.UnixNano(), 10)
	if a.o.Notifier.WasNotified(ctx, r.ID, once) {
		return r, true
	}
	inspecting, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	now, err := a.o.Sessions.InspectLocked(inspecting, sessions.InspectRequest{Ref: r.Ref})
	switch {
	case err != nil || now.ID != r.ID || now.State == sessions.StateUnknown:
		return r, false
	case now.State != sessions.StateEnded || !now.Changed.Equal(r.Changed):
		return r, false // it was stopped or started: the next comparison shows its state
	}
	a.o.Notifier.AgentEnded(ctx, r.ID, time.Now())
	screen := ""
	if p, err := a.o.Sessions.Peek(ctx, sessions.PeekRequest{Ref: r.Ref}); err == nil {
		screen = a.o.Scrub(p.Text)
	}
	r.Detail = now.Detail
	if a.o.Notifier.Notify(ctx, r.ID, threads.Notification{Text: render.EndedText(now, screen), Once: once}) {
		a.o.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(r.Ref, sessions.EventEnded), Level: slog.LevelWarn, Ref: r.Ref, ID: r.ID,
			Fields: map[string]any{"detail": now.Detail, "harness": r.Harness}})
	}
	return r, true
}

// recordFailure schedules a retry of an announcement, and emits the failure once.
func (a *Announcer) recordFailure(ctx context.Context, r sessions.Row, bound bool, err error) error {
	f := a.failures[r.ID]
	if f == nil {
		f = &announceFailure{pause: announceRetry}
		a.failures[r.ID] = f
		if !bound {
			a.o.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(r.Ref, threads.EventAnnounceErr), Level: slog.LevelWarn, Ref: r.Ref, ID: r.ID,
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
	a.o.Log.Warn("could not announce a session; retrying", "ref", r.Ref, "err", err, "after", pause)
	f.retryAt, f.err = time.Now().Add(pause), fmt.Errorf("%s is not announced as it is: %w", r.Ref, a.o.Channels.Advise(err))
	a.scheduleWithin(pause)
	return f.err
}

// scheduleWithin makes the next comparison happen after d at the latest.
func (a *Announcer) scheduleWithin(d time.Duration) {
	if a.retryIn == 0 || d < a.retryIn {
		a.retryIn = max(d, 10*time.Millisecond)
	}
}

func (a *Announcer) announce(ctx context.Context, r sessions.Row, bound bool) error {
	channel := a.o.Channels.AnnounceChannel(r)
	if channel == "" {
		return fmt.Errorf("%s has no channel: set channels.slack.channel", r.Ref)
	}
	post := announcementPost(r)
	if bound && a.o.Announcements.AnnouncementMatches(ctx, r.ID, post) {
		return nil
	}
	if !a.reserve(channel, bound) {
		return errDeferred
	}
	if !bound {
		if err := a.o.Channels.CheckPostable(ctx, channel); err != nil {
			return err
		}
	}
	return a.o.Announcements.Announce(ctx, threads.AnnounceRequest{ID: r.ID, Ref: r.Ref, Channel: channel, Started: r.Changed, Post: post})
}

// announcementPost is the announcement of a session in its present state.
func announcementPost(r sessions.Row) chat.Post {
	p := chat.Post{Text: render.Announcement(r)}
	for _, b := range render.SessionButtons(r) {
		p.Buttons = append(p.Buttons, chat.Button(b))
	}
	return p
}

// errDeferred says that a rate limit allows no post at the moment.
var errDeferred = errors.New("deferred")

// reserve reports whether the rate limits allow another post in the channel, or another edit, now. If not it schedules a comparison.
func (a *Announcer) reserve(channel string, edit bool) bool {
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

// unbindDeleted unbinds the threads of deleted sessions. A session whose record cannot be read does not count as deleted.
func (a *Announcer) unbindDeleted(ctx context.Context, rows []sessions.Row) []error {
	there, broken := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		there[r.ID] = true
		broken[r.TmuxTarget] = broken[r.TmuxTarget] || r.State == sessions.StateBroken
	}
	var errs []error
	for id, ref := range a.o.Bindings.Sessions() {
		if there[id] || broken[ref.TmuxName()] {
			continue
		}
		if err := a.unbindSession(ctx, id, ref); err != nil && ctx.Err() == nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// unbindSession makes the announcement say that its session was deleted, and unbinds the thread. Where the announcement can no longer
// be edited, it unbinds the thread all the same.
func (a *Announcer) unbindSession(ctx context.Context, id string, ref sessions.Ref) error {
	if f := a.failures[id]; f != nil && time.Now().Before(f.retryAt) {
		return f.err
	}
	err := a.o.Announcements.UpdateAnnouncement(ctx, id, chat.Post{Text: render.DeletedAnnouncement(ref)})
	if f := chat.FailureOf(err); err == nil || f == chat.FailureMessage || f == chat.FailureChannel {
		delete(a.failures, id)
		return a.o.Bindings.Unbind(ctx, id)
	}
	return a.recordFailure(ctx, sessions.Row{ID: id, Ref: ref}, true, err)
}
