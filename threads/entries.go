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
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/receipts"
)

// entries keeps what is stored of the replies of one thread: how each was settled, and what its receipt shows.
type entries struct {
	*threadState
	reactionsFull map[string]bool // replies on which there is no room for another reaction
	readAtTraces  int             // the number of traces at which the thread is read, so that some can go
}

// isHandled reports whether nothing is to be done for a reply now: it is settled, in the pane, or the operator decides.
func (es *entries) isHandled(ts string) bool {
	if _, done := es.B.Traces[ts]; done {
		return true
	}
	switch es.B.Replies[ts].State {
	case binding.StateSettled, binding.StateInflight, binding.StateDoubt, binding.StateOffered:
		return true
	}
	return false
}

// deny drops a reply for good. Nothing is answered in Slack; the log names the member, so that an entry that the list lacks is
// found.
func (es *entries) deny(ctx context.Context, r chat.Reply, reason authz.Reason) {
	es.svc.Log.Warn("dropped a reply", "member", r.Actor.User, "team", r.Actor.Team, "because", reason, "ref", es.Ref)
	es.svc.emitDropped(ctx, es.SessionID, es.Ref, r, ReasonUnauthorized)
	es.settle(r.TS, binding.OutcomeDropped, "")
}

// settle stores that a reply is done with, and what its receipt shows.
func (es *entries) settle(ts string, o binding.Outcome, m binding.Mark) {
	e := es.B.Replies[ts]
	e.State, e.Outcome, e.At, e.Wanted = binding.StateSettled, o, es.svc.now(), m
	e.Intent = sessions.Intent{} // not needed any more, and the file is written at every step
	es.setEntry(ts, e)
	es.trim()
	es.SaveBestEffort()
}

// settleWithNotification settles a reply and tells the thread why. The text is stored with the entry, so that it is posted also after
// a crash in between.
func (es *entries) settleWithNotification(ts string, o binding.Outcome, m binding.Mark, text string) {
	e := es.B.Replies[ts]
	e.Notification = text
	es.B.Replies[ts] = e
	es.settle(ts, o, m)
	es.postNotification(ts, false)
}

// postNotification queues the text that is stored with an entry.
func (es *entries) postNotification(ts string, maybePosted bool) {
	e := es.B.Replies[ts]
	sum := sha256.Sum256([]byte(e.Notification)) // a reply may have several notifications
	es.svc.outbox.Add(es.NewPost(e.Notification, es.SessionID+"."+ts+"."+hex.EncodeToString(sum[:6])), maybePosted)
	e.Notification = ""
	es.B.Replies[ts] = e
}

// setEntry replaces an entry and has its receipt shown.
func (es *entries) setEntry(ts string, e binding.Entry) {
	es.B.Replies[ts] = e
	if !e.IsComplete() {
		es.signals.receiptsDue()
	}
}

// inState lists the replies in a state, oldest first.
func (es *entries) inState(s binding.State) []string {
	var all []string
	for ts, e := range es.B.Replies {
		if e.State == s {
			all = append(all, ts)
		}
	}
	slices.SortFunc(all, chat.CompareTS)
	return all
}

// dropSuspended records that a command was dropped: the last valid list does not have its author.
func (es *entries) dropSuspended(ctx context.Context, r chat.Reply) {
	es.svc.emitDropped(ctx, es.SessionID, es.Ref, r, ReasonSuspended)
}

// emitReceived records that an authorized reply is on its way to the session.
func (es *entries) emitReceived(ctx context.Context, r chat.Reply) {
	es.B.LastUser = r.Actor.User
	fields := map[string]any{"channel": r.Channel, "thread": r.Root, "ts": r.TS, "user": r.Actor.User}
	es.svc.Sink.Emit(ctx, sessions.Event{Name: EventReceived, Level: slog.LevelInfo, ID: es.SessionID, Ref: es.Ref, Fields: fields})
	es.emitMirrorSkipped(ctx, fields)
}

// editedLate says that the agent has an older version. A reply that the operator decides about is read again then.
func (es *entries) editedLate(r chat.Reply, e binding.Entry) {
	if !e.WasDelivered() || !binding.IsNewer(r.Edited, binding.Newer(e.Edited, e.Changed)) {
		return
	}
	e.Changed = r.Edited
	es.B.Replies[r.TS] = e
	es.SaveBestEffort()
	es.postTooLate(r.Actor, editTooLate)
}

// editedTrace is editedLate for a reply of which only a trace is kept. False: there is none.
func (es *entries) editedTrace(r chat.Reply) bool {
	trace, ok := es.B.Traces[r.TS]
	if ok && trace.Typed && binding.IsNewer(r.Edited, trace.Edited) {
		trace.Edited = r.Edited
		es.B.Traces[r.TS] = trace
		es.SaveBestEffort()
		es.postTooLate(r.Actor, editTooLate)
	}
	return ok
}

