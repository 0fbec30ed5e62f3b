package threads

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/attachments"
	"the-loop/threads/chat"
	"the-loop/threads/permission"
)

// thread owns one bound thread. Everything that concerns it runs, one after the other, in one goroutine that lives only
// while there is something to do; [ensureThread.runStep] hands it work. The typing itself runs beside it, one reply at a time, so
// that an edit or a deletion is heard while a reply is on its way.
type thread struct {
	m         *Manager
	sessionID string
	ref       sessions.Ref

	mu        sync.Mutex // guards the fields that follow
	tasks     []func(context.Context)
	running   bool
	currentID chat.ThreadID // b.Channel and b.Root, for readers outside

	// What follows belongs to the goroutine that empties the inbox.

	b                Binding
	queue            queue
	current          *item // on its way into the pane
	pauseTimer       *time.Timer
	paused           bool
	holdCause        string // why replies are held, as the thread was last told
	stale            bool   // the thread has to be read before anything of it is typed
	readGeneration   int    // the read that will make it fresh; later reads have higher numbers
	recovering       int    // replies that an earlier run left in flight and that are still looked for
	unbound          bool   // unbound
	reportsSynced    bool   // no file of the agent is in the outbox, or posted, that was reported after the stored place
	transcriptSynced bool   // no text of the agent is in the outbox, or posted, that lies after the stored place
	readAtTraces     int    // how many traces there have to be for the thread to be read so that some can go
	turn             turnState

	reactionsFull map[string]bool // replies on which there is no room for another reaction

	waitReminder *time.Timer // when the agent will have waited long
}

func newThread(m *Manager, b Binding) *thread {
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
	return &thread{m: m, sessionID: b.ID, ref: b.Ref, b: b, reactionsFull: map[string]bool{}, currentID: chat.ThreadID{Channel: b.Channel, Root: b.Root}}
}

// do has f run by the thread's goroutine. It never blocks.
func (t *thread) do(f func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tasks = append(t.tasks, f)
	if t.running {
		return
	}
	t.running = t.m.start(t.drain)
}

// call has f run by the thread's goroutine and waits for it. False: ctx ended first, and f may still run later.
func (t *thread) call(ctx context.Context, f func(context.Context)) bool {
	_, ok := call(ctx, t, func(ctx context.Context) struct{} { f(ctx); return struct{}{} })
	return ok
}

// ask is call for a question that has an answer.
func call[T any](ctx context.Context, t *thread, f func(context.Context) T) (answer T, ok bool) {
	c := make(chan T, 1) // so that an answer that nobody waits for any more holds nothing up
	t.do(func(ctx context.Context) { c <- f(ctx) })
	select {
	case answer = <-c:
		return answer, true
	case <-ctx.Done():
		return answer, false
	}
}

func (t *thread) drain(ctx context.Context) {
	for {
		t.mu.Lock()
		work := t.tasks
		t.tasks = nil
		if len(work) == 0 {
			t.running = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		for _, f := range work {
			f(ctx)
		}
	}
}

func (t *thread) threadID() chat.ThreadID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.currentID
}

// moved changes where the thread is, for readers outside, and returns where it was.
func (t *thread) setThreadID(to chat.ThreadID) (from chat.ThreadID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from, t.currentID = t.currentID, to
	return from
}

// snapshot is the binding as it is now.
func (t *thread) snapshot(ctx context.Context) (Binding, bool) {
	return call(ctx, t, func(context.Context) Binding { return t.b.clone() })
}

// save stores the binding. That it cannot be stored is said in the log; what is in memory goes on being true, and it is tried
// again.
func (t *thread) save() error {
	if t.unbound {
		return nil
	}
	return t.m.store.save(t.b)
}

// keep saves where nothing depends on it at once.
func (t *thread) saveBestEffort() { _ = t.save() }

