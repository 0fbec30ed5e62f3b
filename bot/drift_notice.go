package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/authz"
	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// RollingRestarter tell of sessions that run on a stale environment, and restart them onto the new one.
type RollingRestarter interface {
	Drift(ctx context.Context) sessions.Drift
	RollingRestart(ctx context.Context, q sessions.RollingRestartRequest) (sessions.RestartResult, error)
}

const (
	// driftEvery is how often the environments are compared when nothing says that something changed.
	driftEvery = 15 * time.Second
	// staleConfirmAfter is how long sessions must be found stale before the channel is told: a file that is being written, and an
	// agent that is being started, look stale for a moment.
	staleConfirmAfter = 700 * time.Millisecond
	// restartWait is how long who gave the command waits for its answer; below the time-out of an act.
	restartWait = 50 * time.Second
)

// driftNotice keeps one message in the channel while sessions run on a stale environment, and restarts them when somebody who
// may asks for it, one restart at a time. One goroutine posts and edits.
type driftNotice struct {
	b          *Bot
	wakeup     chan struct{}
	editLimit  *rate.Limiter
	nextIn     time.Duration // until the next look is due
	retryAt    time.Time     // Slack asked to wait until then
	backoff    time.Duration // after a failure
	staleSince time.Time     // since when sessions are found stale while there is no message
	lastChange int           // [sessions.Drift.Edit] that the message is about; 0: not known since the start

	mu      sync.Mutex // guards the fields that follow
	state   driftState
	loadErr error // the state cannot be read: nothing is posted, so that nothing is told twice
	job     *restartJob
}

// restartJob is a restart that is under way.
type restartJob struct {
	by      string
	all     bool // also those that hold what is declared
	started bool
	total   int // how many were stale
	rows    []sessions.RestartRow
	done    chan struct{} // closed when the fields that follow are set
	result  sessions.RestartResult
	err     error
}

func newDriftNotice(b *Bot) *driftNotice {
	r := &driftNotice{b: b, wakeup: make(chan struct{}, 1), editLimit: rate.NewLimiter(rate.Every(editEvery), 3)}
	r.state, r.loadErr = loadDriftState(b.o.Root)
	if r.loadErr != nil {
		b.o.Log.Error("what was told of the env file's change cannot be read; nothing is told of it until that is mended", "err", r.loadErr)
	}
	return r
}

