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

// Rollers tell of sessions that run on a stale environment, and restart them onto the new one.
type Rollers interface {
	Drift(ctx context.Context) sessions.Drift
	Roll(ctx context.Context, q sessions.RollRequest) (sessions.Rolled, error)
}

const (
	// driftEvery is how often the environments are compared when nothing says that something changed.
	driftEvery = 15 * time.Second
	// driftSure is how long sessions must be found stale before the channel is told: a file that is being written, and an
	// agent that is being started, look stale for a moment.
	driftSure = 700 * time.Millisecond
	// rollWait is how long who gave the command waits for its answer; below the time-out of an act.
	rollWait = 50 * time.Second
)

// rotation keeps one message in the channel while sessions run on a stale environment, and restarts them when somebody who
// may asks for it, one restart at a time. One goroutine posts and edits.
type rotation struct {
	b     *Bot
	wake  chan struct{}
	edits *rate.Limiter
	again time.Duration // until the next look is due
	rest  time.Time     // Slack asked to wait until then
	pause time.Duration // after a failure
	stale time.Time     // since when sessions are found stale while there is no message
	last  int           // [sessions.Drift.Edit] that the message is about; 0: not known since the start

	mu     sync.Mutex // guards the fields that follow
	state  rotationState
	broken error // the state cannot be read: nothing is posted, so that nothing is told twice
	run    *rolling
}

// rolling is a restart that is under way.
type rolling struct {
	by    string
	all   bool // also those that hold what is declared
	begun bool
	total int // how many were stale
	rows  []sessions.RollRow
	done  chan struct{} // closed when the fields that follow are set
	out   sessions.Rolled
	err   error
}

func newRotation(b *Bot) *rotation {
	r := &rotation{b: b, wake: make(chan struct{}, 1), edits: rate.NewLimiter(rate.Every(editEvery), 3)}
	r.state, r.broken = loadRotation(b.o.Root)
	if r.broken != nil {
		b.o.Log.Error("what was told of the env file's change cannot be read; nothing is told of it until that is mended", "err", r.broken)
	}
	return r
}

// poke has the next look made at once.
func (r *rotation) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// start looks, tells and restarts until ctx ends, and returns when nothing of it runs any more.
func (r *rotation) start(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	r.goOn(ctx)
	for {
		r.launch(ctx, &wg)
		r.again = driftEvery
		r.look(ctx)
		timer := time.NewTimer(r.again)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wake:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// goOn takes up the restart that an earlier bot died in, when who asked for it may still do so.
func (r *rotation) goOn(ctx context.Context) {
	r.mu.Lock()
	left := r.state.Run
	r.mu.Unlock()
	if left == nil {
		return
	}
	actor, _, err := r.b.o.Client.People().Complete(ctx, authz.Actor{User: left.By})
	if verdict, why := r.b.Policy().Authorize(actor); err != nil || verdict != authz.Allowed {
		r.b.o.Log.Warn("a restart of sessions that was cut short is not taken up", "member", left.By, "because", why, "error", err)
		r.change(func(s *rotationState) { s.Run = nil })
		return
	}
	run := &rolling{by: left.By, total: r.b.o.Core.Drift(ctx).Stale, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run = run
}

// change changes the state and writes it. What cannot be written is logged: it counts as long as we run.
func (r *rotation) change(f func(*rotationState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.state)
	if r.broken != nil {
		return
	}
	if err := r.state.save(r.b.o.Root); err != nil {
		r.b.o.Log.Error("what is told of stale sessions could not be stored", "err", err)
	}
}

// busyError says that one restart is under way already.
type busyError struct{ by string }

func (e *busyError) Error() string {
	return "the sessions are being restarted already, as <@" + e.by + "> asked"
}

// ask has sessions restarted: those that are stale, of which there are so many, or with all every one. [*busyError] while that is done already.
func (r *rotation) ask(by string, all bool, stale int) (*rolling, error) {
	r.mu.Lock()
	if r.run != nil {
		defer r.mu.Unlock()
		return nil, &busyError{r.run.by}
	}
	run := &rolling{by: by, all: all, total: stale, done: make(chan struct{})}
	r.run = run
	r.mu.Unlock()
	r.change(func(s *rotationState) { s.Run, s.Last = &rotationRun{By: by, Started: time.Now()}, nil })
	r.poke()
	return run, nil
}

// launch runs a restart that was asked for.
func (r *rotation) launch(ctx context.Context, wg *sync.WaitGroup) {
	r.mu.Lock()
	run := r.run
	fresh := run != nil && !run.begun
	if fresh {
		run.begun = true
	}
	r.mu.Unlock()
	if fresh {
		wg.Go(func() { r.roll(ctx, run) })
	}
}

func (r *rotation) roll(ctx context.Context, run *rolling) {
	out, err := r.b.o.Core.Roll(ctx, sessions.RollRequest{All: true, Stale: !run.all, Done: func(row sessions.RollRow) {
		if row.Outcome == sessions.OutcomeSkipped {
			return
		}
		r.mu.Lock()
		run.rows = append(run.rows, row)
		r.mu.Unlock()
		r.poke()
	}})
	if !run.all {
		out.Rows = touched(out.Rows)
	}
	run.out, run.err = out, err
	r.finish(ctx, run)
	close(run.done)
	r.b.announcer.poke()
	r.poke()
}

// touched are the rows of the sessions that were restarted, or should have been.
func touched(rows []sessions.RollRow) []sessions.RollRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r sessions.RollRow) bool { return r.Outcome == sessions.OutcomeSkipped })
}

