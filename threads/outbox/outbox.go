package outbox

import (
	"cmp"
	"context"
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

	"the-loop/sessions/loop"
	"the-loop/sessions/statefile"
	"the-loop/threads/chat"
)

// Slack accepts one message a second in a channel, with a short burst.
const (
	postEvery   = 1100 * time.Millisecond
	postBurst   = 3
	postTimeout = 20 * time.Second
	postRetry   = time.Second
	postRetries = time.Minute // the longest pause between two tries
)

// Message is one message that is still to be posted, or one of ours that is to be edited. It is stored as JSON.
type Message struct {
	Seq         int64       `json:"seq"` // order
	Post        chat.Post   `json:"post"`
	Edit        bool        `json:"change,omitempty"` // the message with the post's nonce is to show the post
	TS          string      `json:"ts,omitempty"`     // of that message, when it is known
	Since       time.Time   `json:"after,omitzero"`   // not posted before, by the chat service's clock; zero: not known
	MaybePosted bool        `json:"tried,omitempty"`  // it may be there: look before posting
	LowPriority bool        `json:"quiet,omitempty"`  // it leaves the rate to others, and they go before it
	File        *Attachment `json:"file,omitempty"`   // the post has this file
	Final       bool        `json:"last,omitempty"`   // it says that its session is gone, and outlives it by one try

	loaded    bool // an earlier run wrote it
	uploading bool // its file is on its way
	fails     int
	notBefore time.Time
}

// Disk stores files. What could not be stored is stored later: it is behind until then.
type Disk interface {
	Save(path string, write func() error) error // calls write, which writes the file
	Forget(path string)
	IsBehind(path string) bool
}

// Observer hears what becomes of messages.
type Observer interface {
	Posted(ctx context.Context, m Message, ts string) // also edited; of files ts may be empty
	PostFailed(ctx context.Context, p chat.Post, err error)
}

// Options are what an [Outbox] is made of. All fields but the marked ones are required.
type Options struct {
	Dir            string // of the files; nobody else's
	Chat           Chat
	Uploader       chat.FileUploader // optional: no files are posted
	Disk           Disk
	Observer       Observer
	CurrentChannel func(id string) string             // the id that a channel has now
	IsSecret       func(text string) bool             // optional: the text holds what must be posted nowhere
	Start          func(f func(context.Context)) bool // runs f in a goroutine that outlives Run; false: too late
	ChatTime       func() time.Time                   // by the chat service's clock; zero: not known
	Now            func() time.Time
	Log            *slog.Logger
}

// Outbox posts messages, in order for each thread, once: a message is on disk before it is posted, and one that may have been
// posted is looked for by its nonce first. [Outbox.Run] must run for anything to be posted.
type Outbox struct {
	o      Options
	wakeup chan struct{}

	mu          sync.Mutex // guards the fields that follow
	seq         int64
	messages    []*Message
	limits      map[string]*rate.Limiter    // by channel
	pausedUntil time.Time                   // nothing may be posted before
	closedUntil map[string]time.Time        // channels that take nothing before
	lastServed  map[chat.ThreadID]time.Time // when a message of a thread was posted last, while it has more
}

// New makes an outbox and reads what waits. It starts nothing.
func New(options Options) (*Outbox, error) {
	o := &Outbox{o: options, wakeup: make(chan struct{}, 1), limits: map[string]*rate.Limiter{}, lastServed: map[chat.ThreadID]time.Time{},
		closedUntil: map[string]time.Time{}}
	statefile.Sweep(o.o.Dir, time.Now()) // the bot alone writes here
	names, err := os.ReadDir(o.o.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") || strings.HasPrefix(n.Name(), ".") {
			continue
		}
		m, err := format.Load(filepath.Join(o.o.Dir, n.Name()))
		if err != nil {
			o.o.Log.Error("a file in the outbox cannot be read, so its message is not posted", "file", n.Name(), "err", err)
			continue
		}
		m.loaded = true
		o.messages = append(o.messages, &m)
		o.seq = max(o.seq, m.Seq)
	}
	slices.SortFunc(o.messages, func(a, b *Message) int { return cmp.Compare(a.Seq, b.Seq) })
	o.removeOrphanedContents()
	return o, nil
}

// format is the file of a [Message]. Files of version 0 have no version, and are the same otherwise.
var format = statefile.Format[Message]{Version: 1, Migrations: map[int]statefile.Migration{0: statefile.NoChange}}