// wake has the next look made at once.
func (r *driftNotice) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// run looks, tells and restarts until ctx ends, and returns when nothing of it runs any more.
func (r *driftNotice) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	r.resumeJob(ctx)
	for {
		r.startJob(ctx, &wg)
		r.nextIn = driftEvery
		r.reconcile(ctx)
		timer := time.NewTimer(r.nextIn)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wakeup:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// resumeJob takes up the restart that an earlier bot died in, when who asked for it may still do so.
func (r *driftNotice) resumeJob(ctx context.Context) {
	r.mu.Lock()
	left := r.state.Restart
	r.mu.Unlock()
	if left == nil {
		return
	}
	actor, _, err := r.b.o.Client.People().ResolveActor(ctx, authz.Actor{User: left.RequestedBy})
	if verdict, why := r.b.Policy().Authorize(actor); err != nil || verdict != authz.Allowed {
		r.b.o.Log.Warn("a restart of sessions that was cut short is not taken up", "member", left.RequestedBy, "because", why, "error", err)
		r.updateState(func(s *driftState) { s.Restart = nil })
		return
	}
	run := &restartJob{by: left.RequestedBy, total: r.b.o.Core.Drift(ctx).Stale, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.job = run
}

// change changes the state and writes it. What cannot be written is logged: it counts as long as we run.
func (r *driftNotice) updateState(f func(*driftState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.state)
	if r.loadErr != nil {
		return
	}
	if err := r.state.save(r.b.o.Root); err != nil {
		r.b.o.Log.Error("what is told of stale sessions could not be stored", "err", err)
	}
}

// alreadyRunning answers a request for a restart while one runs.
func alreadyRunning(by string) string {
	return "The sessions are already being restarted, as <@" + by + "> asked."
}

// requestRestart starts a restart of the stale sessions, which are so many, or with all of every one. It reports false, with the job
// that runs, when there is one already.
func (r *driftNotice) requestRestart(by string, all bool, stale int) (run *restartJob, fresh bool) {
	r.mu.Lock()
	if r.job != nil {
		defer r.mu.Unlock()
		return r.job, false
	}
	run = &restartJob{by: by, all: all, total: stale, done: make(chan struct{})}
	r.job = run
	r.mu.Unlock()
	r.updateState(func(s *driftState) {
		s.Restart, s.LastResult = &requestedRestart{RequestedBy: by, Started: time.Now()}, nil
	})
	r.wake()
	return run, true
}

// startJob runs a restart that was asked for.
func (r *driftNotice) startJob(ctx context.Context, wg *sync.WaitGroup) {
	r.mu.Lock()
	run := r.job
	fresh := run != nil && !run.started
	if fresh {
		run.started = true
	}
	r.mu.Unlock()
	if fresh {
		wg.Go(func() { r.runJob(ctx, run) })
	}
}

func (r *driftNotice) runJob(ctx context.Context, run *restartJob) {
	out, err := r.b.o.Core.RollingRestart(ctx, sessions.RollingRestartRequest{All: true, Stale: !run.all, OnRow: func(row sessions.RestartRow) {
		if row.Outcome == sessions.OutcomeSkipped {
			return
		}
		r.mu.Lock()
		run.rows = append(run.rows, row)
		r.mu.Unlock()
		r.wake()
	}})
	if !run.all {
		out.Rows = restartedRows(out.Rows)
	}
	run.result, run.err = out, err
	r.finishJob(ctx, run)
	close(run.done)
	r.b.announcer.wake()
	r.wake()
}

// restartedRows are the rows of the sessions that were restarted, or should have been.
func restartedRows(rows []sessions.RestartRow) []sessions.RestartRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r sessions.RestartRow) bool { return r.Outcome == sessions.OutcomeSkipped })
}

// finishJob records what came of a restart. One that was cut short is taken up by the next bot.
func (r *driftNotice) finishJob(ctx context.Context, run *restartJob) {
	r.mu.Lock()
	r.job = nil
	r.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if run.err != nil {
		r.b.o.Log.Warn("sessions could not be restarted", "err", run.err)
	}
	r.updateState(func(s *driftState) { s.Restart, s.LastResult = nil, restartedRows(run.result.Rows) })
}

// picture is what is to be shown now.
func (r *driftNotice) snapshot(d sessions.Drift) (render.Rotation, *driftMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := render.Rotation{Drift: d, Rows: r.state.LastResult}
	if r.job != nil {
		p.By, p.Total, p.Rows = r.job.by, r.job.total, slices.Clone(r.job.rows)
		slices.SortFunc(p.Rows, func(a, b sessions.RestartRow) int { return cmp.Compare(a.Ref, b.Ref) })
	}
	if r.state.Message == nil {
		return p, nil
	}
	m := *r.state.Message
	p.Token = m.Nonce
	return p, &m
}

// look compares, and brings the message in line with what is found.
func (r *driftNotice) reconcile(ctx context.Context) {
	if r.loadErr != nil || time.Now().Before(r.retryAt) {
		r.scheduleWithin(time.Until(r.retryAt))
		return
	}
	d := r.b.o.Core.Drift(ctx)
	if ctx.Err() != nil {
		return
	}
	var err error
	p, m := r.snapshot(d)
	switch {
	case m == nil && d.Stale > 0:
		err = r.createMessage(ctx, p)
	case m == nil:
		r.staleSince = time.Time{}
	default:
		err = r.refreshMessage(ctx, p, *m)
	}
	r.scheduleRetry(ctx, err)
}

// soon has the next look made after d at the latest.
func (r *driftNotice) scheduleWithin(d time.Duration) {
	r.nextIn = min(r.nextIn, max(d, 10*time.Millisecond))
}

