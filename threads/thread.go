package threads

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
	"the-loop/threads/permission"
)

// signals tells the loops of a manager that something of a thread is due.
type signals interface {
	receiptsDue()             // its receipts may differ from what they should be
	statusDue()               // its status may differ from what it should be
	readDue(urgent bool)      // it should be read
	readFreshDue(urgent bool) // it should be read from now on: a read that is under way does not count
}

// threadState is what the parts of a thread share: the binding, and how it is stored. It is used by the thread's actor only, but for
// what mu guards.
type threadState struct {
	*actor
	svc       *services
	signals   signals
	sessionID string
	ref       sessions.Ref
	b         Binding
	unbound   bool // the session was deleted: nothing is stored any more

	idMu      sync.Mutex    // guards the field that follows
	currentID chat.ThreadID // b.Channel and b.Root, for readers outside
}

func (s *threadState) threadID() chat.ThreadID {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	return s.currentID
}

// setThreadID changes where the thread is, for readers outside, and returns where it was.
func (s *threadState) setThreadID(to chat.ThreadID) (from chat.ThreadID) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	from, s.currentID = s.currentID, to
	return from
}

// setBinding replaces the binding.
func (s *threadState) setBinding(b Binding) {
	if b.Replies == nil {
		b.Replies = map[string]Entry{}
	}
	if b.Traces == nil {
		b.Traces = map[string]Trace{}
	}
	if b.ResendPrompts == nil {
		b.ResendPrompts = map[string]ResendPrompt{}
	}
	if b.PermissionRequests == nil {
		b.PermissionRequests = permission.Requests{}
	}
	s.b = b
}

// save stores the binding. A failure is logged, and storing is tried again; what is in memory stays true.
func (s *threadState) save() error {
	if s.unbound {
		return nil
	}
	return s.svc.store.Save(s.b)
}

// saveBestEffort is save where nothing depends on it at once.
func (s *threadState) saveBestEffort() { _ = s.save() }

// newPost is a message for this thread.
func (s *threadState) newPost(text, nonce string) chat.Post {
	return chat.Post{Channel: s.b.Channel, Root: s.b.Root, Text: text, Nonce: nonce, Session: s.sessionID}
}

// post posts a text that nothing depends on.
func (s *threadState) post(text string) { s.svc.outbox.Add(s.newPost(text, rand.Text()), false) }

// canAcknowledge reports whether somebody may see that they were heard. While the list cannot be read, only who was on the last
// valid one may.
func (s *threadState) canAcknowledge(actor authz.Actor) bool {
	verdict, reason := s.svc.Policy().Authorize(actor)
	return verdict == authz.Allowed || verdict == authz.Suspended || reason == authz.ReasonNoTeam
}

// suspendedText answers who would act while the list cannot be read.
const suspendedText = "The configuration is invalid, so requests are refused until it is fixed."

// thread is one bound thread: its state, and the parts that work on it. Everything that concerns it runs in its actor, one after
// the other, except for what takes long: that runs beside it and reports back.
type thread struct {
	*threadState
	loops       *loops
	entries     *entries
	prompts     *prompts
	waiting     *waitNotice
	permissions *permissions
	turn        *turnStatus
	relay       *relay
	replies     *replies
}

// loops are what serves all threads in turn.
type loops struct {
	index    *threadIndex
	receipts *receipts
	reader   *threadReader
	status   *statusLoop
}

// threadSignals are the [signals] of one thread.
type threadSignals struct {
	*loops
	t *thread
}

func (s threadSignals) receiptsDue() { s.receipts.markDirty(s.t) }
func (s threadSignals) statusDue()   { s.status.requestCheck(s.t) }
func (s threadSignals) readDue(urgent bool) {
	s.reader.request(s.t, urgent, s.t.b.LastActive)
}
func (s threadSignals) readFreshDue(urgent bool) {
	s.reader.requestFresh(s.t, urgent, s.t.b.LastActive)
}

func newThread(svc *services, l *loops, b Binding) *thread {
	s := &threadState{actor: &actor{start: svc.start}, svc: svc, sessionID: b.ID, ref: b.Ref, currentID: chat.ThreadID{Channel: b.Channel, Root: b.Root}}
	s.setBinding(b)
	t := &thread{threadState: s, loops: l}
	s.signals = threadSignals{l, t}
	t.entries = &entries{threadState: s, reactionsFull: map[string]bool{}}
	t.prompts = &prompts{threadState: s, entries: t.entries}
	t.waiting = &waitNotice{threadState: s}
	t.turn = &turnStatus{threadState: s}
	t.permissions = &permissions{threadState: s, waiting: t.waiting, dialog: t.turn}
	t.relay = &relay{threadState: s, turn: t.turn, permissions: t.permissions}
	t.replies = &replies{threadState: s, entries: t.entries, prompts: t.prompts, waiting: t.waiting,
		commands: &commands{s, t.entries}, mirror: &ticketMirror{s}}
	return t
}