// settleDelivered settles a reply that the agent has, and says so where an edit or its deletion came too late.
func (es *entries) settleDelivered(ts string, o binding.Outcome, m binding.Mark) {
	e := es.B.Replies[ts]
	es.settle(ts, o, m)
	switch {
	case e.Deleted:
		es.postTooLate(authz.Actor{User: e.User}, deletionTooLate)
	case binding.IsNewer(e.Changed, e.Edited):
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
func (es *entries) deletedLate(ts string, e binding.Entry) {
	if !e.WasDelivered() || e.Deleted || es.svc.now().Sub(e.At) >= deletedSoon {
		return
	}
	e.Deleted = true
	es.B.Replies[ts] = e
	es.SaveBestEffort()
	es.postTooLate(authz.Actor{User: e.User}, deletionTooLate)
}

// blocksCursor reports whether the cursor must stay before a reply, since only Slack has it. Of a reply that the operator decides
// about, or chose to have typed, the binding holds all that is needed.
func (es *entries) blocksCursor(ts string) bool {
	if _, done := es.B.Traces[ts]; done {
		return false
	}
	e := es.B.Replies[ts]
	switch e.State {
	case binding.StateSettled, binding.StateDoubt, binding.StateOffered, binding.StateApproved:
		return false
	}
	return !e.Approved
}

// moveCursor moves the cursor, and forgets what lies behind it.
func (es *entries) moveCursor(cursor string) {
	if cursor == es.B.Cursor {
		return
	}
	es.B.Cursor = cursor
	for ts := range es.B.Traces {
		if chat.CompareTS(ts, cursor) <= 0 {
			delete(es.B.Traces, ts)
		}
	}
	for token, q := range es.B.ResendPrompts {
		if q.Choice != "" && chat.CompareTS(chat.TimeTS(q.At), cursor) <= 0 {
			delete(es.B.ResendPrompts, token)
		}
	}
	es.trim()
	es.SaveBestEffort()
}

// lazyReply is a reply that is read from Slack again when it is due.
func (es *entries) lazyReply(ts string) chat.Reply {
	r := chat.Reply{Channel: es.B.Channel, Root: es.B.Root, TS: ts}
	r.Actor.User = es.B.Replies[ts].User
	r.Load = func(ctx context.Context) (chat.Content, error) {
		at := es.ThreadID() // the channel may have got another id meanwhile
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
func (es *entries) pendingReactions(now time.Time, failed map[string]time.Time) (l receipts.Changes) {
	if es.B.Root == "" || es.Unbound {
		return l
	}
	for ts, e := range es.B.Replies {
		c := es.pendingReaction(ts, e)
		if c == nil {
			continue
		}
		if wait := failed[ts].Sub(now); wait > 0 {
			l.RetryIn = min(cmp.Or(l.RetryIn, wait), wait)
			continue
		}
		best := &l.Add
		if c.Remove {
			best = &l.Remove
		}
		if *best == nil || chat.CompareTS(ts, (*best).TS) < 0 {
			*best = c
		}
	}
	return l
}

// pendingReaction is the next change of one reply's receipt; nil: it shows what it should.
func (es *entries) pendingReaction(ts string, e binding.Entry) *receipts.Change {
	crowded := es.reactionsFull[ts] && len(e.Shown) > 0
	if e.Wanted != "" && !slices.Contains(e.Shown, e.Wanted) && !crowded {
		return &receipts.Change{TS: ts, Mark: e.Wanted}
	}
	for _, m := range e.Shown {
		if m != e.Wanted {
			return &receipts.Change{TS: ts, Mark: m, Remove: true, Priority: crowded}
		}
	}
	return nil
}

// onReactionChanged stores that a reaction was added or removed.
func (es *entries) onReactionChanged(c receipts.Change) {
	e, ok := es.B.Replies[c.TS]
	if !ok {
		return
	}
	e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m binding.Mark) bool { return m == c.Mark })
	if !c.Remove {
		e.Shown = append(e.Shown, c.Mark)
		delete(es.reactionsFull, c.TS)
	}
	es.B.Replies[c.TS] = e
	es.trim()
	es.SaveBestEffort()
}

// giveUpReaction gives up a change that Slack refuses for good: of a reply that is gone, or of one reaction. Where others left no
// room for another reaction, the old receipt is removed first: it is not true any more.
func (es *entries) giveUpReaction(c receipts.Change, err error) {
	e, ok := es.B.Replies[c.TS]
	switch {
	case !ok:
		return
	case errors.Is(err, chat.ErrReplyGone), errors.Is(err, chat.ErrThreadGone):
		e.Wanted, e.Shown = "", nil
	case c.Remove:
		e.Shown = slices.DeleteFunc(slices.Clone(e.Shown), func(m binding.Mark) bool { return m == c.Mark })
	case errors.Is(err, chat.ErrTooManyReactions) && len(e.Shown) > 0:
		es.reactionsFull[c.TS] = true
		return
	case e.Wanted == c.Mark:
		e.Wanted = ""
	}
	delete(es.reactionsFull, c.TS)
	es.B.Replies[c.TS] = e
	es.trim()
	es.SaveBestEffort()
}

// skip settles a reply that is not typed.
func (es *entries) skip(ts string) {
	e := es.B.Replies[ts]
	e.State, e.Outcome, e.At, e.Wanted = binding.StateSettled, binding.OutcomeSkipped, es.svc.now(), ""
	es.setEntry(ts, e)
}

// repostNotifications queues what an earlier run had still to tell of replies. It may have been posted.
func (es *entries) repostNotifications() {
	for ts, e := range es.B.Replies {
		if e.Notification != "" {
			es.postNotification(ts, true)
		}
	}
}
