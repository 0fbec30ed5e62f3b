package threads

import (
	"context"
	"time"

	"the-loop/authz"
	"the-loop/threads/chat"
)

// isNewer reports whether version a of a message came after version b. Slack marks a version with the time of its edit, and
// the first one not at all. So an event that comes late, or again, never undoes an edit.
func isNewer(a, b string) bool { return a != "" && (b == "" || chat.CompareTS(a, b) > 0) }

// applyVersion takes another version of a reply that waits. It counts where it is newer than the one that would be typed.
func (t *thread) applyVersion(ctx context.Context, it *item, r chat.Reply, live bool) {
	if isNewer(r.Edited, it.reply.Edited) {
		t.replaceVersion(ctx, it, r, live)
	}
}

func (t *thread) replaceVersion(ctx context.Context, it *item, r chat.Reply, live bool) {
	if r.Command != nil && r.Command.Verb != verbRaw {
		t.queue.remove(r.TS)
		t.handleCommand(ctx, r, live)
		return
	}
	it.reply.Load, it.reply.Command, it.reply.Edited, it.raw = r.Load, r.Command, r.Edited, r.Command != nil
	it.version++
}

// edited takes the event of an edit. A reply that waits is typed as it is now; one that the agent has stays as it was, and
// the thread says so.
func (t *thread) onEdited(ctx context.Context, r chat.Reply) {
	if it := t.queue.get(r.TS); it != nil {
		if r.Edited == "" && it.reply.Edited == "" { // a change that Slack did not mark: the event says that it is one
			t.replaceVersion(ctx, it, r, true)
			return
		}
		t.applyVersion(ctx, it, r, true)
		return
	}
	e, known := t.b.Replies[r.TS]
	switch {
	case known && e.State == StateInflight:
		t.editedInflight(r, e)
	case known && (e.State == StateSettled || e.State == StateDoubt || e.State == StateOffered):
		t.editedLate(r, e)
	case t.editedTrace(r):
	default: // it waits to be read, or its own event was missed
		t.onReply(ctx, r, !r.Redelivered)
	}
}

// editedInflight remembers a newer version of a reply that may be in the pane. Whether it came too late shows its outcome.
func (t *thread) editedInflight(r chat.Reply, e Entry) {
	if !isNewer(r.Edited, newerVersion(e.Edited, e.Changed)) {
		return
	}
	e.Changed = r.Edited
	t.b.Replies[r.TS] = e
	if t.current != nil && t.current.reply.TS == r.TS {
		t.current.newerVersion = &r
	}
	t.saveBestEffort()
}

// editedLate says that the agent has an older version. What is put to the operator is read anew when he decides.
func (t *thread) editedLate(r chat.Reply, e Entry) {
	if !e.wasDelivered() || !isNewer(r.Edited, newerVersion(e.Edited, e.Changed)) {
		return
	}
	e.Changed = r.Edited
	t.b.Replies[r.TS] = e
	t.saveBestEffort()
	t.postTooLate(r.Actor, editTooLate)
}

// editedTrace is editedLate for a reply of which only a trace is kept. False: there is none.
func (t *thread) editedTrace(r chat.Reply) bool {
	trace, ok := t.b.Traces[r.TS]
	if ok && trace.Typed && isNewer(r.Edited, trace.Edited) {
		trace.Edited = r.Edited
		t.b.Traces[r.TS] = trace
		t.saveBestEffort()
		t.postTooLate(r.Actor, editTooLate)
	}
	return ok
}

// What comes too late is said.
const (
	editTooLate     = "An edit came too late: the agent has the reply as it was before. Write a new reply to correct it."
	deletionTooLate = "The deletion came too late: the agent has the reply."
)

// settleDelivered settles a reply that the agent has, and says what came too late for it.
func (t *thread) settleDelivered(ts string, o Outcome, m Mark) {
	e := t.b.Replies[ts]
	t.settle(ts, o, m)
	switch {
	case e.Deleted:
		t.postTooLate(authz.Actor{User: e.User}, deletionTooLate)
	case isNewer(e.Changed, e.Edited):
		t.postTooLate(authz.Actor{User: e.User}, editTooLate)
	}
}

// postTooLate says that something came too late, unless who did it is not let in any more.
func (t *thread) postTooLate(actor authz.Actor, text string) {
	if t.canAcknowledge(actor) {
		t.post(text)
	}
}

// wasDelivered reports whether the reply certainly went into the pane.
func (e Entry) wasDelivered() bool { return e.Outcome == OutcomeAccepted || e.Outcome == OutcomeTyped }

// later is the later one of two versions.
func newerVersion(a, b string) string {
	if isNewer(b, a) {
		return b
	}
	return a
}

// requeue puts a reply back that was written down and certainly not typed, as it is by now. False: it waits no more.
func (t *thread) requeue(ctx context.Context, it *item) bool {
	ts := it.reply.TS
	t.queue.put(it)
	if t.b.Replies[ts].Deleted {
		t.settleDeleted(ctx, it)
		return false
	}
	e := t.b.Replies[ts]
	e.Changed = ""
	t.b.Replies[ts] = e
	if next := it.newerVersion; next != nil {
		it.newerVersion = nil
		t.applyVersion(ctx, it, *next, true)
	}
	return t.queue.get(ts) != nil
}

// onDeleted takes the deletion of a reply. It is remembered of one that was never heard of, too: its own event may still
// come, or come again.
func (t *thread) onDeleted(ctx context.Context, ts string) {
	if it := t.queue.get(ts); it != nil {
		t.settleDeleted(ctx, it)
		return
	}
	e, known := t.b.Replies[ts]
	_, done := t.b.Traces[ts]
	switch {
	case done, t.unbound:
	case known && e.State == StateInflight:
		e.Deleted = true
		t.b.Replies[ts] = e
		t.saveBestEffort()
	case known && e.State == StateSettled:
		t.deletedLate(ts, e)
	case known:
		t.settle(ts, OutcomeWithdrawn, "")
		t.closeEmptyPrompts(ts)
	case chat.CompareTS(ts, t.b.Cursor) > 0: // up to the cursor nothing is taken any more
		t.settle(ts, OutcomeWithdrawn, "")
	}
}

// deletedLate says, once, that the agent has a reply that somebody tried to stop.
func (t *thread) deletedLate(ts string, e Entry) {
	if !e.wasDelivered() || e.Deleted || t.m.now().Sub(e.At) >= deletedSoon {
		return
	}
	e.Deleted = true
	t.b.Replies[ts] = e
	t.saveBestEffort()
	t.postTooLate(authz.Actor{User: e.User}, deletionTooLate)
}

// deletedSoon is how long after a reply was typed its deletion still looks like an attempt to stop it.
const deletedSoon = time.Minute
