package threads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/attachments"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

// Agent is what a thread asks of the core.
type Agent interface {
	Submit(ctx context.Context, q sessions.SubmitRequest) (sessions.Receipt, error)
	VerifyInput(ctx context.Context, q sessions.VerifyInputRequest) (bool, error)
	ReadTranscript(ctx context.Context, q sessions.TranscriptRequest) (sessions.TranscriptBatch, error)
}

// Commander runs what a reply tells the bot to do, and answers in the thread.
type Commander interface {
	Command(ctx context.Context, q CommandRequest) (answer string)
}

// CommandRequest is a command, from a member who may give it.
type CommandRequest struct {
	ID      string // of the session
	Ref     sessions.Ref
	Channel string
	Root    string
	User    string
	Command chat.Command
}

// Settings are what the configuration says of replies.
type Settings struct {
	MaxAge  time.Duration // older replies are offered, not typed
	Emoji   map[Mark]string
	Answers Answers // empty: AnswersOff
	MaxFile int64   // bytes of one file, either way; 0: none is fetched or posted
}

// Options are what a [Manager] is made of. All fields but the marked ones are required.
type Options struct {
	Root         string // the state's root folder
	Agent        Agent
	Commander    Commander
	History      chat.History
	Reactions    chat.ReactionWriter
	Poster       chat.Poster
	Fetcher      chat.Fetcher      // optional: files of replies are named only
	FileUploader chat.FileUploader // optional: no files are posted
	Channels     chat.Channels     // optional: a channel whose new id was missed is found when somebody replies in it
	Folders      Folders
	StatusSetter chat.StatusSetter // optional: messages tell of long turns
	ScreenReader ScreenReader      // optional: whether an agent works is known by its record alone
	Tickets      TicketWriter      // optional: nothing is written onto tickets, and the event log says so
	Sink         sessions.Sink
	Policy       func() authz.Policy
	Settings     func() Settings
	Reports      ReportReader // optional: without it nothing is heard of what agents report
	// PermissionText shows what an agent asks, and says whether that is all of it: where it is not, nobody decides here. DialogText
	// shows what stands in a dialog on an agent's screen. Optional: in plain words, and not at all.
	PermissionText func(ref sessions.Ref, a sessions.PermissionRequest) (text string, whole bool)
	DialogText     func(lines []string) string
	RemindAfter    time.Duration          // optional: how long an agent may wait for its operator before the thread says so; a minute
	RenderAnswer   AnswerRenderer         // optional: each text is one message
	IsSecret       func(text string) bool // optional: the text holds what must be posted nowhere
	Clock          *chat.Clock            // optional: what is known of Slack's clock; the surface has it hear of every answer and event
	Now            func() time.Time       // optional: time.Now
	Log            *slog.Logger           // optional: silent
}

// Names of the events that this package emits.
const (
	EventReceived    = "channel.reply_received"
	EventDropped     = "channel.dropped"
	EventMirrorSkip  = "channel.mirror_skipped"
	EventMirrored    = "channel.mirrored"
	EventMirrorFail  = "channel.mirror_failed"
	EventPosted      = "channel.posted"
	EventPostFailed  = "channel.post_failed"
	EventAnnounced   = "standing.announced"
	EventAnnounceErr = "standing.announce_failed"
)

// Reasons of [EventDropped].
const (
	ReasonUnmapped     = "unmapped"
	ReasonUnauthorized = "unauthorized-actor"
	ReasonWithdrawn    = "withdrawn"
	ReasonSuspended    = "config-invalid" // the list cannot be read, and the last valid one did not have who wrote it
)

// stopGrace is how long replies that are on their way may take to settle when the manager is told to stop. What is not
// settled by then is found, stored as in flight, by the next start.
const stopGrace = 500 * time.Millisecond

// Manager owns all threads. [Manager.Restart] must run for anything to happen.
type Manager struct {
	o            Options
	storage      *storage
	store        bindings
	outbox       *outbox.Outbox
	downloader   *attachments.Downloader
	channelMoves *channelMoves
	receipts     *receipts
	reader       *threadReader
	statusLoop   *statusLoop

	watchCtx    context.Context // of those who only wait for something to happen; ends with Run's context
	cancelWatch context.CancelFunc
	workCtx     context.Context // outlives Run's context by the grace
	cancelWork  context.CancelFunc
	idle        chan struct{} // closed when the last goroutine ended after closing
	unreadable  []*sessions.UnreadableError

	mu                    sync.Mutex // guards the fields that follow; taken after a thread's, never before
	closing               bool
	otherConnectionsUntil time.Time // until when events may go to another connection
	running               int       // goroutines that Run waits for
	byID                  map[string]*thread
	byThread              map[chat.ThreadID]*thread
}

