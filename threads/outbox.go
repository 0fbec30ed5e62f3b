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
	"the-loop/threads/chat"
)

// Slack takes one message a second in a channel, with a short burst.
const (
	postEvery   = 1100 * time.Millisecond
	postBurst   = 3
	postTimeout = 20 * time.Second
	postRetry   = time.Second
	postRetries = time.Minute // the longest pause between two tries
)

// OutboxMessage is one message that is still to be posted, or one of ours that is to be changed.
type OutboxMessage struct {
	Seq         int64       `json:"seq"` // order
	Post        chat.Post   `json:"post"`
	Edit        bool        `json:"change,omitempty"` // the message with the post's nonce is to show the post
	TS          string      `json:"ts,omitempty"`     // of that message, when it is known
	Since       time.Time   `json:"after,omitzero"`   // not posted before, by Slack's clock; zero: not known
	MaybePosted bool        `json:"tried,omitempty"`  // Slack may have it: look before posting
	LowPriority bool        `json:"quiet,omitempty"`  // it takes nothing of what others may need soon, and they go before it
	File        *Attachment `json:"file,omitempty"`   // the post has this file
	Final       bool        `json:"last,omitempty"`   // it says that its session is gone, and outlives it by one try
	uploading   bool        // its file is on its way
	fails       int
	notBefore   time.Time
}

// outbox posts what threads have to say, in order for each thread, once: a letter is on disk before it is posted, and
// one that may have been posted is looked for by its nonce first.
type outbox struct {
	m      *Manager
	dir    string
	wakeup chan struct{}

	mu          sync.Mutex // guards the fields that follow
	seq         int64
	messages    []*OutboxMessage
	limits      map[string]*rate.Limiter    // by channel
	pausedUntil time.Time                   // Slack lets the app post nothing before
	closedUntil map[string]time.Time        // channels that take nothing before
	lastServed  map[chat.ThreadID]time.Time // when a letter of a thread was posted last, while it has more
}

func newOutbox(m *Manager, dir string) (*outbox, error) {
	o := &outbox{m: m, dir: dir, wakeup: make(chan struct{}, 1), limits: map[string]*rate.Limiter{}, lastServed: map[chat.ThreadID]time.Time{},
		closedUntil: map[string]time.Time{}}
	removePartialFiles(dir)
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
		o.messages = append(o.messages, l)
		o.seq = max(o.seq, l.Seq)
	}
	slices.SortFunc(o.messages, func(a, b *OutboxMessage) int { return int(a.Seq - b.Seq) })
	o.removeOrphanedContents()
	return o, nil
}

func (o *outbox) load(name string) (*OutboxMessage, error) {
	data, err := os.ReadFile(filepath.Join(o.dir, name))
	if err != nil {
		return nil, err
	}
	var l OutboxMessage
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, err
	}
	return &l, nil
}

func (o *outbox) file(l *OutboxMessage) string {
	return filepath.Join(o.dir, fmt.Sprintf("%012d.json", l.Seq))
}

// add puts a message into the outbox. With maybePosted an earlier run may have posted it already.
func (o *outbox) add(p chat.Post, maybePosted bool) {
	l := &OutboxMessage{Post: p, MaybePosted: maybePosted}
	if !maybePosted {
		l.Since = o.m.slackTime()
	}
	_ = o.put(l) // it was logged, and nothing depends on it
}

// update has a message of ours show something else. Its ts may not be known yet, when it is still in the outbox itself:
// then it is posted as it is now.
func (o *outbox) update(p chat.Post, ts string) {
	if ts == "" && o.replace(p) {
		return
	}
	_ = o.put(&OutboxMessage{Post: p, Edit: true, TS: ts}) // it was logged, and nothing depends on it
}

// replace changes a letter that was not posted yet.
func (o *outbox) replace(p chat.Post) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.messages {
		if l.Post.Nonce == p.Nonce && !l.Edit && !l.MaybePosted {
			l.Post = p
			_ = o.write(l) // as for a new one
			return true
		}
	}
	return false
}

// put stores a letter, unless the very message is there already. When it cannot be stored it is posted as long as we run.
func (o *outbox) put(l *OutboxMessage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, have := range o.messages {
		if have.Post.Nonce == l.Post.Nonce && have.Edit == l.Edit && have.Post.Text == l.Post.Text {
			return o.write(have)
		}
	}
	o.seq++
	l.Seq = o.seq
	o.messages = append(o.messages, l)
	wake(o.wakeup)
	return o.write(l)
}

