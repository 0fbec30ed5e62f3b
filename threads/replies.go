package threads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/attachments"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// replies takes the replies of one thread, in their order, through authorization, the intent on disk, the core and the receipt. A
// reply on its way runs beside the thread's actor, one at a time, so that an edit or a deletion is heard meanwhile.
type replies struct {
	*threadState
	entries  *entries
	prompts  *prompts
	waiting  *waitNotice
	commands *commands
	mirror   *ticketMirror

	queue          queue
	current        *item // on its way into the pane
	pauseTimer     *time.Timer
	paused         bool
	holdCause      string // why replies are held, as the thread was last told
	stale          bool   // the thread has to be read before anything of it is typed
	readGeneration int    // the read that will make it fresh; later reads have higher numbers
	recovering     int    // replies that an earlier run left in flight and that are still looked for
}

// onReply handles a reply whose event came. Where Slack sends the event again (not live), other events may be missing too: the
// reply may have been deleted, or not be the first that was missed. So the thread is read before.
func (rs *replies) onReply(ctx context.Context, r chat.Reply, live bool) {
	rs.enqueue(ctx, r, live)
	switch waits := rs.queue.get(r.TS) != nil; {
	case waits && !live:
		rs.readFirst(redeliveryPatience)
	case waits && rs.svc.connections.mayMissEvents():
		rs.readFirst(livePatience)
	}
	rs.sendNext(ctx)
}

// enqueue queues a reply, unless nothing is to be done for it.
func (rs *replies) enqueue(ctx context.Context, r chat.Reply, live bool) {
	if rs.Unbound {
		rs.svc.emitDropped(ctx, rs.SessionID, rs.Ref, r, ReasonUnmapped)
		return
	}
	if it := rs.queue.get(r.TS); it != nil {
		it.live = it.live || live
		rs.applyVersion(ctx, it, r, live)
		return
	}
	if chat.CompareTS(r.TS, rs.B.Cursor) <= 0 || rs.entries.isHandled(r.TS) {
		return
	}
	rs.B.LastActive = rs.svc.now()
	verdict, reason := rs.svc.Policy().Authorize(r.Actor)
	if verdict == authz.Denied && reason != authz.ReasonNoTeam { // whose team is not known is looked up first
		rs.deny(ctx, r, reason)
		return
	}
	entry := rs.B.Replies[r.TS]
	if r.Command != nil && r.Command.Verb != verbRaw {
		rs.commands.handleCommand(ctx, r, live)
		return
	}
	rs.queue.put(&item{reply: r, live: live, arrivedAt: time.Now(), approved: entry.Approved || entry.State == binding.StateApproved,
		raw: r.Command != nil, held: entry.State == binding.StateHeld, heldSince: entry.At, logged: entry.State != ""})
	if live {
		rs.showReceivedLater(r.TS, r.Actor)
	}
}

// verbRaw is the one command that goes through the queue, since it goes to the agent.
const verbRaw = "raw"

// showReceivedLater shows, when a reply takes long, that it was heard.
func (rs *replies) showReceivedLater(ts string, actor authz.Actor) {
	time.AfterFunc(receivedAfter, func() {
		rs.Do(func(context.Context) {
			if it := rs.queue.get(ts); it == nil && (rs.current == nil || rs.current.reply.TS != ts) {
				return
			}
			if e := rs.B.Replies[ts]; e.Wanted == "" && e.State != binding.StateSettled && rs.canAcknowledge(actor) && rs.entries.canShowReceived() {
				e.Wanted = binding.MarkReceived
				rs.B.Replies[ts] = e
				rs.signals.receiptsDue()
			}
		})
	})
}

// receivedAfter is how long a reply may take before its receipt says that it was received.
const receivedAfter = 2 * time.Second

// sendNext starts to deliver the oldest reply, unless another one is on its way or the thread has to be read first. While a reply of
// an earlier run is still looked for, nothing is typed: an equal text would be taken for it.
func (rs *replies) sendNext(ctx context.Context) {
	if rs.Unbound || rs.current != nil || rs.paused || rs.recovering > 0 || rs.svc.IsStopping() {
		return
	}
	if rs.stale {
		rs.signals.readDue(len(rs.queue.items) > 0)
		return
	}
	it := rs.queue.head()
	if it == nil {
		return
	}
	if rs.offerOld(ctx) {
		rs.sendNext(ctx)
		return
	}
	rs.current = it
	if it.download == nil {
		it.download = attachments.NewProgress()
	}
	a := attempt{it: it, reply: it.reply, raw: it.raw, version: it.version}
	if !rs.svc.Start(func(ctx context.Context) {
		res := rs.send(ctx, a)
		rs.Do(func(ctx context.Context) { rs.finish(ctx, it, res) })
	}) {
		rs.current = nil
	}
}

