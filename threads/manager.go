package threads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/attachments"
	"the-loop/threads/binding"
	"the-loop/threads/catchup"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
	"the-loop/threads/receipts"
	"the-loop/threads/relay"
	"the-loop/threads/status"
)

// Agent is what threads need of the core.
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
	Emoji   map[binding.Mark]string
	Answers relay.Answers // empty: AnswersOff
	MaxFile int64         // bytes of one file, either way; 0: none is fetched or posted
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
	PermissionText func(ref sessions.Ref, a sessions.PermissionRequest) PermissionRendering
	DialogText     func(lines []string) string
	RemindAfter    time.Duration          // optional: how long an agent may wait for its operator before the thread says so; a minute
	RenderAnswer   relay.AnswerRenderer   // optional: each text is one message
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

// Manager owns all threads. [Manager.Run] must run for anything to happen.
type Manager struct {
	*services
	*loops
	disk       *binding.Disk
	announcer  *announcer
	relocator  *relocator
	unreadable []*sessions.UnreadableError
}

// New makes a manager and reads the bindings. It starts nothing.
func New(o Options) (*Manager, error) {
	o.setDefaults()
	disk := binding.NewDisk(o.Log)
	moves := loadChannelMoves(filepath.Join(o.Root, "channels.json"))
	if moves.loadErr != nil {
		o.Log.Error("the file of channels that have another id cannot be read, so their threads are not found", "err", moves.loadErr)
	}
	sv := &services{Options: o, Goroutines: actor.NewGoroutines(), store: binding.NewStore(filepath.Join(o.Root, "threads"), disk), connections: &connections{},
		downloader: &attachments.Downloader{Fetcher: o.Fetcher, MaxSize: func() int64 { return o.Settings().MaxFile }, Now: o.Now, Log: o.Log}}
	l := &loops{index: newThreadIndex(moves)}
	m := &Manager{services: sv, loops: l, disk: disk}
	m.relocator = &relocator{services: sv, index: l.index, searchedAt: map[string]time.Time{}}
	l.receipts = receipts.New(receipts.Options{Reactions: o.Reactions, Emoji: func(mark binding.Mark) string { return o.Settings().Emoji[mark] }, Now: o.Now, Log: o.Log})
	l.reader = catchup.New(catchup.Options{History: o.History, Finder: m.relocator, Clock: o.Clock, Start: sv.Start, Log: o.Log})
	m.announcer = &announcer{services: sv, loops: l, chat: outbox.PlainFallback{Chat: sv.chat(), Log: o.Log}}
	var err error
	sv.outbox, err = outbox.New(outbox.Options{Dir: filepath.Join(o.Root, "outbox"), Chat: sv.chat(), Uploader: o.FileUploader, Disk: disk,
		Observer: postObserver{o.Sink, l.index}, CurrentChannel: moves.current, IsSecret: o.IsSecret, Start: sv.Start, ChatTime: sv.slackTime, Now: o.Now, Log: o.Log})
	if err != nil {
		return nil, err
	}
	l.status = status.NewLoop(status.Options{Chat: sv.chat(), Outbox: sv.outbox, StatusSetter: o.StatusSetter, ScreenReader: o.ScreenReader,
		AnswersOff: func() bool { return sv.answerMode() == relay.AnswersOff }, Clock: o.Clock, Now: o.Now, Log: o.Log})
	if err := m.loadBindings(); err != nil {
		return nil, err
	}
	sv.outbox.Prune(m.mayExist)
	return m, nil
}

func (o *Options) setDefaults() {
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
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func (m *Manager) loadBindings() error {
	all, broken, err := m.store.Load()
	if err != nil {
		return err
	}
	m.unreadable = broken
	for _, b := range broken {
		m.Log.Error("a binding cannot be read, so its thread is not served", "err", b)
	}
	for _, b := range all {
		b.Channel = m.index.moves.current(b.Channel)
		m.index.put(newThread(m.services, m.loops, b, false))
	}
	return nil
}

// mayExist reports whether a session has a binding, or one that cannot be read.
func (m *Manager) mayExist(id string) bool {
	return m.index.of(id) != nil || m.unreadableBinding(id) != nil
}

// unreadableBinding is why the binding of a session cannot be read; nil: it can, or there is none.
func (m *Manager) unreadableBinding(id string) *sessions.UnreadableError {
	for _, broken := range m.unreadable {
		if broken.Path == m.store.Path(id) {
			return broken
		}
	}
	return nil
}

// Run takes up what an earlier run left, then works until ctx ends, and returns when every goroutine has ended.
func (m *Manager) Run(ctx context.Context) {
	for _, t := range m.index.all() {
		t.Do(t.recover)
	}
	loops, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){m.receipts.Run, m.reader.Run, m.outbox.Run, m.loops.status.Run, m.sweep, m.retryStores} {
		wg.Go(func() { loop(loops) })
	}
	<-ctx.Done()
	stop()
	m.EndWatch()
	wg.Wait()
	m.Goroutines.Stop()
}

// storeRetry is the pause between tries to store what could not be stored.
const storeRetry = 2 * time.Second

// Threads that were active within sweepActive are read every sweepEvery, so that a reply whose event never came is found.
const (
	sweepEvery  = 10 * time.Minute
	sweepActive = time.Hour
)

// sweep has active threads read again and again, until ctx ends.
func (m *Manager) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range m.index.all() {
			t.Do(func(context.Context) {
				if t.isActive(sweepActive) {
					t.signals.readFreshDue(false)
				}
			})
		}
	}
}

