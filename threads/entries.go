package threads

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// entries keeps what is stored of the replies of one thread: how each was settled, and what its receipt shows.
type entries struct {
	*threadState
	reactionsFull map[string]bool // replies on which there is no room for another reaction
	readAtTraces  int             // the number of traces at which the thread is read, so that some can go
}

// isHandled reports whether nothing is to be done for a reply now: it is settled, in the pane, or the operator decides.
func (es *entries) isHandled(ts string) bool {
	if _, done := es.b.Traces[ts]; done {
		return true
	}
	switch es.b.Replies[ts].State {
	case StateSettled, StateInflight, StateDoubt, StateOffered:
		return true
	}
	return false
}

// deny drops a reply for good. Nothing is answered in Slack; the log names the member, so that an entry that the list lacks is
// found.
func (es *entries) deny(ctx context.Context, r chat.Reply, reason authz.Reason) {
	es.svc.Log.Warn("dropped a reply", "member", r.Actor.User, "team", r.Actor.Team, "because", reason, "ref", es.ref)
	es.svc.emitDropped(ctx, es.sessionID, es.ref, r, ReasonUnauthorized)
	es.settle(r.TS, OutcomeDropped, "")
}

// settle stores that a reply is done with, and what its receipt shows.
func (es *entries) settle(ts string, o Outcome, m Mark) {
	e := es.b.Replies[ts]
	e.State, e.Outcome, e.At, e.Wanted = StateSettled, o, es.svc.now(), m
	e.Intent = sessions.Intent{} // not needed any more, and the file is written at every step
	es.setEntry(ts, e)
	es.trim()
	es.saveBestEffort()
}

// settleWithNotification settles a reply and tells the thread why. The text is stored with the entry, so that it is posted also after
// a crash in between.
func (es *entries) settleWithNotification(ts string, o Outcome, m Mark, text string) {
	e := es.b.Replies[ts]
	e.Notification = text
	es.b.Replies[ts] = e
	es.settle(ts, o, m)
	es.postNotification(ts, false)
}

// postNotification queues the text that is stored with an entry.
func (es *entries) postNotification(ts string, maybePosted bool) {
	e := es.b.Replies[ts]
	sum := sha256.Sum256([]byte(e.Notification)) // a reply may have several notifications
	es.svc.outbox.Add(es.newPost(e.Notification, es.sessionID+"."+ts+"."+hex.EncodeToString(sum[:6])), maybePosted)
	e.Notification = ""
	es.b.Replies[ts] = e
}

// setEntry replaces an entry and has its receipt shown.
func (es *entries) setEntry(ts string, e Entry) {
	es.b.Replies[ts] = e
	if !e.IsComplete() {
		es.signals.receiptsDue()
	}
}

// inState lists the replies in a state, oldest first.
func (es *entries) inState(s State) []string {
	var all []string
	for ts, e := range es.b.Replies {
		if e.State == s {
			all = append(all, ts)
		}
	}
	slices.SortFunc(all, chat.CompareTS)
	return all
}

// dropSuspended records that a command was dropped: the last valid list does not have its author.
func (es *entries) dropSuspended(ctx context.Context, r chat.Reply) {
	es.svc.emitDropped(ctx, es.sessionID, es.ref, r, ReasonSuspended)
}

// emitReceived records that an authorized reply is on its way to the session.
func (es *entries) emitReceived(ctx context.Context, r chat.Reply) {
	es.b.LastUser = r.Actor.User
	fields := map[string]any{"channel": r.Channel, "thread": r.Root, "ts": r.TS, "user": r.Actor.User}
	es.svc.Sink.Emit(ctx, sessions.Event{Name: EventReceived, Level: slog.LevelInfo, ID: es.sessionID, Ref: es.ref, Fields: fields})
	es.emitMirrorSkipped(ctx, fields)
}

// editedLate says that the agent has an older version. A reply that the operator decides about is read again then.
func (es *entries) editedLate(r chat.Reply, e Entry) {
	if !e.WasDelivered() || !IsNewer(r.Edited, Newer(e.Edited, e.Changed)) {
		return
	}
	e.Changed = r.Edited
	es.b.Replies[r.TS] = e
	es.saveBestEffort()
	es.postTooLate(r.Actor, editTooLate)
}

// editedTrace is editedLate for a reply of which only a trace is kept. False: there is none.
func (es *entries) editedTrace(r chat.Reply) bool {
	trace, ok := es.b.Traces[r.TS]
	if ok && trace.Typed && IsNewer(r.Edited, trace.Edited) {
		trace.Edited = r.Edited
		es.b.Traces[r.TS] = trace
		es.saveBestEffort()
		es.postTooLate(r.Actor, editTooLate)
	}
	return ok
}

// settleDelivered settles a reply that the agent has, and says so where an edit or its deletion came too late.
func (es *entries) settleDelivered(ts string, o Outcome, m Mark) {
	e := es.b.Replies[ts]
	es.settle(ts, o, m)
	switch {
	case e.Deleted:
		es.postTooLate(authz.Actor{User: e.User}, deletionTooLate)
	case IsNewer(e.Changed, e.Edited):
		es.postTooLate(authz.Actor{User: e.User}, editTooLate)
	}
}

// postTooLate says that an edit or a deletion came too late, unless its author may not know.
func (es *entries) postTooLate(actor authz.Actor, text string) {
	if es.canAcknowledge(actor) {
		es.post(text)
	}
}