// attempt is one try to deliver an item, as it was at its start.
type attempt struct {
	it              *item
	reply           chat.Reply
	raw             bool
	version         int
	undeliveredText string // what the thread is told of what the agent does not get
}

// result is what became of one attempt.
type result struct {
	receipt sessions.Receipt
	err     error
	denied  authz.Reason
	wait    time.Duration // try again after it; nothing was typed
}

// errChanged says that a reply was edited or deleted, or that an older one came, before its intent was stored.
var errChanged = errors.New("what waits was changed meanwhile")

// loadTimeout bounds the calls of Slack that complete one reply.
const loadTimeout = 15 * time.Second

// send takes one reply through authorization into the pane. It runs beside the thread's actor.
func (rs *replies) send(ctx context.Context, a attempt) result {
	loading, cancel := context.WithTimeout(ctx, loadTimeout)
	content, err := a.reply.Load(loading)
	cancel()
	if err != nil {
		return result{err: err, wait: retryAfter(err)}
	}
	switch verdict, reason := rs.svc.Policy().Authorize(content.Actor); verdict {
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
		if text, a.undeliveredText, err = rs.downloadAttachments(ctx, a, content); err != nil {
			return fetchFailed(err)
		}
		if verdict, _ := rs.svc.Policy().Authorize(content.Actor); verdict != authz.Allowed { // that took its time
			return result{wait: suspendedRetry}
		}
	}
	if !a.raw {
		a.undeliveredText = joinNonEmpty(unreadableText(content.Unreadable), a.undeliveredText)
	}
	receipt, err := rs.svc.Agent.Submit(ctx, sessions.SubmitRequest{Ref: rs.Ref, ID: rs.SessionID, Text: text, Sender: content.Speaker,
		Raw: a.raw, RecordIntent: func(ctx context.Context, i sessions.Intent) error { return rs.storeIntent(ctx, a, i) }})
	if err == nil {
		rs.mirror.mirror(a.reply, content.Speaker, text)
	}
	return result{receipt: receipt, err: err}
}

// fetchFailed is the result when the files of a reply could not be downloaded. Where the session itself is the reason, waiting does not
// help.
func fetchFailed(err error) result {
	var refusal *sessions.Refusal
	if errors.As(err, &refusal) {
		return result{err: err}
	}
	return result{err: err, wait: retryAfter(err)}
}

// suspendedRetry is how often the policy is checked again while the configuration is invalid.
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

// storeIntent stores that the reply is about to be typed. It fails with [errChanged] when the reply was edited or deleted meanwhile,
// or an older one came: Slack delivers events out of order.
func (rs *replies) storeIntent(ctx context.Context, a attempt, i sessions.Intent) error {
	err, ok := actor.Call(ctx, rs.Actor, func(ctx context.Context) error { return rs.markInFlight(ctx, a, i) })
	if !ok {
		return ctx.Err()
	}
	return err
}

func (rs *replies) markInFlight(ctx context.Context, a attempt, i sessions.Intent) error {
	ts := a.reply.TS
	if a.it.version != a.version || rs.queue.head() != a.it {
		return errChanged
	}
	before, known := rs.B.Replies[ts]
	e := before
	e.State, e.At, e.Intent, e.Raw, e.User = binding.StateInflight, rs.svc.now(), i, a.raw, a.reply.Actor.User
	e.Approved, e.Edited = a.it.approved, a.reply.Edited
	e.Attempt++
	e.Notification = a.undeliveredText
	rs.B.Replies[ts] = e
	if err := rs.Save(); err != nil {
		if rs.B.Replies[ts] = before; !known {
			delete(rs.B.Replies, ts)
		}
		return &unstoredError{err}
	}
	if !a.it.logged {
		a.it.logged = true
		rs.entries.emitReceived(ctx, a.reply)
	}
	rs.queue.remove(ts)
	if a.undeliveredText != "" {
		rs.entries.postNotification(ts, e.Attempt > 1)
	}
	return nil
}

// unstoredError says that an intent could not be stored, so that nothing was typed.
type unstoredError struct{ error }

func (e *unstoredError) Unwrap() error { return e.error }

// finish applies the result of an attempt, and starts the next one.
func (rs *replies) finish(ctx context.Context, it *item, res result) {
	rs.current = nil
	if rs.Unbound {
		return
	}
	rs.applyResult(ctx, it, res)
	rs.sendNext(ctx)
}