// New makes a manager and reads the bindings. It starts nothing.
func New(o Options) (*Manager, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = &chat.Clock{}
	}
	if o.RemindAfter == 0 {
		o.RemindAfter = defaultRemindAfter
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	disk := newStorage(o.Log)
	m := &Manager{o: o, storage: disk, store: bindings{filepath.Join(o.Root, "threads"), disk}, idle: make(chan struct{}),
		byID: map[string]*thread{}, byThread: map[chat.ThreadID]*thread{}}
	m.workCtx, m.cancelWork = context.WithCancel(context.Background())
	m.watchCtx, m.cancelWatch = context.WithCancel(m.workCtx)
	all, broken, err := m.store.load()
	if err != nil {
		return nil, err
	}
	m.unreadable = broken
	if m.channelMoves = loadChannelMoves(filepath.Join(o.Root, "channels.json")); m.channelMoves.loadErr != nil {
		o.Log.Error("channels that have another id are not found under it", "err", m.channelMoves.loadErr)
	}
	for _, b := range broken {
		o.Log.Error("a binding cannot be used; its thread is left alone", "err", b)
	}
	for _, b := range all {
		b.Channel = m.channelMoves.current(b.Channel)
		m.index(newThread(m, b))
	}
	m.receipts, m.reader, m.statusLoop = newReceipts(m), newThreadReader(m), newStatusLoop(m)
	m.downloader = &attachments.Downloader{Fetcher: o.Fetcher, MaxSize: func() int64 { return o.Settings().MaxFile }, Now: o.Now, Log: o.Log}
	m.outbox, err = outbox.New(outbox.Options{Dir: filepath.Join(o.Root, "outbox"), Chat: m.chat(), Uploader: o.FileUploader, Disk: disk, Observer: postObserver{m},
		CurrentChannel: m.channelMoves.current, IsSecret: o.IsSecret, Start: m.start, ChatTime: m.slackTime, Now: o.Now, Log: o.Log})
	if err != nil {
		return nil, err
	}
	m.outbox.Prune(m.mayExist)
	return m, nil
}

// mayExist reports whether a session has a binding, or one that cannot be read.
func (m *Manager) mayExist(id string) bool {
	return m.threadOf(id) != nil || slices.ContainsFunc(m.unreadable, func(b *sessions.UnreadableError) bool { return b.Path == m.store.path(id) })
}

// Run settles what a crash left in flight, then works until ctx ends, and returns when every goroutine has.
func (m *Manager) Run(ctx context.Context) {
	for _, t := range m.threads() {
		t.do(t.recoverInFlight)
		t.do(func(context.Context) { t.watchOpenPermissions() })
		m.receipts.markDirty(t)
	}
	loops, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){m.receipts.run, m.reader.run, m.outbox.Run, m.statusLoop.run, m.retryStores} {
		wg.Go(func() { loop(loops) })
	}
	<-ctx.Done()
	stop()
	m.cancelWatch()
	wg.Wait()
	late := time.AfterFunc(stopGrace, m.cancelWork)
	defer late.Stop()
	if m.beginClose() > 0 {
		<-m.idle
	}
	m.cancelWork()
}

// close lets nothing new begin and returns how many goroutines are still at work.
func (m *Manager) beginClose() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closing = true
	return m.running
}

// start runs f in a goroutine that Run waits for. It reports false, and does nothing, when the manager has come to rest
// after closing. While others still work, it goes on: they may need it to settle.
func (m *Manager) start(f func(ctx context.Context)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing && m.running == 0 {
		return false
	}
	m.running++
	go func() {
		defer m.done()
		f(m.workCtx)
	}()
	return true
}

func (m *Manager) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	if m.closing && m.running == 0 {
		close(m.idle)
	}
}

// isStopping reports whether nothing new should be begun.
func (m *Manager) isStopping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closing
}