func (o *Outbox) file(m *Message) string {
	return filepath.Join(o.o.Dir, fmt.Sprintf("%012d.json", m.Seq))
}

// Add queues a message that nothing depends on. maybePosted says that an earlier run may have posted it already.
func (o *Outbox) Add(p chat.Post, maybePosted bool) {
	m := &Message{Post: p, MaybePosted: maybePosted}
	if !maybePosted {
		m.Since = o.o.ChatTime()
	}
	_ = o.Put(m) // it was logged, and nothing depends on it
}

// Update queues an edit of a message of ours. Without a ts it may still be in the outbox itself: then it is posted as it is now.
func (o *Outbox) Update(p chat.Post, ts string) {
	if ts == "" && o.replace(p) {
		return
	}
	_ = o.Put(&Message{Post: p, Edit: true, TS: ts}) // it was logged, and nothing depends on it
}

// replace changes a message that was not posted yet.
func (o *Outbox) replace(p chat.Post) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if m.Post.Nonce == p.Nonce && !m.Edit && !m.MaybePosted {
			m.Post = p
			_ = o.write(m) // as for a new one
			return true
		}
	}
	return false
}

// Put queues a message, unless the same one is there. The error says that it could not be stored: it is posted unless the
// program ends before.
func (o *Outbox) Put(m *Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, have := range o.messages {
		if have.Post.Nonce == m.Post.Nonce && have.Edit == m.Edit && have.Post.Text == m.Post.Text {
			return o.write(have)
		}
	}
	o.seq++
	m.Seq = o.seq
	o.messages = append(o.messages, m)
	loop.Wake(o.wakeup)
	return o.write(m)
}

// write stores a message.
func (o *Outbox) write(m *Message) error {
	path := o.file(m)
	write := format.Replace
	if m.loaded { // it may have fields that we do not know
		write = format.Save
	}
	return o.o.Disk.Save(path, func() error { return write(path, *m) })
}

// RetryWrites stores the messages that could not be stored.
func (o *Outbox) RetryWrites() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if o.o.Disk.IsBehind(o.file(m)) {
			_ = o.write(m) // it is tried again
		}
	}
}

// Len is how many messages wait.
func (o *Outbox) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.messages)
}

// LenOfChannel is how many messages wait for one channel.
func (o *Outbox) LenOfChannel(channel string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if m.Post.Channel == channel {
			n++
		}
	}
	return n
}

// LenOfSession is how many messages of a session wait.
func (o *Outbox) LenOfSession(session string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, m := range o.messages {
		if m.Post.Session == session {
			n++
		}
	}
	return n
}

// Wake has the outbox look again at once.
func (o *Outbox) Wake() { loop.Wake(o.wakeup) }

// Run posts until ctx ends.
func (o *Outbox) Run(ctx context.Context) {
	loop.Run(ctx, o.wakeup, func(ctx context.Context) time.Duration {
		m, wait := o.pick()
		if m == nil {
			return wait
		}
		o.send(ctx, m)
		return 0
	})
}

// pick returns the message to post now, or how long to wait. Messages of a thread go in order. Of several threads in a channel
// the one that was served the longest ago goes first: an agent that says a lot holds up no other's thread.
func (o *Outbox) pick() (*Message, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.o.Now()
	if wait := o.pausedUntil.Sub(now); wait > 0 {
		return nil, wait
	}
	var best *Message
	wait, closed := closedChannels(o.closedUntil, now)
	seen := map[chat.ThreadID]bool{}
	for _, m := range o.messages {
		o.applyChannelMove(m)
		at := m.threadID()
		if seen[at] || closed[at.Channel] {
			continue
		}
		d, all := o.delayOf(m)
		seen[at] = !m.LowPriority || d <= 0
		switch {
		case d > 0:
			wait = min(wait, d)
			closed[at.Channel] = all
		case best == nil || o.lastServed[at].Before(o.lastServed[best.threadID()]):
			best = m
		}
	}
	if best == nil {
		return nil, wait
	}
	o.limiterFor(best.Post.Channel).Allow()
	o.lastServed[best.threadID()] = o.o.Now()
	return best, 0
}

// closedChannels are the channels that take nothing now, and how long until the first one may. It removes those that may.
func closedChannels(closedUntil map[string]time.Time, now time.Time) (wait time.Duration, closed map[string]bool) {
	wait, closed = time.Hour, map[string]bool{}
	for channel, until := range closedUntil {
		if !until.After(now) {
			delete(closedUntil, channel)
			continue
		}
		closed[channel], wait = true, min(wait, until.Sub(now))
	}
	return wait, closed
}