func (rs *replies) applyResult(ctx context.Context, it *item, res result) {
	ts := it.reply.TS
	var held *sessions.HeldError
	var locked *sessions.LockedError
	var refusal *sessions.Refusal
	var unstored *unstoredError
	switch err := res.err; {
	case err != nil && rs.svc.WorkCtx.Err() != nil:
		// The bot is stopping. What is stored as in flight stays so, and the next start settles it.
	case res.denied != authz.ReasonNone:
		rs.deny(ctx, it.reply, res.denied)
	case err == nil && res.receipt == sessions.ReceiptAccepted:
		rs.onDelivered()
		rs.entries.settleDelivered(ts, binding.OutcomeAccepted, binding.MarkAccepted)
	case err == nil && res.receipt == sessions.ReceiptTyped:
		rs.onDelivered()
		rs.entries.settleDelivered(ts, binding.OutcomeTyped, binding.MarkTyped)
	case errors.Is(err, errChanged):
	case errors.Is(err, chat.ErrReplyGone):
		rs.settleDeleted(ctx, it)
	case errors.Is(err, sessions.ErrInDoubt):
		rs.setInDoubt(ts, err)
	case errors.As(err, &held):
		cause, text := rs.holdReason(held)
		rs.hold(ctx, it, cause, text)
		if held.State == sessions.ViewDialog {
			rs.waiting.set(rs.svc.Now(), nil)
		}
	case errors.As(err, &locked):
		rs.hold(ctx, it, "", "")
	case errors.As(err, &unstored), binding.IsDiskFull(err):
		rs.hold(ctx, it, "unstored", unstoredText(err))
	case errors.Is(err, sessions.ErrTerminalTimeout):
		rs.hold(ctx, it, "silent", "tmux does not answer on this machine.")
	case errors.As(err, &refusal):
		rs.settleFailed(ts, refusal.Error())
	case res.wait > 0:
		rs.pauseQueue(res.wait)
	case err != nil:
		rs.settleFailed(ts, err.Error())
	}
}

// onDelivered clears the hold state after a reply was delivered.
func (rs *replies) onDelivered() {
	rs.holdCause = ""
	rs.waiting.clear()
}

// settleDeleted settles a reply that was deleted before it was typed.
func (rs *replies) settleDeleted(ctx context.Context, it *item) {
	rs.queue.remove(it.reply.TS)
	rs.svc.emitDropped(ctx, rs.SessionID, rs.Ref, it.reply, ReasonWithdrawn)
	rs.entries.settle(it.reply.TS, binding.OutcomeWithdrawn, "")
}

// settleFailed settles a reply that was not typed and will not be, and says why in the thread.
func (rs *replies) settleFailed(ts, why string) {
	rs.queue.remove(ts)
	rs.entries.settleWithNotification(ts, binding.OutcomeFailed, binding.MarkFailed, "Not delivered: "+chat.Escape(why))
}

// hold keeps a reply for later, and says why in the thread, once for each cause. Without a cause it says nothing.
func (rs *replies) hold(ctx context.Context, it *item, cause, text string) {
	ts := it.reply.TS
	if rs.B.Replies[ts].State == binding.StateInflight && !rs.requeue(ctx, it) { // its intent was stored, but it certainly was not typed
		return
	}
	told := it.held && rs.holdCause == "" // by an earlier run of the bot
	if !it.held {
		it.held, it.heldSince = true, rs.svc.now()
	}
	rs.B.LastUser = it.reply.Actor.User // an authorized one, or it would not have come this far
	e := rs.B.Replies[ts]
	if e.State != binding.StateHeld || e.Wanted != binding.MarkHeld {
		e.State, e.At, e.Wanted = binding.StateHeld, it.heldSince, binding.MarkHeld
		rs.entries.setEntry(ts, e)
		rs.SaveBestEffort()
	}
	if news := cause != "" && rs.holdCause != cause; news {
		rs.holdCause = cause
		if !told {
			rs.post("Held, and typed as soon as it can be: " + text)
		}
	}
	if cause == "" && rs.svc.now().Sub(it.heldSince) < holdSoonFor {
		rs.pauseQueue(holdSoon)
		return
	}
	rs.pauseQueue(holdEvery)
}

// How often a held reply is tried again: at first, when the reason passes by itself, and later.
const (
	holdSoon    = 250 * time.Millisecond
	holdSoonFor = 10 * time.Second
	holdEvery   = time.Second
)