// finish records what came of a restart. One that was cut short is taken up by the next bot.
func (r *rotation) finish(ctx context.Context, run *rolling) {
	r.mu.Lock()
	r.run = nil
	r.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if run.err != nil {
		r.b.o.Log.Warn("sessions could not be restarted", "err", run.err)
	}
	r.change(func(s *rotationState) { s.Run, s.Last = nil, touched(run.out.Rows) })
}

// picture is what is to be shown now.
func (r *rotation) picture(d sessions.Drift) (render.Rotation, *rotationMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := render.Rotation{Drift: d, Rows: r.state.Last}
	if r.run != nil {
		p.By, p.Total, p.Rows = r.run.by, r.run.total, slices.Clone(r.run.rows)
		slices.SortFunc(p.Rows, func(a, b sessions.RollRow) int { return cmp.Compare(a.Ref, b.Ref) })
	}
	if r.state.Message == nil {
		return p, nil
	}
	m := *r.state.Message
	p.Token = m.Nonce
	return p, &m
}

// look compares, and brings the message in line with what is found.
func (r *rotation) look(ctx context.Context) {
	if r.broken != nil || time.Now().Before(r.rest) {
		r.soon(time.Until(r.rest))
		return
	}
	d := r.b.o.Core.Drift(ctx)
	if ctx.Err() != nil {
		return
	}
	var err error
	p, m := r.picture(d)
	switch {
	case m == nil && d.Stale > 0:
		err = r.begin(ctx, p)
	case m == nil:
		r.stale = time.Time{}
	default:
		err = r.keep(ctx, p, *m)
	}
	r.settle(ctx, err)
}

// soon has the next look made after d at the latest.
func (r *rotation) soon(d time.Duration) { r.again = min(r.again, max(d, 10*time.Millisecond)) }

// settle has what failed tried again later.
func (r *rotation) settle(ctx context.Context, err error) {
	var limited *chat.RateLimitedError
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		r.pause = 0
		return
	case errors.As(err, &limited):
		r.rest = time.Now().Add(limited.After)
	default:
		r.pause = min(max(2*r.pause, announceRetry), announceRetryMax)
		r.rest = time.Now().Add(r.pause)
		r.b.o.Log.Warn("the channel could not be told of stale sessions; it is tried again", "err", err, "after", r.pause)
	}
	r.soon(time.Until(r.rest))
}

// begin makes a message when sessions have been stale for long enough that it is no passing state.
func (r *rotation) begin(ctx context.Context, p render.Rotation) error {
	if r.stale.IsZero() {
		r.stale = time.Now()
	}
	if wait := driftSure - time.Since(r.stale); wait > 0 {
		r.soon(wait)
		return nil
	}
	channel := r.b.o.Config().Channel
	if channel == "" {
		return nil
	}
	if err := r.b.sharing.check(ctx, channel); err != nil {
		return err
	}
	r.last = p.Drift.Change
	r.change(func(s *rotationState) {
		s.Message = &rotationMessage{Channel: channel, Nonce: rand.Text(), Since: time.Now()}
		if s.Run == nil {
			s.Last = nil
		}
	})
	p, m := r.picture(p.Drift)
	return r.post(ctx, p, *m)
}

// message changes the stored message, if it is still the one that is meant.
func (r *rotation) message(nonce string, f func(*rotationMessage)) {
	r.change(func(s *rotationState) {
		if s.Message != nil && s.Message.Nonce == nonce {
			f(s.Message)
		}
	})
}

// post posts the message, once: one that may have been posted is looked for first.
func (r *rotation) post(ctx context.Context, p render.Rotation, m rotationMessage) error {
	if m.Tried {
		ts, err := r.b.o.Client.FindPost(ctx, m.Channel, "", m.Nonce, r.b.o.Client.clock.FromLocal(m.Since))
		if err != nil {
			return fmt.Errorf("look for the message that tells of stale sessions: %w", err)
		}
		if ts != "" {
			r.message(m.Nonce, func(m *rotationMessage) { m.TS = ts })
			r.soon(0)
			return nil
		}
	}
	r.message(m.Nonce, func(m *rotationMessage) { m.Tried, m.Since = true, time.Now() })
	post, shown := rotationPost(p, m)
	ts, err := r.b.o.Client.Post(ctx, post)
	switch {
	case err == nil:
		r.message(m.Nonce, func(m *rotationMessage) { m.TS, m.Shown = ts, shown })
		return nil
	case !errors.Is(err, chat.ErrOutcomeUnknown) && ctx.Err() == nil:
		r.message(m.Nonce, func(m *rotationMessage) { m.Tried = false })
	}
	return fmt.Errorf("tell of stale sessions: %w", err)
}