// write stores a letter. The log says when it cannot.
func (o *outbox) write(l *OutboxMessage) error { return o.m.storage.save(o.file(l), l) }

// retryWrites stores the letters that could not be.
func (o *outbox) retryWrites() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.messages {
		if o.m.storage.isBehind(o.file(l)) {
			_ = o.write(l) // it is tried again
		}
	}
}

func (o *outbox) pendingCount() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.messages)
}

// pendingInChannel is how many messages wait for one channel.
func (o *outbox) pendingInChannel(channel string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.messages {
		if l.Post.Channel == channel {
			n++
		}
	}
	return n
}

// of is how many messages of a session wait.
func (o *outbox) pendingOfSession(session string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, l := range o.messages {
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
			case <-o.wakeup:
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
func (o *outbox) pick() (*OutboxMessage, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.m.o.Now()
	if wait := o.pausedUntil.Sub(now); wait > 0 {
		return nil, wait
	}
	var best *OutboxMessage
	wait, shut := o.closedChannels(now)
	looked := map[chat.ThreadID]bool{}
	for _, l := range o.messages {
		o.applyChannelMove(l)
		at := l.threadID()
		if looked[at] || shut[at.Channel] {
			continue
		}
		d, all := o.delayOf(l)
		looked[at] = !l.LowPriority || d <= 0
		switch {
		case d > 0:
			wait = min(wait, d)
			shut[at.Channel] = all
		case best == nil || o.lastServed[at].Before(o.lastServed[best.threadID()]):
			best = l
		}
	}
	if best == nil {
		return nil, wait
	}
	o.limiterFor(best.Post.Channel).Allow()
	o.lastServed[best.threadID()] = o.m.o.Now()
	return best, 0
}

// closedChannels lists the channels that take nothing now, and says when the first one may.
func (o *outbox) closedChannels(now time.Time) (wait time.Duration, shut map[string]bool) {
	wait, shut = time.Hour, map[string]bool{}
	for channel, until := range o.closedUntil {
		if !until.After(now) {
			delete(o.closedUntil, channel)
			continue
		}
		shut[channel], wait = true, min(wait, until.Sub(now))
	}
	return wait, shut
}

// applyChannelMove has a letter posted in the channel that its own is now. The caller holds mu, and nothing posts it just now.
func (o *outbox) applyChannelMove(l *OutboxMessage) {
	if to := o.m.channelMoves.current(l.Post.Channel); to != l.Post.Channel && !l.uploading {
		l.Post.Channel, l.notBefore = to, time.Time{}
		_ = o.write(l) // it was logged; the next start does it again
	}
}

// rests is how long a letter has to wait, and whether all of its channel have to.
func (o *outbox) delayOf(l *OutboxMessage) (d time.Duration, all bool) {
	if l.uploading {
		return time.Hour, false
	}
	if d := l.notBefore.Sub(o.m.o.Now()); d > 0 {
		return d, false
	}
	if missing := l.requiredTokens() - o.limiterFor(l.Post.Channel).Tokens(); missing > 0 {
		return max(time.Millisecond, time.Duration(missing*float64(postEvery))), !l.LowPriority
	}
	return 0, false
}

// requiredTokens is how many messages the channel must be ready to take.
func (l *OutboxMessage) requiredTokens() float64 {
	if l.LowPriority {
		return postBurst
	}
	return 1
}

func (l *OutboxMessage) threadID() chat.ThreadID {
	return chat.ThreadID{Channel: l.Post.Channel, Root: l.Post.Root}
}

func (o *outbox) limiterFor(channel string) *rate.Limiter {
	l := o.limits[channel]
	if l == nil {
		l = rate.NewLimiter(rate.Every(postEvery), postBurst)
		o.limits[channel] = l
	}
	return l
}

// send posts one letter and takes it off the outbox, or leaves it for later.
func (o *outbox) send(ctx context.Context, l *OutboxMessage) {
	if l.File != nil && l.File.ID == "" {
		o.startUpload(l)
		return
	}
	calling, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	ts, err := o.postOrEdit(calling, l)
	if err == nil {
		o.remove(l)
		o.m.recordPosted(ctx, l.Post, ts)
		if !l.Edit {
			o.m.onPosted(l.Post, ts)
		}
		return
	}
	o.handleFailure(ctx, l, err)
}

// failed leaves a letter for later, or takes it off the outbox where that is of no use. Only what Slack says of the channel
// or of the app holds up other threads.
func (o *outbox) handleFailure(ctx context.Context, l *OutboxMessage, err error) {
	var final *chat.FileError
	switch failure := chat.FailureOf(err); {
	case errors.Is(err, errWithdrawn):
	case ctx.Err() != nil:
	case errors.As(err, &final) && l.File != nil:
		o.replaceFileWithText(l, final.Why)
	case failure == chat.FailureMessage, failure == chat.FailureChannel && l.Final:
		o.handleRefusal(ctx, l, err)
	default:
		o.postpone(ctx, l, failure, err)
	}
}

// refused takes a letter off the outbox that Slack will never take. It gets one more chance as a plain text, unless there is
// nothing to be posted to any more.
func (o *outbox) handleRefusal(ctx context.Context, l *OutboxMessage, err error) {
	gone := errors.Is(err, chat.ErrThreadGone) || errors.Is(err, chat.ErrReplyGone) || chat.FailureOf(err) == chat.FailureChannel
	if !gone && !l.Post.Plain && o.fallBackToPlain(l) {
		o.m.o.Log.Warn("Slack refuses a message; it is posted as a plain text", "channel", l.Post.Channel, "session", l.Post.Session, "err", err)
		return
	}
	o.remove(l)
	o.m.o.Log.Warn("a message is dropped that Slack refuses", "channel", l.Post.Channel, "session", l.Post.Session, "err", err)
	o.m.emitPostFailed(ctx, l.Post, err)
}

// fallBackToPlain makes a plain text of a letter. False: it was withdrawn.
func (o *outbox) fallBackToPlain(l *OutboxMessage) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.messages, l) {
		return false
	}
	if l.File != nil { // the file may be what is refused
		o.removeContent(l)
		l.Post.Text, l.File = cmp.Or(l.File.Fallback, fileNotPostedText(l.File.Name, "Slack refuses it")), nil
	}
	l.Post.Plain, l.MaybePosted = true, false
	l.fails, l.notBefore = 0, time.Time{}
	_ = o.write(l) // as for a new one
	return true
}

