package threads

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"the-loop/sessions"
)

// Slack takes one message a second in a channel, with a short burst.
const (
	postEvery   = 1100 * time.Millisecond
	postBurst   = 3
	postTimeout = 20 * time.Second
	postRetry   = time.Second
	postRetries = time.Minute // the longest pause between two tries
)

// letter is one message that is still to be posted, or one of ours that is to be changed.
type letter struct {
	Seq     int64      `json:"seq"` // order
	Post    Post       `json:"post"`
	Change  bool       `json:"change,omitempty"` // the message with the post's nonce is to show the post
	TS      string     `json:"ts,omitempty"`     // of that message, when it is known
	Since   time.Time  `json:"after,omitzero"`   // not posted before, by Slack's clock; zero: not known
	Tried   bool       `json:"tried,omitempty"`  // Slack may have it: look before posting
	Quiet   bool       `json:"quiet,omitempty"`  // it takes nothing of what others may need soon, and they go before it
	File    *enclosure `json:"file,omitempty"`   // the post has this file
	Last    bool       `json:"last,omitempty"`   // it says that its session is gone, and outlives it by one try
	busy    bool       // its file is on its way
	fails   int
	notTill time.Time
}

// outbox posts what threads have to say, in order for each thread, once: a letter is on disk before it is posted, and
// one that may have been posted is looked for by its nonce first.
type outbox struct {
	m    *Manager
	dir  string
	wake chan struct{}

	mu      sync.Mutex // guards the fields that follow
	seq     int64
	letters []*letter
	limits  map[string]*rate.Limiter // by channel
	until   time.Time                // Slack lets the app post nothing before
	shut    map[string]time.Time     // channels that take nothing before
	served  map[place]time.Time      // when a letter of a thread was posted last, while it has more
}

func newOutbox(m *Manager, dir string) (*outbox, error) {
	o := &outbox{m: m, dir: dir, wake: make(chan struct{}, 1), limits: map[string]*rate.Limiter{}, served: map[place]time.Time{},
		shut: map[string]time.Time{}}
	clearHalves(dir)
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") || strings.HasPrefix(n.Name(), ".") {
			continue
		}
		l, err := o.load(n.Name())
		if err != nil {
			m.o.Log.Error("a message in the outbox cannot be used; it is left alone", "file", n.Name(), "err", err)
			continue
		}
		o.letters = append(o.letters, l)
		o.seq = max(o.seq, l.Seq)
	}
	slices.SortFunc(o.letters, func(a, b *letter) int { return int(a.Seq - b.Seq) })
	o.clearContents()
	return o, nil
}

func (o *outbox) load(name string) (*letter, error) {
	data, err := os.ReadFile(filepath.Join(o.dir, name))
	if err != nil {
		return nil, err
	}
	var l letter
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, err
	}
	return &l, nil
}

func (o *outbox) file(l *letter) string {
	return filepath.Join(o.dir, fmt.Sprintf("%012d.json", l.Seq))
}

// add puts a message into the outbox. With maybePosted an earlier run may have posted it already.
func (o *outbox) add(p Post, maybePosted bool) {
	l := &letter{Post: p, Tried: maybePosted}
	if !maybePosted {
		l.Since = o.m.slackTime()
	}
	_ = o.put(l) // it was logged, and nothing depends on it
}

// update has a message of ours show something else. Its ts may not be known yet, when it is still in the outbox itself:
// then it is posted as it is now.
func (o *outbox) update(p Post, ts string) {
	if ts == "" && o.replace(p) {
		return
	}
	_ = o.put(&letter{Post: p, Change: true, TS: ts}) // it was logged, and nothing depends on it
}

// replace changes a letter that was not posted yet.
func (o *outbox) replace(p Post) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.letters {
		if l.Post.Nonce == p.Nonce && !l.Change && !l.Tried {
			l.Post = p
			_ = o.write(l) // as for a new one
			return true
		}
	}
	return false
}