// rest waits for a while. False: the manager stops.
func (m *Manager) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-m.watchCtx.Done():
		return false
	}
}

func (m *Manager) index(t *thread) {
	at := t.threadID() // before m.mu: a thread's lock comes first
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byID[t.sessionID] = t
	if at.Root != "" {
		m.byThread[at] = t
	}
}

func (m *Manager) unindex(t *thread) {
	at := t.threadID()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byID, t.sessionID)
	delete(m.byThread, at)
}

// unindexRoot forgets where a thread was, and keeps the session.
func (m *Manager) unindexRoot(t *thread) {
	at := t.setThreadID(chat.ThreadID{Channel: t.b.Channel})
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byThread, at)
}

func (m *Manager) threads() []*thread {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*thread, 0, len(m.byID))
	for _, t := range m.byID {
		all = append(all, t)
	}
	return all
}

func (m *Manager) threadAt(channel, root string) *thread {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byThread[chat.ThreadID{Channel: m.channelMoves.current(channel), Root: root}]
}

func (m *Manager) threadOf(id string) *thread {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byID[id]
}

// now is the time by Slack's clock, as far as it is known.
func (m *Manager) now() time.Time {
	if now, known := m.o.Clock.Now(); known {
		return now
	}
	return m.o.Now()
}

// slackTime is now where it is known, and zero where it is not: then the past of a thread is looked through from its begin.
func (m *Manager) slackTime() time.Time {
	now, _ := m.o.Clock.Now()
	return now
}

// HandleReply takes a live reply. It never blocks.
func (m *Manager) HandleReply(r chat.Reply) {
	if t := m.threadAt(r.Channel, r.Root); t != nil {
		t.do(func(ctx context.Context) { t.onReply(ctx, r, !r.Redelivered) })
		return
	}
	m.start(func(ctx context.Context) { m.handleUnboundReply(ctx, r) })
}

// handleUnboundReply handles a reply in a thread that is bound to nothing: a crash between the announcement's post and its binding
// may have left it so. That one root is looked at, and bound if it is ours.
func (m *Manager) handleUnboundReply(ctx context.Context, r chat.Reply) {
	for _, t := range m.threads() {
		a, ok := t.pendingAnnouncement(ctx, r.Channel)
		if !ok {
			continue
		}
		ts, err := m.o.History.FindPost(ctx, r.Channel, r.Root, a.Nonce, a.Since)
		if err != nil {
			m.o.Log.Warn("could not look whether a thread is ours", "channel", r.Channel, "root", r.Root, "err", err)
			continue
		}
		if ts == r.Root {
			t.call(ctx, func(ctx context.Context) { t.bindRoot(ctx, ts, "") })
			t.do(func(ctx context.Context) { t.onReply(ctx, r, !r.Redelivered) })
			return
		}
	}
	if t := m.threadAt(r.Channel, r.Root); t != nil { // bound by the announcer in the meantime
		t.do(func(ctx context.Context) { t.onReply(ctx, r, !r.Redelivered) })
		return
	}
	if t := m.findMovedThread(ctx, r); t != nil {
		t.do(func(ctx context.Context) { t.onReply(ctx, r, !r.Redelivered) })
		return
	}
	m.emitDropped(ctx, "", "", r, ReasonUnmapped)
}

// ReplyEdited takes a reply whose text was changed by its author.
func (m *Manager) ReplyEdited(r chat.Reply) {
	if t := m.threadAt(r.Channel, r.Root); t != nil {
		t.do(func(ctx context.Context) { t.onEdited(ctx, r) })
	}
}

// ReplyDeleted takes the deletion of a reply.
func (m *Manager) ReplyDeleted(channel, root, ts string) {
	if t := m.threadAt(channel, root); t != nil {
		t.do(func(ctx context.Context) { t.onDeleted(ctx, ts) })
	}
}

// ThreadDeleted takes the deletion of an announcement: its thread is unbound, and the next announcement is a new one.
func (m *Manager) ThreadDeleted(channel, root string) {
	if t := m.threadAt(channel, root); t != nil {
		t.do(t.dismiss)
	}
}

// otherConnectionsFor is how long after a connection began Slack may still send events to another one that it counted then: one that we
// lost and that Slack has not given up yet, or another bot's.
const otherConnectionsFor = 2 * time.Minute