// applyChannelMove changes the channel of a message to the id that it has now. The caller holds mu, and nothing posts the message.
func (o *Outbox) applyChannelMove(m *Message) {
	if to := o.o.CurrentChannel(m.Post.Channel); to != m.Post.Channel && !m.uploading {
		m.Post.Channel, m.notBefore = to, time.Time{}
		_ = o.write(m) // it was logged; the next start does it again
	}
}

// delayOf is how long a message has to wait, and whether all others of its channel have to.
func (o *Outbox) delayOf(m *Message) (d time.Duration, all bool) {
	if m.uploading {
		return time.Hour, false
	}
	if d := m.notBefore.Sub(o.o.Now()); d > 0 {
		return d, false
	}
	if missing := m.requiredTokens() - o.limiterFor(m.Post.Channel).Tokens(); missing > 0 {
		return max(time.Millisecond, time.Duration(missing*float64(postEvery))), !m.LowPriority
	}
	return 0, false
}

// requiredTokens is how many messages the channel must be ready to take.
func (m *Message) requiredTokens() float64 {
	if m.LowPriority {
		return postBurst
	}
	return 1
}

func (m *Message) threadID() chat.ThreadID {
	return chat.ThreadID{Channel: m.Post.Channel, Root: m.Post.Root}
}

func (o *Outbox) limiterFor(channel string) *rate.Limiter {
	l := o.limits[channel]
	if l == nil {
		l = rate.NewLimiter(rate.Every(postEvery), postBurst)
		o.limits[channel] = l
	}
	return l
}

// send posts one message and removes it from the outbox, or leaves it for later.
func (o *Outbox) send(ctx context.Context, m *Message) {
	if m.File != nil && m.File.ID == "" {
		o.startUpload(m)
		return
	}
	calling, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	ts, err := o.postOrEdit(calling, m)
	if err == nil {
		o.remove(m)
		o.o.Observer.Posted(ctx, *m, ts)
		return
	}
	o.handleFailure(ctx, m, err)
}

// handleFailure leaves a message for later, or removes it where trying again does not help. Only a failure of the channel or of the
// app holds up other threads.
func (o *Outbox) handleFailure(ctx context.Context, m *Message, err error) {
	var final *chat.FileError
	switch failure := chat.FailureOf(err); {
	case errors.Is(err, errWithdrawn):
	case ctx.Err() != nil:
	case errors.As(err, &final) && m.File != nil:
		o.replaceFileWithText(m, final.Why)
	case failure == chat.FailureMessage, failure == chat.FailureChannel && m.Final:
		o.handleRefusal(ctx, m, err)
	default:
		o.postpone(ctx, m, failure, err)
	}
}

// handleRefusal removes a message that is refused for good. It is tried once more as a plain text, unless what it would be posted
// to is gone.
func (o *Outbox) handleRefusal(ctx context.Context, m *Message, err error) {
	gone := errors.Is(err, chat.ErrThreadGone) || errors.Is(err, chat.ErrReplyGone) || chat.FailureOf(err) == chat.FailureChannel
	if !gone && !m.Post.Plain && o.fallBackToPlain(m) {
		o.o.Log.Warn("a message is refused and posted as a plain text", "channel", m.Post.Channel, "session", m.Post.Session, "err", err)
		return
	}
	o.remove(m)
	o.o.Log.Warn("a message is refused and dropped", "channel", m.Post.Channel, "session", m.Post.Session, "err", err)
	o.o.Observer.PostFailed(ctx, m.Post, err)
}

// fallBackToPlain makes a message a plain text. False: it was withdrawn.
func (o *Outbox) fallBackToPlain(m *Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.messages, m) {
		return false
	}
	if m.File != nil { // the file may be what is refused
		o.removeContent(m)
		m.Post.Text, m.File = cmp.Or(m.File.Fallback, FileNotPostedText(m.File.Name, "Slack refuses it")), nil
	}
	m.Post.Plain, m.MaybePosted = true, false
	m.fails, m.notBefore = 0, time.Time{}
	_ = o.write(m) // as for a new one
	return true
}