// put stores a letter, unless the very message is there already. When it cannot be stored it is posted as long as we run.
func (o *outbox) put(l *letter) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, have := range o.letters {
		if have.Post.Nonce == l.Post.Nonce && have.Change == l.Change && have.Post.Text == l.Post.Text {
			return o.write(have)
		}
	}
	o.seq++
	l.Seq = o.seq
	o.letters = append(o.letters, l)
	poke(o.wake)
	return o.write(l)
}

// write stores a letter. The log says when it cannot.
func (o *outbox) write(l *letter) error { return o.m.disk.save(o.file(l), l) }

// rewrite stores the letters that could not be.
func (o *outbox) rewrite() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.letters {
		if o.m.disk.lags(o.file(l)) {
			_ = o.write(l) // it is tried again
		}
	}
}

func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.letters)
}

// waitingIn is how many messages wait for one channel.
func (o *outbox) waitingIn(channel string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.letters {
		if l.Post.Channel == channel {
			n++
		}
	}
	return n
}

// of is how many messages of a session wait.
func (o *outbox) of(session string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, l := range o.letters {
		if l.Post.Session == session {
			n++
		}
	}
	return n
}

// run posts until ctx ends.
func (o *outbox) run(ctx context.Context) {
	for {
		l, wait := o.pick()
		if l == nil {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-o.wake:
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		o.send(ctx, l)
		if ctx.Err() != nil {
			return
		}
	}
}

// pick finds the letter to post now; without one, how long to wait. Letters of a thread go in order. Of several threads in a
// channel the one goes first that was served the longest ago: an agent that says a lot holds up no other's thread.
func (o *outbox) pick() (*letter, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.m.o.Now()
	if wait := o.until.Sub(now); wait > 0 {
		return nil, wait
	}
	var best *letter
	wait, shut := o.closed(now)
	looked := map[place]bool{}
	for _, l := range o.letters {
		o.forward(l)
		at := l.place()
		if looked[at] || shut[at.channel] {
			continue
		}
		d, all := o.rests(l)
		looked[at] = !l.Quiet || d <= 0
		switch {
		case d > 0:
			wait = min(wait, d)
			shut[at.channel] = all
		case best == nil || o.served[at].Before(o.served[best.place()]):
			best = l
		}
	}
	if best == nil {
		return nil, wait
	}
	o.limit(best.Post.Channel).Allow()
	o.served[best.place()] = o.m.o.Now()
	return best, 0
}

// closed lists the channels that take nothing now, and says when the first one may.
func (o *outbox) closed(now time.Time) (wait time.Duration, shut map[string]bool) {
	wait, shut = time.Hour, map[string]bool{}
	for channel, until := range o.shut {
		if !until.After(now) {
			delete(o.shut, channel)
			continue
		}
		shut[channel], wait = true, min(wait, until.Sub(now))
	}
	return wait, shut
}

// forward has a letter posted in the channel that its own is now. The caller holds mu, and nothing posts it just now.
func (o *outbox) forward(l *letter) {
	if to := o.m.moves.now(l.Post.Channel); to != l.Post.Channel && !l.busy {
		l.Post.Channel, l.notTill = to, time.Time{}
		_ = o.write(l) // it was logged; the next start does it again
	}
}

// rests is how long a letter has to wait, and whether all of its channel have to.
func (o *outbox) rests(l *letter) (d time.Duration, all bool) {
	if l.busy {
		return time.Hour, false
	}
	if d := l.notTill.Sub(o.m.o.Now()); d > 0 {
		return d, false
	}
	if missing := l.needs() - o.limit(l.Post.Channel).Tokens(); missing > 0 {
		return max(time.Millisecond, time.Duration(missing*float64(postEvery))), !l.Quiet
	}
	return 0, false
}

// needs is how many messages the channel must be ready to take.
func (l *letter) needs() float64 {
	if l.Quiet {
		return postBurst
	}
	return 1
}

func (l *letter) place() place { return place{l.Post.Channel, l.Post.Root} }

func (o *outbox) limit(channel string) *rate.Limiter {
	l := o.limits[channel]
	if l == nil {
		l = rate.NewLimiter(rate.Every(postEvery), postBurst)
		o.limits[channel] = l
	}
	return l
}

// send posts one letter and takes it off the outbox, or leaves it for later.
func (o *outbox) send(ctx context.Context, l *letter) {
	if l.File != nil && l.File.ID == "" {
		o.carry(l)
		return
	}
	calling, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	ts, err := o.deliver(calling, l)
	if err == nil {
		o.remove(l)
		o.m.posted(ctx, l.Post, ts)
		if !l.Change {
			o.m.spoke(l.Post, ts)
		}
		return
	}
	o.failed(ctx, l, err)
}

// failed leaves a letter for later, or takes it off the outbox where that is of no use. Only what Slack says of the channel
// or of the app holds up other threads.
func (o *outbox) failed(ctx context.Context, l *letter, err error) {
	var final *FileError
	switch failure := FailureOf(err); {
	case errors.Is(err, errWithdrawn):
	case ctx.Err() != nil:
	case errors.As(err, &final) && l.File != nil:
		o.instead(l, final.Why)
	case failure == FailureMessage, failure == FailureChannel && l.Last:
		o.refused(ctx, l, err)
	default:
		o.postpone(ctx, l, failure, err)
	}
}

// refused takes a letter off the outbox that Slack will never take. It gets one more chance as a plain text, unless there is
// nothing to be posted to any more.
func (o *outbox) refused(ctx context.Context, l *letter, err error) {
	gone := errors.Is(err, ErrThreadGone) || errors.Is(err, ErrReplyGone) || FailureOf(err) == FailureChannel
	if !gone && !l.Post.Plain && o.simplify(l) {
		o.m.o.Log.Warn("Slack refuses a message; it is posted as a plain text", "channel", l.Post.Channel, "session", l.Post.Session, "err", err)
		return
	}
	o.remove(l)
	o.m.o.Log.Warn("a message is dropped that Slack refuses", "channel", l.Post.Channel, "session", l.Post.Session, "err", err)
	o.m.unposted(ctx, l.Post, err)
}

// simplify makes a plain text of a letter. False: it was withdrawn.
func (o *outbox) simplify(l *letter) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.letters, l) {
		return false
	}
	if l.File != nil { // the file may be what is refused
		o.discard(l)
		l.Post.Text, l.File = cmp.Or(l.File.Instead, unsent(l.File.Name, "Slack refuses it")), nil
	}
	l.Post.Plain, l.Tried = true, false
	l.fails, l.notTill = 0, time.Time{}
	_ = o.write(l) // as for a new one
	return true
}

