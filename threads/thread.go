package threads

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/binding"
	"the-loop/threads/catchup"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
	"the-loop/threads/permission"
	"the-loop/threads/receipts"
	"the-loop/threads/relay"
	"the-loop/threads/status"
)

// signals tells the loops of a manager that something of a thread is due.
type signals interface {
	receiptsDue()             // its receipts may differ from what they should be
	readDue(urgent bool)      // it should be read
	readFreshDue(urgent bool) // it should be read from now on: a read that is under way does not count
}

// threadState is what the parts of a thread share.
type threadState struct {
	*binding.Thread
	svc     *services
	signals signals
}

// post posts a text that nothing depends on.
func (s *threadState) post(text string) { s.svc.outbox.Add(s.NewPost(text, rand.Text()), false) }

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
	turn        *status.Turn
	relay       *relay.Relay
	replies     *replies
}

// loops are what serves all threads in turn.
type loops struct {
	index    *threadIndex
	receipts *receipts.Receipts
	reader   *catchup.Reader
	status   *status.Loop
}

// threadSignals are the [signals] of one thread.
type threadSignals struct {
	*loops
	t *thread
}

func (s threadSignals) receiptsDue() { s.receipts.MarkDirty(s.t) }
func (s threadSignals) readDue(urgent bool) {
	s.reader.Request(s.t, urgent, s.t.B.LastActive)
}
func (s threadSignals) readFreshDue(urgent bool) {
	s.reader.RequestFresh(s.t, urgent, s.t.B.LastActive)
}

// newThread makes a thread; fresh says that it was not there before.
func newThread(svc *services, l *loops, b binding.Binding, fresh bool) *thread {
	s := &threadState{Thread: binding.NewThread(b, svc.store, svc.Start), svc: svc}
	t := &thread{threadState: s, loops: l}
	s.signals = threadSignals{l, t}
	t.entries = &entries{threadState: s, reactionsFull: map[string]bool{}}
	t.prompts = &prompts{threadState: s, entries: t.entries}
	t.waiting = &waitNotice{threadState: s}
	t.turn = l.status.NewTurn(s.Thread)
	t.permissions = &permissions{threadState: s, waiting: t.waiting, dialog: t.turn, files: map[string]*outbox.Message{}}
	t.relay = relay.New(s.Thread, relay.Options{Outbox: svc.outbox, Agent: svc.Agent, Reports: svc.Reports, Turn: t.turn, Permissions: t.permissions,
		Answers: svc.answerMode, Render: svc.renderAnswer, MaxFile: func() int64 { return svc.Settings().MaxFile }, IsSecret: svc.isSecret, Clock: svc.Clock, Now: svc.Now}, fresh)
	t.replies = &replies{threadState: s, entries: t.entries, prompts: t.prompts, waiting: t.waiting,
		commands: &commands{s, t.entries}, mirror: &ticketMirror{s}}
	return t
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
		t.turn.OnPosted(msg.Post.Nonce, ts)
	}
}

// bindRoot makes the message ts the root of the thread.
func (t *thread) bindRoot(ctx context.Context, ts, shown string) {
	if t.B.Root == ts {
		return
	}
	t.B.Root, t.B.Cursor, t.B.Announcement.Shown, t.B.LastActive = ts, ts, shown, t.svc.now()
	t.replies.stale = shown == "" // found again after a crash: somebody may have replied meanwhile
	t.SaveBestEffort()
	t.SetThreadID(chat.ThreadID{Channel: t.B.Channel, Root: ts})
	t.loops.index.put(t)
	t.svc.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(t.Ref, EventAnnounced), Level: slog.LevelInfo, ID: t.SessionID, Ref: t.Ref,
		Fields: map[string]any{"channel": t.B.Channel, "thread": ts}})
	t.replies.sendNext(ctx)
}

// dismiss unbinds the thread, since somebody deleted its root. The binding stays, so that the session is not announced again before
// its next start.
func (t *thread) dismiss(ctx context.Context) {
	t.loops.index.removeRoot(t, t.B.Channel)
	t.dropReplies(ctx)
	t.SetBinding(binding.Binding{ID: t.SessionID, Ref: t.Ref, Channel: t.B.Channel, ReportOffset: t.B.ReportOffset, Announcement: binding.Announcement{Dismissed: t.svc.now()}})
	t.SaveBestEffort()
}

// end ends the thread of a session that was deleted.
func (t *thread) end(ctx context.Context) error {
	t.turn.CloseMessage()
	t.svc.outbox.RemoveSession(t.SessionID)
	if t.B.Root != "" {
		t.postEnded()
	}
	t.loops.index.remove(t)
	t.dropReplies(ctx)
	t.Unbound = true
	return t.svc.store.Remove(t.SessionID)
}

// dropReplies drops the replies that wait: there is no thread any more to answer in.
func (t *thread) dropReplies(ctx context.Context) {
	t.replies.drop(ctx)
	t.loops.reader.Cancel(t)
}

// postEnded says that the session is gone.
func (t *thread) postEnded() {
	text := "This session was deleted."
	if t.Ref.Kind() == sessions.KindWorkItem {
		text = "This session was closed."
	}
	msg := &outbox.Message{Post: t.NewPost(text+" Nothing written here reaches an agent.", t.SessionID+".ended"), Since: t.svc.Now(), Final: true}
	_ = t.svc.outbox.Put(msg) // it was logged, and nothing depends on it
}

// notify posts a notification, unless there is no thread or it was posted. The message is in the outbox before its name is stored:
// after a crash in between it is looked for, and not posted twice.
func (t *thread) notify(n Notification) bool {
	if t.Unbound || t.B.Root == "" || n.Once != "" && t.B.LastNotification == n.Once {
		return false
	}
	p := t.NewPost(n.Text, rand.Text())
	if n.Once != "" {
		p.Nonce = t.SessionID + "." + n.Once
	}
	p.Buttons = n.Buttons
	t.svc.outbox.Add(p, n.Once != "")
	if n.Once != "" {
		t.B.LastNotification = n.Once
		t.SaveBestEffort()
	}
	return true
}

// isActive reports whether somebody spoke in the thread within d.
func (t *thread) isActive(d time.Duration) bool {
	return t.B.Root != "" && t.svc.now().Sub(t.B.LastActive) < d
}

// Identity is the session of the thread, and where the thread is.
func (t *thread) Identity() (id string, ref sessions.Ref, at chat.ThreadID) {
	return t.SessionID, t.Ref, t.ThreadID()
}