// Connected says that events flow (again): each thread is read before a live reply of it is typed. Unless the connection is the
// only one, a live reply may also be the first that is heard of several: for a while its thread is read first each time.
func (m *Manager) Connected(alone bool) {
	m.mu.Lock()
	m.otherConnectionsUntil = time.Time{}
	if !alone {
		m.otherConnectionsUntil = time.Now().Add(otherConnectionsFor)
	}
	m.mu.Unlock()
	m.statusLoop.onConnected()
	m.CatchUpAll()
}

// mayMissEvents reports that an event of an earlier reply may have gone to another connection.
func (m *Manager) mayMissEvents() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.otherConnectionsUntil)
}

// CatchUpAll has every bound thread read: something may have been missed.
func (m *Manager) CatchUpAll() {
	for _, t := range m.threads() {
		t.do(t.requireRead)
	}
}

// CatchUp has one thread read.
func (m *Manager) CatchUp(channel, root string) {
	if t := m.threadAt(channel, root); t != nil {
		t.do(t.requireRead)
	}
}

// ChannelOpened has everything tried at once that was put off because the channel took nothing.
func (m *Manager) ChannelOpened(channel string) {
	m.receipts.retryChannel(channel)
	m.outbox.RetryChannel(channel)
	m.statusLoop.retryChannel(channel)
}

// PendingPosts is how many messages wait to be posted in a channel.
func (m *Manager) PendingPosts(channel string) int { return m.outbox.LenOfChannel(channel) }

// UnreadableBindings are the files of bindings that could not be used.
func (m *Manager) UnreadableBindings() []*sessions.UnreadableError { return m.unreadable }

// Status is what there is to say of the threads now.
type Status struct {
	Bound    int `json:"bound"`
	Unread   int `json:"unread"`   // threads that wait to be read
	Unposted int `json:"unposted"` // messages of ours that wait to be posted

	Unstored string `json:"unstored,omitempty"` // why something cannot be stored, so that replies wait; empty: all is
}

// Status counts.
func (m *Manager) Status() Status {
	m.mu.Lock()
	bound := len(m.byThread)
	m.mu.Unlock()
	return Status{Bound: bound, Unread: m.reader.pendingCount(), Unposted: m.outbox.Len(), Unstored: m.storage.problem()}
}

func (m *Manager) emitDropped(ctx context.Context, id string, ref sessions.Ref, r chat.Reply, reason string) {
	m.o.Sink.Emit(ctx, sessions.Event{Name: EventDropped, Level: slog.LevelInfo, ID: id, Ref: ref, Fields: map[string]any{
		"reason": reason, "channel": r.Channel, "thread": r.Root, "ts": r.TS, "user": r.Actor.User}})
}

// ResendChoice is a click on a button of a question.
type ResendChoice struct {
	Token  string // the button's value
	Action string // [ActionSend] or [ActionSkip]
	Actor  authz.Actor
	TS     string // of the message with the button
}

// ErrDenied says that an actor may not do what he tried. Nothing of it is shown to him.
var ErrDenied = errors.New("not allowed")

// Resend settles a question, once. The answer is for the one who clicked, and true also for a second click and for one
// after a restart.
func (m *Manager) Resend(ctx context.Context, d ResendChoice) (string, error) {
	switch verdict, _ := m.o.Policy().Authorize(d.Actor); verdict {
	case authz.Denied, authz.SuspendedUnlisted:
		return "", ErrDenied
	case authz.Suspended:
		return suspendedText, nil
	}
	id, _, _ := cutToken(d.Token)
	t := m.threadOf(id)
	if t == nil {
		return "This session is gone, and the question with it.", nil
	}
	answer, ok := call(ctx, t, func(ctx context.Context) string { return t.resend(ctx, d) })
	if !ok {
		return "", fmt.Errorf("decide: %w", ctx.Err())
	}
	return answer, nil
}

// token is an opaque, unguessable name of a question that leads to its thread.
func token(id string) string { return id + "." + rand.Text() }

func cutToken(token string) (id, secret string, ok bool) {
	for i := len(token) - 1; i >= 0; i-- {
		if token[i] == '.' {
			return token[:i], token[i+1:], true
		}
	}
	return "", token, false
}