// scheduleRetry has what failed tried again later.
func (r *driftNotice) scheduleRetry(ctx context.Context, err error) {
	var limited *chat.RateLimitedError
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		r.backoff = 0
		return
	case errors.As(err, &limited):
		r.retryAt = time.Now().Add(limited.After)
	default:
		r.backoff = min(max(2*r.backoff, announceRetry), announceRetryMax)
		r.retryAt = time.Now().Add(r.backoff)
		r.b.o.Log.Warn("the channel could not be told of stale sessions; it is tried again", "err", err, "after", r.backoff)
	}
	r.scheduleWithin(time.Until(r.retryAt))
}

// createMessage makes a message when sessions have been stale for long enough that it is no passing state.
func (r *driftNotice) createMessage(ctx context.Context, p render.Rotation) error {
	if r.staleSince.IsZero() {
		r.staleSince = time.Now()
	}
	if wait := staleConfirmAfter - time.Since(r.staleSince); wait > 0 {
		r.scheduleWithin(wait)
		return nil
	}
	channel := r.b.o.Config().Channel
	if channel == "" {
		return nil
	}
	if err := r.b.sharing.Check(ctx, channel); err != nil {
		return err
	}
	r.lastChange = p.Drift.ChangeCount
	r.updateState(func(s *driftState) {
		s.Message = &driftMessage{Channel: channel, Nonce: rand.Text(), FirstTried: time.Now()}
		if s.Restart == nil {
			s.LastResult = nil
		}
	})
	p, m := r.snapshot(p.Drift)
	return r.postOnce(ctx, p, *m)
}

// message changes the stored message, if it is still the one that is meant.
func (r *driftNotice) updateMessage(nonce string, f func(*driftMessage)) {
	r.updateState(func(s *driftState) {
		if s.Message != nil && s.Message.Nonce == nonce {
			f(s.Message)
		}
	})
}

// postOnce posts the message, once: one that may have been posted is looked for first.
func (r *driftNotice) postOnce(ctx context.Context, p render.Rotation, m driftMessage) error {
	if m.MaybePosted {
		ts, err := r.b.o.Client.FindPost(ctx, m.Channel, "", m.Nonce, r.b.o.Client.Clock().FromLocal(m.FirstTried))
		if err != nil {
			return fmt.Errorf("look for the message that tells of stale sessions: %w", err)
		}
		if ts != "" {
			r.updateMessage(m.Nonce, func(m *driftMessage) { m.TS = ts })
			r.scheduleWithin(0)
			return nil
		}
	}
	r.updateMessage(m.Nonce, func(m *driftMessage) { m.MaybePosted, m.FirstTried = true, time.Now() })
	post, shown := driftPost(p, m)
	ts, err := r.b.o.Client.Post(ctx, post)
	switch {
	case err == nil:
		r.updateMessage(m.Nonce, func(m *driftMessage) { m.TS, m.ShownHash = ts, shown })
		return nil
	case !errors.Is(err, chat.ErrOutcomeUnknown) && ctx.Err() == nil:
		r.updateMessage(m.Nonce, func(m *driftMessage) { m.MaybePosted = false })
	}
	return fmt.Errorf("tell of stale sessions: %w", err)
}

// keep has the message show what is true, and lets go of it when nothing is stale any more, or when the file changed again.
func (r *driftNotice) refreshMessage(ctx context.Context, p render.Rotation, m driftMessage) error {
	m.Channel = r.b.threads.CurrentChannel(m.Channel)
	if r.lastChange == 0 {
		r.lastChange = p.Drift.ChangeCount
	}
	over := p.By == "" && p.Drift.Stale == 0 && p.Drift.Problem == ""
	if over && p.Drift.Starting > 0 { // it will run in a moment, and count
		r.scheduleWithin(staleConfirmAfter)
		return nil
	}
	if !over && p.By == "" && p.Drift.ChangeCount != r.lastChange && p.Drift.Stale > 0 {
		over, p.Again = true, true
	}
	switch {
	case m.TS == "" && over:
		return r.forgetMessage(ctx, m)
	case m.TS == "":
		return r.postOnce(ctx, p, m)
	}
	done, err := r.edit(ctx, p, m)
	if err == nil && done && over {
		r.staleSince = time.Time{}
		if p.Again {
			r.staleSince = time.Now().Add(-staleConfirmAfter) // it was sure already
		}
		r.updateState(func(s *driftState) { s.Message, s.LastResult = nil, nil })
		r.scheduleWithin(0)
	}
	return err
}