// postpone leaves a message for later.
func (o *Outbox) postpone(ctx context.Context, m *Message, failure chat.Failure, err error) {
	var limited *chat.RateLimitedError
	if errors.As(err, &limited) {
		o.scheduleRetry(m, limited.After, true)
		return
	}
	o.o.Log.Warn("could not post a message; it is tried again", "channel", m.Post.Channel, "err", err)
	if m.fails == 0 {
		o.o.Observer.PostFailed(ctx, m.Post, err)
	}
	o.scheduleRetry(m, min(postRetry<<min(m.fails, 6), postRetries), failure == chat.FailureChannel)
	if failure == chat.FailureApp {
		o.mu.Lock()
		o.pausedUntil = o.o.Now().Add(postRetries)
		o.mu.Unlock()
	}
}

// RetryChannel ends the pause of a channel that took nothing.
func (o *Outbox) RetryChannel(channel string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.closedUntil, channel)
	loop.Wake(o.wakeup)
}

// postOrEdit posts or edits a message, once.
func (o *Outbox) postOrEdit(ctx context.Context, m *Message) (ts string, err error) {
	if m.File != nil {
		return o.shareFile(ctx, m)
	}
	c := o.current(m)
	if err := c.Find(ctx); err != nil {
		return "", err
	}
	switch {
	case c.State.TS != "" && m.Edit:
		return c.State.TS, c.Show(ctx)
	case c.State.TS == "" && m.Edit && m.Final: // there is nothing to edit
		o.remove(m)
		return "", errWithdrawn
	}
	err = c.Ensure(ctx)
	return c.State.TS, err
}

// current is a message as one that is posted once. What is posted is not stored: the message is removed then.
func (o *Outbox) current(m *Message) *Current {
	return &Current{Chat: o.o.Chat, Post: m.Post, State: State{TS: m.TS, Since: m.Since, MaybePosted: m.Edit || m.MaybePosted},
		Store: func(_ context.Context, s State) error {
			if s.TS == "" && !o.setMaybePosted(m, s.MaybePosted) {
				return errWithdrawn
			}
			return nil
		}}
}

// setMaybePosted stores whether a message may be there. False: it was withdrawn.
func (o *Outbox) setMaybePosted(m *Message, maybe bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.messages, m) {
		return false
	}
	m.MaybePosted = maybe
	_ = o.write(m) // it was logged; a crash now may post it twice, or look for it in vain
	return true
}

// errWithdrawn says that a message was withdrawn before it was posted.
var errWithdrawn = errors.New("the message was withdrawn")

// Withdraw removes a message that certainly was not posted. False: there is none.
func (o *Outbox) Withdraw(nonce string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages {
		if m.Post.Nonce == nonce && !m.Edit && !m.MaybePosted {
			o.removeLocked(m)
			return true
		}
	}
	return false
}

// IsPending reports whether a message is still to be posted.
func (o *Outbox) IsPending(nonce string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.messages, func(m *Message) bool { return m.Post.Nonce == nonce && !m.Edit })
}

// scheduleRetry lets a message wait for d, or with all its whole channel.
func (o *Outbox) scheduleRetry(m *Message, d time.Duration, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.fails++
	if all {
		o.closedUntil[m.Post.Channel] = o.o.Now().Add(d)
		return
	}
	m.notBefore = o.o.Now().Add(d)
}

func (o *Outbox) remove(m *Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(m)
}

// RemoveSession removes the messages of a session that is gone, except for the one that says so.
func (o *Outbox) RemoveSession(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range slices.Clone(o.messages) {
		if m.Post.Session == session && !m.Final {
			o.removeLocked(m)
		}
	}
}

// Prune removes the messages of sessions that are gone: an earlier run may have ended before that.
func (o *Outbox) Prune(exists func(session string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range slices.Clone(o.messages) {
		if m.Post.Session != "" && !m.Final && !exists(m.Post.Session) {
			o.o.Log.Info("a message is dropped: its session is gone", "session", m.Post.Session)
			o.removeLocked(m)
		}
	}
}

// removeLocked removes a message. The caller holds mu.
func (o *Outbox) removeLocked(m *Message) {
	o.messages = slices.DeleteFunc(o.messages, func(have *Message) bool { return have == m })
	if !slices.ContainsFunc(o.messages, func(have *Message) bool { return have.threadID() == m.threadID() }) {
		delete(o.lastServed, m.threadID())
	}
	o.removeContent(m)
	o.o.Disk.Forget(o.file(m))
	if err := os.Remove(o.file(m)); err != nil && !errors.Is(err, os.ErrNotExist) {
		o.o.Log.Error("could not remove a message from the outbox", "err", err)
	}
}