// heard takes a reply whose event came, and sends on its way what can be. Of one that Slack sends again (not live), other events
// may be missing too: it may have been deleted by now, or not be the first that was missed. So the thread is read before.
func (t *thread) onReply(ctx context.Context, r chat.Reply, live bool) {
	t.enqueue(ctx, r, live)
	switch waits := t.queue.get(r.TS) != nil; {
	case waits && !live:
		t.readFirst(ctx, redeliveryPatience)
	case waits && t.m.mayMissEvents():
		t.readFirst(ctx, livePatience)
	}
	t.sendNext(ctx)
}

// enqueue puts a reply into the queue, unless there is nothing to do for it.
func (t *thread) enqueue(ctx context.Context, r chat.Reply, live bool) {
	if t.unbound {
		t.m.emitDropped(ctx, t.sessionID, t.ref, r, ReasonUnmapped)
		return
	}
	if it := t.queue.get(r.TS); it != nil {
		it.live = it.live || live
		t.applyVersion(ctx, it, r, live)
		return
	}
	if chat.CompareTS(r.TS, t.b.Cursor) <= 0 || t.isHandled(r.TS) {
		return
	}
	t.b.LastActive = t.m.now()
	verdict, reason := t.m.o.Policy().Authorize(r.Actor)
	if verdict == authz.Denied && reason != authz.ReasonNoTeam { // whose team is not known is looked up first
		t.deny(ctx, r, reason)
		return
	}
	entry := t.b.Replies[r.TS]
	if r.Command != nil && r.Command.Verb != verbRaw {
		t.handleCommand(ctx, r, live)
		return
	}
	t.queue.put(&item{reply: r, live: live, arrivedAt: time.Now(), approved: entry.Approved || entry.State == StateApproved,
		raw: r.Command != nil, held: entry.State == StateHeld, heldSince: entry.At, logged: entry.State != ""})
	if live {
		t.showReceivedLater(r.TS, r.Actor)
	}
}

// verbRaw is the one command that goes through the queue, since it goes to the agent.
const verbRaw = "raw"

// isHandled reports whether the reply needs nothing more: it is settled, in the pane, or put to the operator.
func (t *thread) isHandled(ts string) bool {
	if _, done := t.b.Traces[ts]; done {
		return true
	}
	switch t.b.Replies[ts].State {
	case StateSettled, StateInflight, StateDoubt, StateOffered:
		return true
	}
	return false
}

// deny drops a reply for good. Nothing is answered in Slack; the log names the member, so that a forgotten entry of the
// list is found.
func (t *thread) deny(ctx context.Context, r chat.Reply, reason authz.Reason) {
	t.m.o.Log.Warn("dropped a reply", "member", r.Actor.User, "team", r.Actor.Team, "because", reason, "ref", t.ref)
	t.m.emitDropped(ctx, t.sessionID, t.ref, r, ReasonUnauthorized)
	t.queue.remove(r.TS)
	t.settle(r.TS, OutcomeDropped, "")
}

// settle stores that nothing more will happen to a reply, and what its receipt shows.
func (t *thread) settle(ts string, o Outcome, m Mark) {
	e := t.b.Replies[ts]
	e.State, e.Outcome, e.At, e.Wanted = StateSettled, o, t.m.now(), m
	e.Intent = sessions.Intent{} // nobody asks for it any more, and the file is written at every step
	t.setEntry(ts, e)
	t.trim()
	t.saveBestEffort()
}

// settleWithNotification settles a reply and tells the thread why. What is to be told is stored with it, so that a crash in between
// does not leave a reply without a word.
func (t *thread) settleWithNotification(ts string, o Outcome, m Mark, text string) {
	e := t.b.Replies[ts]
	e.Notification = text
	t.b.Replies[ts] = e
	t.settle(ts, o, m)
	t.postNotification(ts, false)
}