// keep has the message show what is true, and lets go of it when nothing is stale any more, or when the file changed again.
func (r *rotation) keep(ctx context.Context, p render.Rotation, m rotationMessage) error {
	m.Channel = r.b.threads.CurrentChannel(m.Channel)
	if r.last == 0 {
		r.last = p.Drift.Change
	}
	over := p.By == "" && p.Drift.Stale == 0 && p.Drift.Problem == ""
	if over && p.Drift.Starting > 0 { // it will run in a moment, and count
		r.soon(driftSure)
		return nil
	}
	if !over && p.By == "" && p.Drift.Change != r.last && p.Drift.Stale > 0 {
		over, p.Again = true, true
	}
	switch {
	case m.TS == "" && over:
		return r.drop(ctx, m)
	case m.TS == "":
		return r.post(ctx, p, m)
	}
	done, err := r.edit(ctx, p, m)
	if err == nil && done && over {
		r.stale = time.Time{}
		if p.Again {
			r.stale = time.Now().Add(-driftSure) // it was sure already
		}
		r.change(func(s *rotationState) { s.Message, s.Last = nil, nil })
		r.soon(0)
	}
	return err
}

// drop forgets a message that never came into the channel. One that may have is found first, so that it is not left there.
func (r *rotation) drop(ctx context.Context, m rotationMessage) error {
	if m.Tried {
		ts, err := r.b.o.Client.FindPost(ctx, m.Channel, "", m.Nonce, r.b.o.Client.clock.FromLocal(m.Since))
		if err != nil {
			return err
		}
		if ts != "" {
			r.message(m.Nonce, func(m *rotationMessage) { m.TS = ts })
			r.soon(0)
			return nil
		}
	}
	r.change(func(s *rotationState) { s.Message = nil })
	return nil
}

// edit changes the message where it shows something else. It reports false when that is put off.
func (r *rotation) edit(ctx context.Context, p render.Rotation, m rotationMessage) (bool, error) {
	post, shown := rotationPost(p, m)
	if m.Gone || m.Shown == shown {
		return true, nil
	}
	permit := r.edits.Reserve()
	if wait := permit.Delay(); wait > 0 {
		permit.Cancel()
		r.soon(wait)
		return false, nil
	}
	err := r.b.o.Client.Update(ctx, m.TS, post)
	switch {
	case errors.Is(err, chat.ErrReplyGone): // nobody wants to see it
		r.message(m.Nonce, func(m *rotationMessage) { m.Gone = true })
		return true, nil
	case err != nil:
		return false, fmt.Errorf("bring the message of stale sessions up to date: %w", err)
	}
	r.message(m.Nonce, func(m *rotationMessage) { m.Shown = shown })
	return true, nil
}

// rotationPost is the message, and a sum of what it shows.
func rotationPost(p render.Rotation, m rotationMessage) (chat.Post, string) {
	post := chat.Post{Channel: m.Channel, Nonce: m.Nonce, Text: p.Text()}
	for _, b := range p.Buttons() {
		post.Buttons = append(post.Buttons, chat.Button(b))
	}
	raw, _ := json.Marshal([]any{post.Text, post.Buttons}) // strings always encode
	sum := sha256.Sum256(raw)
	return post, hex.EncodeToString(sum[:8])
}

// pressed is the button of the message. Who is let in was decided at the door, at the click.
func (r *rotation) pressed(ctx context.Context, a Act) (string, error) {
	d := r.b.o.Core.Drift(ctx)
	r.mu.Lock()
	run := r.run
	r.mu.Unlock()
	switch {
	case run != nil:
		return capital((&busyError{run.by}).Error()) + ".", nil
	case d.Problem != "" || !d.Configured:
		_, err := r.b.o.Core.Roll(ctx, sessions.RollRequest{})
		return "", err
	case d.Stale == 0:
		r.poke()
		return "No session runs on a stale environment any more, so none was restarted.", nil
	}
	if _, err := r.ask(a.Actor.User, false, d.Stale); err != nil {
		return capital(err.Error()) + ".", nil
	}
	return fmt.Sprintf("Restarting %d of the sessions. The message shows how far that is.", d.Stale), nil
}

// command has every session restarted, or says which would be, and answers with what came of it.
func (r *rotation) command(ctx context.Context, user string, dry bool) (string, error) {
	if dry {
		out, err := r.b.o.Core.Roll(ctx, sessions.RollRequest{All: true, DryRun: true})
		if err != nil {
			return "", err
		}
		return render.Rolled(out), nil
	}
	run, err := r.ask(user, true, r.b.o.Core.Drift(ctx).Stale)
	if err != nil {
		return capital(err.Error()) + ".", nil
	}
	timer := time.NewTimer(rollWait)
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
	return render.Rolled(run.out), nil
}