// snapshot is the binding as it is now.
func (t *thread) snapshot(ctx context.Context) (Binding, bool) {
	return call(ctx, t.actor, func(context.Context) Binding { return t.b.Clone() })
}

// requireRead has the thread read before anything of it is typed.
func (t *thread) requireRead(context.Context) { t.replies.requireRead() }

// recover takes up what an earlier run left: replies that were in flight, and what was to be posted.
func (t *thread) recover(ctx context.Context) {
	t.replies.recoverInFlight(ctx)
	t.entries.repostNotifications()
	t.replies.requeueApproved()
	t.prompts.repostOpen()
	t.permissions.watchOpen()
	t.signals.receiptsDue()
}

// resend applies a choice about replies in doubt, and returns what is true for who made it.
func (t *thread) resend(ctx context.Context, c ResendChoice) string {
	answer, again := t.prompts.resend(c)
	for _, ts := range again {
		t.replies.requeueChosen(ts)
	}
	t.replies.sendNext(ctx)
	return answer
}

// onPosted handles that a message of ours was posted or edited in the thread.
func (t *thread) onPosted(ctx context.Context, msg outbox.Message, ts string) {
	t.prompts.onPosted(msg.Post.Nonce, ts)
	t.permissions.apply(ctx, msg.Post.Nonce, permission.Event{Kind: permission.Posted, TS: ts}, true)
	if !msg.Edit {
		t.turn.onPosted(msg.Post.Nonce, ts)
	}
}

// bindRoot makes the message ts the root of the thread.
func (t *thread) bindRoot(ctx context.Context, ts, shown string) {
	if t.b.Root == ts {
		return
	}
	t.b.Root, t.b.Cursor, t.b.Announcement.Shown, t.b.LastActive = ts, ts, shown, t.svc.now()
	t.replies.stale = shown == "" // found again after a crash: somebody may have replied meanwhile
	t.saveBestEffort()
	t.setThreadID(chat.ThreadID{Channel: t.b.Channel, Root: ts})
	t.loops.index.put(t)
	t.svc.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(t.ref, EventAnnounced), Level: slog.LevelInfo, ID: t.sessionID, Ref: t.ref,
		Fields: map[string]any{"channel": t.b.Channel, "thread": ts}})
	t.replies.sendNext(ctx)
}

// dismiss unbinds the thread, since somebody deleted its root. The binding stays, so that the session is not announced again before
// its next start.
func (t *thread) dismiss(ctx context.Context) {
	t.loops.index.removeRoot(t, t.b.Channel)
	t.dropReplies(ctx)
	t.setBinding(Binding{ID: t.sessionID, Ref: t.ref, Channel: t.b.Channel, ReportOffset: t.b.ReportOffset, Announcement: Announcement{Dismissed: t.svc.now()}})
	t.saveBestEffort()
}

// end ends the thread of a session that was deleted.
func (t *thread) end(ctx context.Context) error {
	t.turn.closeMessage()
	t.svc.outbox.RemoveSession(t.sessionID)
	if t.b.Root != "" {
		t.postEnded()
	}
	t.loops.index.remove(t)
	t.dropReplies(ctx)
	t.unbound = true
	return t.svc.store.Remove(t.sessionID)
}

// dropReplies drops the replies that wait: there is no thread any more to answer in.
func (t *thread) dropReplies(ctx context.Context) {
	t.replies.drop(ctx)
	t.loops.reader.cancel(t)
}

// postEnded says that the session is gone.
func (t *thread) postEnded() {
	text := "This session was deleted."
	if t.ref.Kind() == sessions.KindWorkItem {
		text = "This session was closed."
	}
	msg := &outbox.Message{Post: t.newPost(text+" Nothing written here reaches an agent.", t.sessionID+".ended"), Since: t.svc.Now(), Final: true}
	_ = t.svc.outbox.Put(msg) // it was logged, and nothing depends on it
}

// notify posts a notification, unless there is no thread or it was posted. The message is in the outbox before its name is stored:
// after a crash in between it is looked for, and not posted twice.
func (t *thread) notify(n Notification) bool {
	if t.unbound || t.b.Root == "" || n.Once != "" && t.b.LastNotification == n.Once {
		return false
	}
	p := t.newPost(n.Text, rand.Text())
	if n.Once != "" {
		p.Nonce = t.sessionID + "." + n.Once
	}
	p.Buttons = n.Buttons
	t.svc.outbox.Add(p, n.Once != "")
	if n.Once != "" {
		t.b.LastNotification = n.Once
		t.saveBestEffort()
	}
	return true
}

// isActive reports whether somebody spoke in the thread within d.
func (t *thread) isActive(d time.Duration) bool {
	return t.b.Root != "" && t.svc.now().Sub(t.b.LastActive) < d
}

// identity is the session of the thread, and where the thread is.
func (t *thread) identity() (id string, ref sessions.Ref, at chat.ThreadID) {
	return t.sessionID, t.ref, t.threadID()
}