// postNotification hands what is still to be told of a reply to the outbox.
func (t *thread) postNotification(ts string, maybePosted bool) {
	e := t.b.Replies[ts]
	sum := sha256.Sum256([]byte(e.Notification)) // a reply may have more than one thing told of it
	t.m.outbox.Add(t.newPost(e.Notification, t.sessionID+"."+ts+"."+hex.EncodeToString(sum[:6])), maybePosted)
	e.Notification = ""
	t.b.Replies[ts] = e
}

// newPost is a message for this thread.
func (t *thread) newPost(text, nonce string) chat.Post {
	return chat.Post{Channel: t.b.Channel, Root: t.b.Root, Text: text, Nonce: nonce, Session: t.sessionID}
}

// post tells the thread something that nothing depends on.
func (t *thread) post(text string) { t.m.outbox.Add(t.newPost(text, rand.Text()), false) }

// setEntry changes an entry and has its receipt shown.
func (t *thread) setEntry(ts string, e Entry) {
	t.b.Replies[ts] = e
	if !e.isComplete() {
		t.m.receipts.markDirty(t)
	}
}

// showReceivedLater shows, when a reply takes long, that it was heard.
func (t *thread) showReceivedLater(ts string, actor authz.Actor) {
	time.AfterFunc(receivedAfter, func() {
		t.do(func(context.Context) {
			if it := t.queue.get(ts); it == nil && (t.current == nil || t.current.reply.TS != ts) {
				return
			}
			if e := t.b.Replies[ts]; e.Wanted == "" && e.State != StateSettled && t.canAcknowledge(actor) && t.canShowReceived() {
				e.Wanted = MarkReceived
				t.b.Replies[ts] = e
				t.m.receipts.markDirty(t)
			}
		})
	})
}

// canAcknowledge reports whether it may be seen that somebody was heard. While the list cannot be read, only who was on the last
// valid one gets a sign.
func (t *thread) canAcknowledge(actor authz.Actor) bool {
	verdict, reason := t.m.o.Policy().Authorize(actor)
	return verdict == authz.Allowed || verdict == authz.Suspended || reason == authz.ReasonNoTeam
}

// receivedAfter is how long a reply may take before its receipt says that it was received.
const receivedAfter = 2 * time.Second

// next sends the oldest reply on its way, unless one is, or the thread has to be read first. While a reply of an earlier
// run is still looked for, nothing is typed: an equal text would pass for it.
func (t *thread) sendNext(ctx context.Context) {
	if t.unbound || t.current != nil || t.paused || t.recovering > 0 || t.m.isStopping() {
		return
	}
	if t.stale {
		t.m.reader.request(t, len(t.queue.items) > 0)
		return
	}
	it := t.queue.head()
	if it == nil {
		return
	}
	if t.offerOld(ctx) {
		t.sendNext(ctx)
		return
	}
	t.current = it
	if it.download == nil {
		it.download = attachments.NewProgress()
	}
	a := attempt{it: it, reply: it.reply, raw: it.raw, version: it.version}
	if !t.m.start(func(ctx context.Context) {
		res := t.send(ctx, a)
		t.do(func(ctx context.Context) { t.finish(ctx, it, res) })
	}) {
		t.current = nil
	}
}

// attempt is an item as it was when it was sent on its way.
type attempt struct {
	it              *item
	reply           chat.Reply
	raw             bool
	version         int
	undeliveredText string // what the thread is to be told of what the agent does not get
}

// result is what became of one attempt.
type result struct {
	receipt sessions.Receipt
	err     error
	denied  authz.Reason
	wait    time.Duration // try again after it; nothing was typed
}

// errChanged says that a reply was edited or deleted, or that an older one came, before its intent was written: what
// waits now is looked at again.
var errChanged = errors.New("what waits was changed meanwhile")

// loadTimeout bounds what is asked of Slack to complete one reply.
const loadTimeout = 15 * time.Second