// postpone has a letter tried again later.
func (o *outbox) postpone(ctx context.Context, l *OutboxMessage, failure chat.Failure, err error) {
	var limited *chat.RateLimitedError
	if errors.As(err, &limited) {
		o.scheduleRetry(l, limited.After, true)
		return
	}
	o.m.o.Log.Warn("could not post a message; it is tried again", "channel", l.Post.Channel, "err", err)
	if l.fails == 0 {
		o.m.emitPostFailed(ctx, l.Post, err)
	}
	o.scheduleRetry(l, min(postRetry<<min(l.fails, 6), postRetries), failure == chat.FailureChannel)
	if failure == chat.FailureApp {
		o.mu.Lock()
		o.pausedUntil = o.m.o.Now().Add(postRetries)
		o.mu.Unlock()
	}
}

// open has what was put off in a channel tried at once: something may be better there.
func (o *outbox) retryChannel(channel string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.closedUntil, channel)
	wake(o.wakeup)
}

func (o *outbox) postOrEdit(ctx context.Context, l *OutboxMessage) (ts string, err error) {
	if l.File != nil {
		return o.shareFile(ctx, l)
	}
	ts = l.TS
	if ts == "" && (l.Edit || l.MaybePosted) {
		ts, err = o.m.o.History.FindPost(ctx, l.Post.Channel, l.Post.Root, l.Post.Nonce, l.Since)
		if err != nil {
			return "", fmt.Errorf("look whether it was posted: %w", err)
		}
	}
	switch {
	case ts != "" && l.Edit:
		return ts, o.m.o.Poster.Update(ctx, ts, l.Post)
	case ts != "":
		return ts, nil
	case l.Edit && l.Final: // there is nothing to change
		o.remove(l)
		return "", errWithdrawn
	}
	if !o.setMaybePosted(l, true) {
		return "", errWithdrawn
	}
	ts, err = o.m.o.Poster.Post(ctx, l.Post)
	if err != nil && !errors.Is(err, chat.ErrOutcomeUnknown) && ctx.Err() == nil {
		o.setMaybePosted(l, false)
	}
	return ts, err
}