// retryStores stores what could not be stored, until ctx ends.
func (m *Manager) retryStores(ctx context.Context) {
	tick := time.NewTicker(storeRetry)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.disk.Failed:
		}
		for m.disk.Problem() != "" {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			m.outbox.RetryWrites()
			for _, t := range m.index.all() {
				if m.disk.IsBehind(m.store.Path(t.SessionID)) {
					t.Call(ctx, func(context.Context) { t.SaveBestEffort() })
				}
			}
		}
	}
}

// HandleReply handles a live reply. It never blocks.
func (m *Manager) HandleReply(r chat.Reply) {
	if t := m.index.at(r.Channel, r.Root); t != nil {
		t.Do(func(ctx context.Context) { t.replies.onReply(ctx, r, !r.Redelivered) })
		return
	}
	m.Start(func(ctx context.Context) { m.handleUnboundReply(ctx, r) })
}

// handleUnboundReply handles a reply in a thread that is bound to nothing: a crash between the announcement's post and its binding
// may have left it so. That one root is looked at, and bound if it is ours.
func (m *Manager) handleUnboundReply(ctx context.Context, r chat.Reply) {
	for _, t := range m.index.all() {
		a, ok := t.pendingAnnouncement(ctx, r.Channel)
		if !ok {
			continue
		}
		ts, err := m.History.FindPost(ctx, r.Channel, r.Root, a.Nonce, a.Since)
		if err != nil {
			m.Log.Warn("could not look whether a thread is ours", "channel", r.Channel, "root", r.Root, "err", err)
			continue
		}
		if ts == r.Root {
			t.Call(ctx, func(ctx context.Context) { t.bindRoot(ctx, ts, "") })
			t.Do(func(ctx context.Context) { t.replies.onReply(ctx, r, !r.Redelivered) })
			return
		}
	}
	if t := m.index.at(r.Channel, r.Root); t != nil { // bound by the announcer in the meantime
		t.Do(func(ctx context.Context) { t.replies.onReply(ctx, r, !r.Redelivered) })
		return
	}
	if t := m.relocator.find(ctx, r); t != nil {
		t.Do(func(ctx context.Context) { t.replies.onReply(ctx, r, !r.Redelivered) })
		return
	}
	m.emitDropped(ctx, "", "", r, ReasonUnmapped)
}

// ReplyEdited handles a reply whose author changed its text.
func (m *Manager) ReplyEdited(r chat.Reply) {
	if t := m.index.at(r.Channel, r.Root); t != nil {
		t.Do(func(ctx context.Context) { t.replies.onEdited(ctx, r) })
	}
}

// ReplyDeleted handles the deletion of a reply.
func (m *Manager) ReplyDeleted(channel, root, ts string) {
	if t := m.index.at(channel, root); t != nil {
		t.Do(func(ctx context.Context) { t.replies.onDeleted(ctx, ts) })
	}
}

// ThreadDeleted handles the deletion of an announcement: its thread is unbound, and the next announcement is a new one.
func (m *Manager) ThreadDeleted(channel, root string) {
	if t := m.index.at(channel, root); t != nil {
		t.Do(t.dismiss)
	}
}

// Connected says that events flow (again): each thread is read before a live reply of it is typed. Unless the connection is the
// only one, a live reply may also be the first that is heard of several: for a while its thread is read first each time.
func (m *Manager) Connected(alone bool) {
	m.connections.opened(alone)
	m.loops.status.OnConnected()
	m.CatchUpAll()
}

// CatchUpAll has every bound thread read: something may have been missed.
func (m *Manager) CatchUpAll() {
	for _, t := range m.index.all() {
		t.Do(t.requireRead)
	}
}

// CatchUp has one thread read.
func (m *Manager) CatchUp(channel, root string) {
	if t := m.index.at(channel, root); t != nil {
		t.Do(t.requireRead)
	}
}

// ChannelOpened retries at once what waits because the channel took nothing.
func (m *Manager) ChannelOpened(channel string) {
	m.receipts.RetryChannel(channel)
	m.outbox.RetryChannel(channel)
	for _, t := range m.index.all() {
		if t.ThreadID().Channel == channel {
			t.Do(t.turn.Retry)
		}
	}
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
	return Status{Bound: m.index.boundCount(), Unread: m.reader.Len(), Unposted: m.outbox.Len(), Unstored: m.disk.Problem()}
}

// ResendChoice is a click on a button of a prompt.
type ResendChoice struct {
	Token  string // the button's value
	Action string // [chat.ActionSend] or [chat.ActionSkip]
	Actor  authz.Actor
	TS     string // of the message with the button
}

// ErrDenied says that an actor may not do what he tried. Nothing of it is shown to him.
var ErrDenied = errors.New("not allowed")

// Resend decides, once, whether a reply in doubt is sent again or skipped. It returns a text for the person who clicked, which
// is true also for a second click and for one after a restart.
func (m *Manager) Resend(ctx context.Context, d ResendChoice) (string, error) {
	switch verdict, _ := m.Policy().Authorize(d.Actor); verdict {
	case authz.Denied, authz.SuspendedUnlisted:
		return "", ErrDenied
	case authz.Suspended:
		return suspendedText, nil
	}
	id, _, _ := cutToken(d.Token)
	t := m.index.of(id)
	if t == nil {
		return "This session is gone, and the question with it.", nil
	}
	answer, ok := actor.Call(ctx, t.Actor, func(ctx context.Context) string { return t.resend(ctx, d) })
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