// send takes one reply through authorization into the pane. It runs beside the thread's goroutine.
func (t *thread) send(ctx context.Context, a attempt) result {
	loading, cancel := context.WithTimeout(ctx, loadTimeout)
	content, err := a.reply.Load(loading)
	cancel()
	if err != nil {
		return result{err: err, wait: retryAfter(err)}
	}
	switch verdict, reason := t.m.o.Policy().Authorize(content.Actor); verdict {
	case authz.Denied:
		return result{denied: reason}
	case authz.Suspended, authz.SuspendedUnlisted:
		return result{wait: suspendedRetry}
	}
	text := content.Text
	switch {
	case a.raw && a.reply.Command != nil:
		text = a.reply.Command.Rest
	case len(content.Files) > 0:
		if text, a.undeliveredText, err = t.downloadAttachments(ctx, a, content); err != nil {
			return fetchFailed(err)
		}
		if verdict, _ := t.m.o.Policy().Authorize(content.Actor); verdict != authz.Allowed { // that took its time
			return result{wait: suspendedRetry}
		}
	}
	if !a.raw {
		a.undeliveredText = joinNonEmpty(unreadableText(content.Unreadable), a.undeliveredText)
	}
	receipt, err := t.m.o.Agent.Submit(ctx, sessions.SubmitRequest{Ref: t.ref, ID: t.sessionID, Text: text, Sender: content.Speaker,
		Raw: a.raw, RecordIntent: func(ctx context.Context, i sessions.Intent) error { return t.storeIntent(ctx, a, i) }})
	if err == nil {
		t.mirror(a.reply, content.Speaker, text)
	}
	return result{receipt: receipt, err: err}
}

// fetchFailed is a result without the reply's files. Where the session itself is the reason, waiting does not help.
func fetchFailed(err error) result {
	var refusal *sessions.Refusal
	if errors.As(err, &refusal) {
		return result{err: err}
	}
	return result{err: err, wait: retryAfter(err)}
}

// suspendedRetry is how often the policy is asked again while the configuration is not valid.
const suspendedRetry = time.Second

func retryAfter(err error) time.Duration {
	var limited *chat.RateLimitedError
	switch {
	case errors.As(err, &limited):
		return limited.After
	case errors.Is(err, chat.ErrReplyGone):
		return 0
	}
	return 5 * time.Second
}

// storeIntent stores that the reply is about to be typed. What was edited or deleted up to now is not, and neither is one
// before which another has to go that came meanwhile: Slack delivers events out of order.
func (t *thread) storeIntent(ctx context.Context, a attempt, i sessions.Intent) error {
	err, ok := call(ctx, t, func(ctx context.Context) error { return t.markInFlight(ctx, a, i) })
	if !ok {
		return ctx.Err()
	}
	return err
}

func (t *thread) markInFlight(ctx context.Context, a attempt, i sessions.Intent) error {
	ts := a.reply.TS
	if a.it.version != a.version || t.queue.head() != a.it {
		return errChanged
	}
	before, known := t.b.Replies[ts]
	e := before
	e.State, e.At, e.Intent, e.Raw, e.User = StateInflight, t.m.now(), i, a.raw, a.reply.Actor.User
	e.Approved, e.Edited = a.it.approved, a.reply.Edited
	e.Attempt++
	e.Notification = a.undeliveredText
	t.b.Replies[ts] = e
	if err := t.save(); err != nil {
		if t.b.Replies[ts] = before; !known {
			delete(t.b.Replies, ts)
		}
		return &unstoredError{err}
	}
	t.emitReceived(ctx, a.it)
	t.queue.remove(ts)
	if a.undeliveredText != "" {
		t.postNotification(ts, e.Attempt > 1)
	}
	return nil
}

// unstoredError says that an intent could not be stored, so that nothing was typed.
type unstoredError struct{ error }

func (e *unstoredError) Unwrap() error { return e.error }