// drop forgets a message that never came into the channel. One that may have is found first, so that it is not left there.
func (r *driftNotice) forgetMessage(ctx context.Context, m driftMessage) error {
	if m.MaybePosted {
		ts, err := r.b.o.Client.FindPost(ctx, m.Channel, "", m.Nonce, r.b.o.Client.Clock().FromLocal(m.FirstTried))
		if err != nil {
			return err
		}
		if ts != "" {
			r.updateMessage(m.Nonce, func(m *driftMessage) { m.TS = ts })
			r.scheduleWithin(0)
			return nil
		}
	}
	r.updateState(func(s *driftState) { s.Message = nil })
	return nil
}

// edit changes the message where it shows something else. It reports false when that is put off.
func (r *driftNotice) edit(ctx context.Context, p render.Rotation, m driftMessage) (bool, error) {
	post, shown := driftPost(p, m)
	if m.Dismissed || m.ShownHash == shown {
		return true, nil
	}
	permit := r.editLimit.Reserve()
	if wait := permit.Delay(); wait > 0 {
		permit.Cancel()
		r.scheduleWithin(wait)
		return false, nil
	}
	err := r.b.o.Client.Update(ctx, m.TS, post)
	switch {
	case errors.Is(err, chat.ErrReplyGone): // nobody wants to see it
		r.updateMessage(m.Nonce, func(m *driftMessage) { m.Dismissed = true })
		return true, nil
	case err != nil:
		return false, fmt.Errorf("bring the message of stale sessions up to date: %w", err)
	}
	r.updateMessage(m.Nonce, func(m *driftMessage) { m.ShownHash = shown })
	return true, nil
}

// driftPost is the message, and a sum of what it shows.
func driftPost(p render.Rotation, m driftMessage) (chat.Post, string) {
	post := chat.Post{Channel: m.Channel, Nonce: m.Nonce, Text: p.Text()}
	for _, b := range p.Buttons() {
		post.Buttons = append(post.Buttons, chat.Button(b))
	}
	raw, _ := json.Marshal([]any{post.Text, post.Buttons}) // strings always encode
	sum := sha256.Sum256(raw)
	return post, hex.EncodeToString(sum[:8])
}

// handleButton is the button of the message. Who is let in was decided at the door, at the click.
func (r *driftNotice) handleButton(ctx context.Context, a Interaction) (string, error) {
	d := r.b.o.Core.Drift(ctx)
	r.mu.Lock()
	run := r.job
	r.mu.Unlock()
	switch {
	case run != nil:
		return alreadyRunning(run.by), nil
	case d.Problem != "" || !d.Configured:
		_, err := r.b.o.Core.RollingRestart(ctx, sessions.RollingRestartRequest{})
		return "", err
	case d.Stale == 0:
		r.wake()
		return "No session runs on a stale environment any more, so none was restarted.", nil
	}
	if run, fresh := r.requestRestart(a.Actor.User, false, d.Stale); !fresh {
		return alreadyRunning(run.by), nil
	}
	return fmt.Sprintf("Restarting %d of the sessions. The message shows how far that is.", d.Stale), nil
}

// RestartAll restarts every running session, or says which would be, and returns what came of it.
func (r *driftNotice) RestartAll(ctx context.Context, user string, dryRun bool) (string, error) {
	if dryRun {
		out, err := r.b.o.Core.RollingRestart(ctx, sessions.RollingRestartRequest{All: true, DryRun: true})
		if err != nil {
			return "", err
		}
		return render.Rolled(out), nil
	}
	run, fresh := r.requestRestart(user, true, r.b.o.Core.Drift(ctx).Stale)
	if !fresh {
		return alreadyRunning(run.by), nil
	}
	timer := time.NewTimer(restartWait)
	defer timer.Stop()
	select {
	case <-run.done:
	case <-timer.C:
		return "The sessions are being restarted; that takes a while. " + render.Code("list") + " and the message in the channel show how far it is.", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if run.err != nil {
		return "", run.err
	}
	return render.Rolled(run.result), nil
}