// pauseQueue has nothing sent for d.
func (rs *replies) pauseQueue(d time.Duration) {
	rs.paused = true
	rs.pauseTimer = time.AfterFunc(d, func() {
		rs.Do(func(ctx context.Context) {
			rs.paused = false
			rs.sendNext(ctx)
		})
	})
}

// holdReason is why a reply is held: a word for the cause, and a text for the thread.
func (rs *replies) holdReason(h *sessions.HeldError) (cause, text string) {
	switch {
	case h.Draft:
		return "draft", "somebody's unsent text stands in the agent's input box. Send it or clear it in the terminal."
	case h.State == sessions.ViewStarting, h.State == sessions.ViewWorking:
		return "", "" // it passes by itself; the receipt says enough
	case h.State == sessions.ViewMenu:
		return "menu", "the agent shows a menu. Close it in the terminal." + rs.svc.dialogText(h.Lines)
	case rs.B.PermissionRequests.HasDecidable():
		return "question", "the agent asks a question. Decide it with the buttons above, or in the terminal."
	case rs.B.PermissionRequests.HasOpen():
		return "question", "the agent asks the question above. Answer it in the terminal."
	}
	return "question", "the agent asks a question, and a reply would answer it. Answer it in the terminal." + rs.svc.dialogText(h.Lines)
}

// setInDoubt asks the operator about a reply that may or may not have arrived. A command of the agent's own is never repeated.
func (rs *replies) setInDoubt(ts string, cause error) {
	rs.svc.Log.Warn("cannot tell whether a reply arrived", "ref", rs.Ref, "ts", ts, "err", cause)
	rs.queue.remove(ts)
	e := rs.B.Replies[ts]
	if e.Raw {
		rs.entries.settleWithNotification(ts, binding.OutcomeFailed, binding.MarkInDoubt,
			"I cannot tell whether this command arrived. It is not repeated: look at the agent, and give it again if it did not.")
		return
	}
	if e.Deleted {
		rs.entries.settleWithNotification(ts, binding.OutcomeWithdrawn, "", "This reply was deleted while it was on its way: I cannot tell whether it reached the agent.")
		return
	}
	e.State, e.At, e.Wanted, e.Intent = binding.StateDoubt, rs.svc.now(), binding.MarkInDoubt, sessions.Intent{}
	rs.entries.setEntry(ts, e)
	rs.prompts.prompt(binding.ResendPrompt{Kind: binding.ResendPromptInDoubt, Replies: []string{ts}})
}

// recoverInFlight settles the replies that an earlier run left in flight. Each is looked for in the transcript; without evidence it is
// in doubt.
func (rs *replies) recoverInFlight(ctx context.Context) {
	for _, ts := range rs.entries.inState(binding.StateInflight) {
		e := rs.B.Replies[ts]
		rs.recovering++
		rs.svc.Start(func(ctx context.Context) {
			ok, err := rs.svc.Agent.VerifyInput(ctx, sessions.VerifyInputRequest{Ref: rs.Ref, ID: rs.SessionID, Intent: e.Intent})
			if rs.svc.WorkCtx.Err() != nil {
				return
			}
			rs.Do(func(ctx context.Context) { rs.finishRecovery(ctx, ts, ok, err) })
		})
	}
}

func (rs *replies) finishRecovery(ctx context.Context, ts string, arrived bool, err error) {
	rs.recovering--
	switch {
	case rs.B.Replies[ts].State != binding.StateInflight:
	case arrived:
		rs.entries.settleDelivered(ts, binding.OutcomeAccepted, binding.MarkAccepted)
	default:
		rs.setInDoubt(ts, fmt.Errorf("found in flight at the start: %w", errors.Join(sessions.ErrInDoubt, err)))
	}
	rs.sendNext(ctx)
}

// deny drops a reply of somebody who is not let in.
func (rs *replies) deny(ctx context.Context, r chat.Reply, reason authz.Reason) {
	rs.queue.remove(r.TS)
	rs.entries.deny(ctx, r, reason)
}

// drop drops the replies that wait.
func (rs *replies) drop(ctx context.Context) {
	for _, it := range rs.queue.items {
		rs.svc.emitDropped(ctx, rs.SessionID, rs.Ref, it.reply, ReasonUnmapped)
	}
	rs.queue = queue{}
	if rs.pauseTimer != nil {
		rs.pauseTimer.Stop()
	}
	rs.paused = false
}

// unstoredText is why nothing is typed while it cannot be stored what is.
func unstoredText(err error) string {
	return fmt.Sprintf("the bot's disk takes nothing (%s), and nothing is typed that could not be accounted for. "+
		"Make room on it; everything goes on by itself then.", chat.Escape(binding.Cause(err)))
}