// emitReceived records, once, that an authorized reply is on its way to the session.
func (t *thread) emitReceived(ctx context.Context, it *item) {
	if it.logged {
		return
	}
	it.logged = true
	t.b.LastUser = it.reply.Actor.User
	fields := map[string]any{"channel": it.reply.Channel, "thread": it.reply.Root, "ts": it.reply.TS, "user": it.reply.Actor.User}
	t.m.o.Sink.Emit(ctx, sessions.Event{Name: EventReceived, Level: slog.LevelInfo, ID: t.sessionID, Ref: t.ref, Fields: fields})
	t.emitMirrorSkipped(ctx, fields)
}

// finish settles an attempt, and sends the next reply on its way.
func (t *thread) finish(ctx context.Context, it *item, res result) {
	t.current = nil
	if t.unbound {
		return
	}
	t.applyResult(ctx, it, res)
	t.sendNext(ctx)
}

func (t *thread) applyResult(ctx context.Context, it *item, res result) {
	ts := it.reply.TS
	var held *sessions.HeldError
	var locked *sessions.LockedError
	var refusal *sessions.Refusal
	var unstored *unstoredError
	switch err := res.err; {
	case err != nil && t.m.workCtx.Err() != nil:
		// The bot is stopping. What was written down as in flight stays so, and the next start settles it.
	case res.denied != authz.ReasonNone:
		t.deny(ctx, it.reply, res.denied)
	case err == nil && res.receipt == sessions.ReceiptAccepted:
		t.onDelivered()
		t.settleDelivered(ts, OutcomeAccepted, MarkAccepted)
	case err == nil && res.receipt == sessions.ReceiptTyped:
		t.onDelivered()
		t.settleDelivered(ts, OutcomeTyped, MarkTyped)
	case errors.Is(err, errChanged):
	case errors.Is(err, chat.ErrReplyGone):
		t.settleDeleted(ctx, it)
	case errors.Is(err, sessions.ErrInDoubt):
		t.setInDoubt(ts, err)
	case errors.As(err, &held):
		cause, text := t.holdReason(held)
		t.hold(ctx, it, cause, text)
		if held.State == sessions.ViewDialog {
			t.setWaiting(t.m.o.Now(), nil)
		}
	case errors.As(err, &locked):
		t.hold(ctx, it, "", "")
	case errors.As(err, &unstored), isDiskFull(err):
		t.hold(ctx, it, "unstored", unstoredText(err))
	case errors.Is(err, sessions.ErrTerminalTimeout):
		t.hold(ctx, it, "silent", "tmux does not answer on this machine.")
	case errors.As(err, &refusal):
		t.settleFailed(ts, refusal.Error())
	case res.wait > 0:
		t.pauseQueue(res.wait)
	case err != nil:
		t.settleFailed(ts, err.Error())
	}
}

// onDelivered takes that the agent took a text: nothing holds what comes next, as far as is known.
func (t *thread) onDelivered() {
	t.holdCause = ""
	t.clearWaiting()
}

// drop settles a reply that was deleted before it was typed.
func (t *thread) settleDeleted(ctx context.Context, it *item) {
	t.queue.remove(it.reply.TS)
	t.m.emitDropped(ctx, t.sessionID, t.ref, it.reply, ReasonWithdrawn)
	t.settle(it.reply.TS, OutcomeWithdrawn, "")
}

// settleFailed settles a reply that was not typed and will not be, and says why in the thread.
func (t *thread) settleFailed(ts, why string) {
	t.queue.remove(ts)
	t.settleWithNotification(ts, OutcomeFailed, MarkFailed, "Not delivered: "+chat.Escape(why))
}