// postpone has a letter tried again later.
func (o *outbox) postpone(ctx context.Context, l *letter, failure Failure, err error) {
	var limited *RateLimitedError
	if errors.As(err, &limited) {
		o.later(l, limited.After, true)
		return
	}
	o.m.o.Log.Warn("could not post a message; it is tried again", "channel", l.Post.Channel, "err", err)
	if l.fails == 0 {
		o.m.unposted(ctx, l.Post, err)
	}
	o.later(l, min(postRetry<<min(l.fails, 6), postRetries), failure == FailureChannel)
	if failure == FailureApp {
		o.mu.Lock()
		o.until = o.m.o.Now().Add(postRetries)
		o.mu.Unlock()
	}
}

// open has what was put off in a channel tried at once: something may be better there.
func (o *outbox) open(channel string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.shut, channel)
	poke(o.wake)
}

func (o *outbox) deliver(ctx context.Context, l *letter) (ts string, err error) {
	if l.File != nil {
		return o.show(ctx, l)
	}
	ts = l.TS
	if ts == "" && (l.Change || l.Tried) {
		ts, err = o.m.o.History.FindPost(ctx, l.Post.Channel, l.Post.Root, l.Post.Nonce, l.Since)
		if err != nil {
			return "", fmt.Errorf("look whether it was posted: %w", err)
		}
	}
	switch {
	case ts != "" && l.Change:
		return ts, o.m.o.Speaker.Update(ctx, ts, l.Post)
	case ts != "":
		return ts, nil
	case l.Change && l.Last: // there is nothing to change
		o.remove(l)
		return "", errWithdrawn
	}
	if !o.mark(l, true) {
		return "", errWithdrawn
	}
	ts, err = o.m.o.Speaker.Post(ctx, l.Post)
	if err != nil && !errors.Is(err, ErrUnknown) && ctx.Err() == nil {
		o.mark(l, false)
	}
	return ts, err
}