// deletedLate says, once, that the agent has a reply that its author deleted.
func (es *entries) deletedLate(ts string, e Entry) {
	if !e.WasDelivered() || e.Deleted || es.svc.now().Sub(e.At) >= deletedSoon {
		return
	}
	e.Deleted = true
	es.b.Replies[ts] = e
	es.saveBestEffort()
	es.postTooLate(authz.Actor{User: e.User}, deletionTooLate)
}

// blocksCursor reports whether the cursor must stay before a reply, since only Slack has it. Of a reply that the operator decides
// about, or chose to have typed, the binding holds all that is needed.
func (es *entries) blocksCursor(ts string) bool {
	if _, done := es.b.Traces[ts]; done {
		return false
	}
	e := es.b.Replies[ts]
	switch e.State {
	case StateSettled, StateDoubt, StateOffered, StateApproved:
		return false
	}
	return !e.Approved
}

// moveCursor moves the cursor, and forgets what lies behind it.
func (es *entries) moveCursor(cursor string) {
	if cursor == es.b.Cursor {
		return
	}
	es.b.Cursor = cursor
	for ts := range es.b.Traces {
		if chat.CompareTS(ts, cursor) <= 0 {
			delete(es.b.Traces, ts)
		}
	}
	for token, q := range es.b.ResendPrompts {
		if q.Choice != "" && chat.CompareTS(chat.TimeTS(q.At), cursor) <= 0 {
			delete(es.b.ResendPrompts, token)
		}
	}
	es.trim()
	es.saveBestEffort()
}

// lazyReply is a reply that is read from Slack again when it is due.
func (es *entries) lazyReply(ts string) chat.Reply {
	r := chat.Reply{Channel: es.b.Channel, Root: es.b.Root, TS: ts}
	r.Actor.User = es.b.Replies[ts].User
	r.Load = func(ctx context.Context) (chat.Content, error) {
		at := es.threadID() // the channel may have got another id meanwhile
		fresh, err := es.svc.History.Reply(ctx, at.Channel, at.Root, ts)
		if err != nil {
			return chat.Content{}, err
		}
		c, err := fresh.Load(ctx)
		if err == nil && fresh.Command != nil {
			c.Text = cmp.Or(fresh.Command.Rest, c.Text)
		}
		return c, err
	}
	return r
}

// pendingReactions are the first changes of receipts that are due; failed says when replies whose change failed may be tried again.
func (es *entries) pendingReactions(now time.Time, failed map[string]time.Time) (l threadChanges) {
	if es.b.Root == "" || es.unbound {
		return l
	}
	for ts, e := range es.b.Replies {
		c := es.pendingReaction(ts, e)
		if c == nil {
			continue
		}
		if wait := failed[ts].Sub(now); wait > 0 {
			l.retryIn = min(cmp.Or(l.retryIn, wait), wait)
			continue
		}
		best := &l.add
		if c.remove {
			best = &l.remove
		}
		if *best == nil || chat.CompareTS(ts, (*best).ts) < 0 {
			*best = c
		}
	}
	return l
}

// pendingReaction is the next change of one reply's receipt; nil: it shows what it should.
func (es *entries) pendingReaction(ts string, e Entry) *reactionChange {
	crowded := es.reactionsFull[ts] && len(e.Shown) > 0
	if e.Wanted != "" && !slices.Contains(e.Shown, e.Wanted) && !crowded {
		return &reactionChange{ts: ts, mark: e.Wanted}
	}
	for _, m := range e.Shown {
		if m != e.Wanted {
			return &reactionChange{ts: ts, mark: m, remove: true, priority: crowded}
		}
	}
	return nil
}

// onReactionChanged stores that a reaction was added or removed.
func (es *entries) onReactionChanged(c reactionChange) {
	e, ok := es.b.Replies[c.ts]
	if !ok {
		return
	}
	e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m Mark) bool { return m == c.mark })
	if !c.remove {
		e.Shown = append(e.Shown, c.mark)
		delete(es.reactionsFull, c.ts)
	}
	es.b.Replies[c.ts] = e
	es.trim()
	es.saveBestEffort()
}

// giveUpReaction gives up a change that Slack refuses for good: of a reply that is gone, or of one reaction. Where others left no
// room for another reaction, the old receipt is removed first: it is not true any more.
func (es *entries) giveUpReaction(c reactionChange, err error) {
	e, ok := es.b.Replies[c.ts]
	switch {
	case !ok:
		return
	case errors.Is(err, chat.ErrReplyGone), errors.Is(err, chat.ErrThreadGone):
		e.Wanted, e.Shown = "", nil
	case c.remove:
		e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m Mark) bool { return m == c.mark })
	case errors.Is(err, chat.ErrTooManyReactions) && len(e.Shown) > 0:
		es.reactionsFull[c.ts] = true
		return
	case e.Wanted == c.mark:
		e.Wanted = ""
	}
	delete(es.reactionsFull, c.ts)
	es.b.Replies[c.ts] = e
	es.trim()
	es.saveBestEffort()
}

// skip settles a reply that is not typed.
func (es *entries) skip(ts string) {
	e := es.b.Replies[ts]
	e.State, e.Outcome, e.At, e.Wanted = StateSettled, OutcomeSkipped, es.svc.now(), ""
	es.setEntry(ts, e)
}

// repostNotifications queues what an earlier run had still to tell of replies. It may have been posted.
func (es *entries) repostNotifications() {
	for ts, e := range es.b.Replies {
		if e.Notification != "" {
			es.postNotification(ts, true)
		}
	}
}