// hold keeps a reply for later, and says why in the thread, once for each cause; not at all where there is none.
func (t *thread) hold(ctx context.Context, it *item, cause, text string) {
	ts := it.reply.TS
	if t.b.Replies[ts].State == StateInflight && !t.requeue(ctx, it) { // it was written down, but certainly not typed
		return
	}
	told := it.held && t.holdCause == "" // by an earlier run of the bot
	if !it.held {
		it.held, it.heldSince = true, t.m.now()
	}
	t.b.LastUser = it.reply.Actor.User // he was let in, or it would not have come this far
	e := t.b.Replies[ts]
	if e.State != StateHeld || e.Wanted != MarkHeld {
		e.State, e.At, e.Wanted = StateHeld, it.heldSince, MarkHeld
		t.setEntry(ts, e)
		t.saveBestEffort()
	}
	if news := cause != "" && t.holdCause != cause; news {
		t.holdCause = cause
		if !told {
			t.post("Held, and typed as soon as it can be: " + text)
		}
	}
	if cause == "" && t.m.now().Sub(it.heldSince) < holdSoonFor {
		t.pauseQueue(holdSoon)
		return
	}
	t.pauseQueue(holdEvery)
}

// How often a pane that does not take text is looked at again: at first, when it passes by itself, and later.
const (
	holdSoon    = 250 * time.Millisecond
	holdSoonFor = 10 * time.Second
	holdEvery   = time.Second
)

// pauseQueue lets the queue rest.
func (t *thread) pauseQueue(d time.Duration) {
	t.paused = true
	t.pauseTimer = time.AfterFunc(d, func() {
		t.do(func(ctx context.Context) {
			t.paused = false
			t.sendNext(ctx)
		})
	})
}

// holdReason is why a reply is held, in one word and for the thread, with what the agent shows where nothing else there does.
func (t *thread) holdReason(h *sessions.HeldError) (cause, text string) {
	switch {
	case h.Draft:
		return "draft", "somebody's unsent text stands in the agent's input box. Send it or clear it in the terminal."
	case h.State == sessions.ViewStarting, h.State == sessions.ViewWorking:
		return "", "" // it passes by itself; the receipt says enough
	case h.State == sessions.ViewMenu:
		return "menu", "the agent shows a menu. Close it in the terminal." + t.m.dialogText(h.Lines)
	case t.b.PermissionRequests.HasDecidable():
		return "question", "the agent asks a question. Decide it with the buttons above, or in the terminal."
	case t.b.PermissionRequests.HasOpen():
		return "question", "the agent asks the question above. Answer it in the terminal."
	}
	return "question", "the agent asks a question, and a reply would answer it. Answer it in the terminal." + t.m.dialogText(h.Lines)
}

// setInDoubt puts a reply that may or may not have arrived to the operator. A command of the agent's own is never repeated.
func (t *thread) setInDoubt(ts string, cause error) {
	t.m.o.Log.Warn("cannot tell whether a reply arrived", "ref", t.ref, "ts", ts, "err", cause)
	t.queue.remove(ts)
	e := t.b.Replies[ts]
	if e.Raw {
		t.settleWithNotification(ts, OutcomeFailed, MarkInDoubt,
			"I cannot tell whether this command arrived. It is not repeated: look at the agent, and give it again if it did not.")
		return
	}
	if e.Deleted {
		t.settleWithNotification(ts, OutcomeWithdrawn, "", "This reply was deleted while it was on its way: I cannot tell whether it reached the agent.")
		return
	}
	e.State, e.At, e.Wanted, e.Intent = StateDoubt, t.m.now(), MarkInDoubt, sessions.Intent{}
	t.setEntry(ts, e)
	t.prompt(ResendPrompt{Kind: ResendPromptInDoubt, Replies: []string{ts}})
}

// recoverInFlight settles what a crash left. A reply that was in flight is looked for in the agent's record; without evidence it
// is in doubt.
func (t *thread) recoverInFlight(ctx context.Context) {
	for _, ts := range t.inState(StateInflight) {
		e := t.b.Replies[ts]
		t.recovering++
		t.m.start(func(ctx context.Context) {
			ok, err := t.m.o.Agent.VerifyInput(ctx, sessions.VerifyInputRequest{Ref: t.ref, ID: t.sessionID, Intent: e.Intent})
			if t.m.workCtx.Err() != nil {
				return
			}
			t.do(func(ctx context.Context) { t.finishRecovery(ctx, ts, ok, err) })
		})
	}
	for ts, e := range t.b.Replies {
		if e.Notification != "" {
			t.postNotification(ts, true)
		}
	}
	t.requeueApproved()
	for token, q := range t.b.ResendPrompts {
		if q.Choice == "" && q.TS == "" {
			t.m.outbox.Add(t.promptPost(token, q), true)
		}
	}
}