// setMaybePosted stores whether Slack may have a letter. False: it was withdrawn.
func (o *outbox) setMaybePosted(l *OutboxMessage, tried bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.messages, l) {
		return false
	}
	l.MaybePosted = tried
	_ = o.write(l) // it was logged; a crash now may post it twice, or look for it in vain
	return true
}

// errWithdrawn says that a letter was taken back before it was posted.
var errWithdrawn = errors.New("the message was withdrawn")

// withdraw takes a message back that certainly was not posted.
func (o *outbox) withdraw(nonce string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.messages {
		if l.Post.Nonce == nonce && !l.Edit && !l.MaybePosted {
			o.removeLocked(l)
			return true
		}
	}
	return false
}

// isPending reports whether a message is still to be posted.
func (o *outbox) isPending(nonce string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.messages, func(l *OutboxMessage) bool { return l.Post.Nonce == nonce && !l.Edit })
}

// later has a letter tried again after d, and with all the whole channel.
func (o *outbox) scheduleRetry(l *OutboxMessage, d time.Duration, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.fails++
	if all {
		o.closedUntil[l.Post.Channel] = o.m.o.Now().Add(d)
		return
	}
	l.notBefore = o.m.o.Now().Add(d)
}

func (o *outbox) remove(l *OutboxMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(l)
}

// removeSession empties the outbox of a session that is gone, but for the letter that says so.
func (o *outbox) removeSession(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range slices.Clone(o.messages) {
		if l.Post.Session == session && !l.Final {
			o.removeLocked(l)
		}
	}
}

// prune ends the letters of sessions that are gone: an earlier run ended before it came to that.
func (o *outbox) prune(there func(session string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range slices.Clone(o.messages) {
		if l.Post.Session != "" && !l.Final && !there(l.Post.Session) {
			o.m.o.Log.Info("a message of a session that is gone is not posted any more", "session", l.Post.Session)
			o.removeLocked(l)
		}
	}
}

// drop is remove. The caller holds mu.
func (o *outbox) removeLocked(l *OutboxMessage) {
	o.messages = slices.DeleteFunc(o.messages, func(have *OutboxMessage) bool { return have == l })
	if !slices.ContainsFunc(o.messages, func(have *OutboxMessage) bool { return have.threadID() == l.threadID() }) {
		delete(o.lastServed, l.threadID())
	}
	o.removeContent(l)
	o.m.storage.forget(o.file(l))
	if err := os.Remove(o.file(l)); err != nil && !errors.Is(err, os.ErrNotExist) {
		o.m.o.Log.Error("could not take a posted message off the outbox", "err", err)
	}
}

// posted records that a message of ours is there. A question learns where it stands.
func (m *Manager) recordPosted(ctx context.Context, p chat.Post, ts string) {
	fields := map[string]any{"channel": p.Channel, "thread": p.Root}
	if ts != "" { // of files Slack does not say it
		fields["ts"] = ts
	}
	m.o.Sink.Emit(ctx, sessions.Event{Name: EventPosted, Level: slog.LevelInfo, ID: p.Session, Fields: fields})
	t := m.threadOf(p.Session)
	if t == nil {
		return
	}
	t.do(func(context.Context) {
		if q, ok := t.b.ResendPrompts[p.Nonce]; ok && q.TS == "" {
			q.TS = ts
			t.b.ResendPrompts[p.Nonce] = q
			t.saveBestEffort()
		}
		if a, ok := t.b.PermissionRequests[p.Nonce]; ok && a.TS == "" {
			a.TS = ts
			t.b.PermissionRequests[p.Nonce] = a
			t.saveBestEffort()
		}
	})
}

func (m *Manager) emitPostFailed(ctx context.Context, p chat.Post, err error) {
	m.o.Sink.Emit(ctx, sessions.Event{Name: EventPostFailed, Level: slog.LevelWarn, ID: p.Session,
		Fields: map[string]any{"channel": p.Channel, "thread": p.Root, "reason": err.Error()}})
}