// mark stores whether Slack may have a letter. False: it was withdrawn.
func (o *outbox) mark(l *letter, tried bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.letters, l) {
		return false
	}
	l.Tried = tried
	_ = o.write(l) // it was logged; a crash now may post it twice, or look for it in vain
	return true
}

// errWithdrawn says that a letter was taken back before it was posted.
var errWithdrawn = errors.New("the message was withdrawn")

// withdraw takes a message back that certainly was not posted.
func (o *outbox) withdraw(nonce string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.letters {
		if l.Post.Nonce == nonce && !l.Change && !l.Tried {
			o.drop(l)
			return true
		}
	}
	return false
}

// holds reports whether a message is still to be posted.
func (o *outbox) holds(nonce string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.letters, func(l *letter) bool { return l.Post.Nonce == nonce && !l.Change })
}

// later has a letter tried again after d, and with all the whole channel.
func (o *outbox) later(l *letter, d time.Duration, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.fails++
	if all {
		o.shut[l.Post.Channel] = o.m.o.Now().Add(d)
		return
	}
	l.notTill = o.m.o.Now().Add(d)
}

func (o *outbox) remove(l *letter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(l)
}

// end empties the outbox of a session that is gone, but for the letter that says so.
func (o *outbox) end(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range slices.Clone(o.letters) {
		if l.Post.Session == session && !l.Last {
			o.drop(l)
		}
	}
}

// prune ends the letters of sessions that are gone: an earlier run ended before it came to that.
func (o *outbox) prune(there func(session string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range slices.Clone(o.letters) {
		if l.Post.Session != "" && !l.Last && !there(l.Post.Session) {
			o.m.o.Log.Info("a message of a session that is gone is not posted any more", "session", l.Post.Session)
			o.drop(l)
		}
	}
}

// drop is remove. The caller holds mu.
func (o *outbox) drop(l *letter) {
	o.letters = slices.DeleteFunc(o.letters, func(have *letter) bool { return have == l })
	if !slices.ContainsFunc(o.letters, func(have *letter) bool { return have.place() == l.place() }) {
		delete(o.served, l.place())
	}
	o.discard(l)
	o.m.disk.forget(o.file(l))
	if err := os.Remove(o.file(l)); err != nil && !errors.Is(err, os.ErrNotExist) {
		o.m.o.Log.Error("could not take a posted message off the outbox", "err", err)
	}
}

// posted records that a message of ours is there. A question learns where it stands.
func (m *Manager) posted(ctx context.Context, p Post, ts string) {
	fields := map[string]any{"channel": p.Channel, "thread": p.Root}
	if ts != "" { // of files Slack does not say it
		fields["ts"] = ts
	}
	m.o.Sink.Emit(ctx, sessions.Event{Name: EventPosted, Level: slog.LevelInfo, ID: p.Session, Fields: fields})
	t := m.of(p.Session)
	if t == nil {
		return
	}
	t.do(func(context.Context) {
		if q, ok := t.b.Questions[p.Nonce]; ok && q.TS == "" {
			q.TS = ts
			t.b.Questions[p.Nonce] = q
			t.keep()
		}
		if a, ok := t.b.Asks[p.Nonce]; ok && a.TS == "" {
			a.TS = ts
			t.b.Asks[p.Nonce] = a
			t.keep()
		}
	})
}

func (m *Manager) unposted(ctx context.Context, p Post, err error) {
	m.o.Sink.Emit(ctx, sessions.Event{Name: EventPostFailed, Level: slog.LevelWarn, ID: p.Session,
		Fields: map[string]any{"channel": p.Channel, "thread": p.Root, "reason": err.Error()}})
}