func (t *thread) finishRecovery(ctx context.Context, ts string, arrived bool, err error) {
	t.recovering--
	switch {
	case t.b.Replies[ts].State != StateInflight:
	case arrived:
		t.settleDelivered(ts, OutcomeAccepted, MarkAccepted)
	default:
		t.setInDoubt(ts, fmt.Errorf("found in flight at the start: %w", errors.Join(sessions.ErrInDoubt, err)))
	}
	t.sendNext(ctx)
}

// inState lists the replies in a state, oldest first.
func (t *thread) inState(s State) []string {
	var all []string
	for ts, e := range t.b.Replies {
		if e.State == s {
			all = append(all, ts)
		}
	}
	slices.SortFunc(all, chat.CompareTS)
	return all
}

// handleCommand runs what the reply tells the bot to do, past everything that waits. It is settled first: it is never repeated
// by us. What comes of it is said to nobody whom the list does not know.
func (t *thread) handleCommand(ctx context.Context, r chat.Reply, live bool) {
	old := !live && t.m.now().Sub(chat.TSTime(r.TS)) > commandAge
	switch {
	case old && !t.canAcknowledge(r.Actor):
		t.settle(r.TS, OutcomeCommand, "")
		t.dropSuspended(ctx, r)
		return
	case old:
		t.settleWithNotification(r.TS, OutcomeSkipped, "", "I was away when this command came, and did not run it. Give it again if it is still wanted.")
		return
	}
	t.settle(r.TS, OutcomeCommand, "")
	t.m.start(func(ctx context.Context) { t.runCommand(ctx, r) })
}

// unread says that a command could not be completed.
func (t *thread) commandFailed(ctx context.Context, r chat.Reply, err error) {
	if !t.canAcknowledge(r.Actor) {
		t.dropSuspended(ctx, r)
		return
	}
	t.post("I could not run this command: " + chat.Escape(err.Error()))
}

// dropSuspended drops a command of somebody whom the last valid list does not know.
func (t *thread) dropSuspended(ctx context.Context, r chat.Reply) {
	t.m.emitDropped(ctx, t.sessionID, t.ref, r, ReasonSuspended)
}

// commandAge is how old a command may be that was found by reading the thread.
const commandAge = time.Minute

func (t *thread) runCommand(ctx context.Context, r chat.Reply) {
	loading, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	content, err := r.Load(loading)
	if err != nil {
		t.do(func(ctx context.Context) { t.commandFailed(ctx, r, err) })
		return
	}
	switch verdict, reason := t.m.o.Policy().Authorize(content.Actor); verdict {
	case authz.Denied:
		t.do(func(ctx context.Context) { t.deny(ctx, r, reason) })
		return
	case authz.Suspended:
		t.do(func(context.Context) { t.post(suspendedText) })
		return
	case authz.SuspendedUnlisted:
		t.do(func(ctx context.Context) { t.dropSuspended(ctx, r) })
		return
	}
	t.do(func(ctx context.Context) { t.emitReceived(ctx, &item{reply: r}) })
	answer := t.m.o.Commander.Command(ctx, CommandRequest{ID: t.sessionID, Ref: t.ref, Channel: r.Channel, Root: r.Root,
		User: content.Actor.User, Command: *r.Command})
	if answer != "" {
		t.do(func(context.Context) { t.post(answer) })
	}
}

// suspendedText answers who would act while the list cannot be read.
const suspendedText = "The configuration is invalid, so requests are refused until it is fixed."
