package threads

import (
	"context"
	"time"

	"the-loop/threads/chat"
)

// applyVersion replaces the version of a reply that waits, where this one is newer.
func (rs *replies) applyVersion(ctx context.Context, it *item, r chat.Reply, live bool) {
	if IsNewer(r.Edited, it.reply.Edited) {
		rs.replaceVersion(ctx, it, r, live)
	}
}

func (rs *replies) replaceVersion(ctx context.Context, it *item, r chat.Reply, live bool) {
	if r.Command != nil && r.Command.Verb != verbRaw {
		rs.queue.remove(r.TS)
		rs.commands.handleCommand(ctx, r, live)
		return
	}
	it.reply.Load, it.reply.Command, it.reply.Edited, it.raw = r.Load, r.Command, r.Edited, r.Command != nil
	it.version++
}

// onEdited handles the event of an edit. A reply that waits is typed as it is now; one that the agent has stays as it was, and
// the thread says so.
func (rs *replies) onEdited(ctx context.Context, r chat.Reply) {
	if it := rs.queue.get(r.TS); it != nil {
		if r.Edited == "" && it.reply.Edited == "" { // a change that Slack did not mark: the event says that it is one
			rs.replaceVersion(ctx, it, r, true)
			return
		}
		rs.applyVersion(ctx, it, r, true)
		return
	}
	e, known := rs.b.Replies[r.TS]
	switch {
	case known && e.State == StateInflight:
		rs.editedInflight(r, e)
	case known && (e.State == StateSettled || e.State == StateDoubt || e.State == StateOffered):
		rs.entries.editedLate(r, e)
	case rs.entries.editedTrace(r):
	default: // it waits to be read, or its own event was missed
		rs.onReply(ctx, r, !r.Redelivered)
	}
}

// editedInflight remembers a newer version of a reply that may be in the pane. Whether it came too late shows its outcome.
func (rs *replies) editedInflight(r chat.Reply, e Entry) {
	if !IsNewer(r.Edited, Newer(e.Edited, e.Changed)) {
		return
	}
	e.Changed = r.Edited
	rs.b.Replies[r.TS] = e
	if rs.current != nil && rs.current.reply.TS == r.TS {
		rs.current.newerVersion = &r
	}
	rs.saveBestEffort()
}

// What the thread is told when an edit or a deletion came too late.
const (
	editTooLate     = "An edit came too late: the agent has the reply as it was before. Write a new reply to correct it."
	deletionTooLate = "The deletion came too late: the agent has the reply."
)

// requeue puts a reply back whose intent was stored and that certainly was not typed. False: it was deleted, or became a command.
func (rs *replies) requeue(ctx context.Context, it *item) bool {
	ts := it.reply.TS
	rs.queue.put(it)
	if rs.b.Replies[ts].Deleted {
		rs.settleDeleted(ctx, it)
		return false
	}
	e := rs.b.Replies[ts]
	e.Changed = ""
	rs.b.Replies[ts] = e
	if next := it.newerVersion; next != nil {
		it.newerVersion = nil
		rs.applyVersion(ctx, it, *next, true)
	}
	return rs.queue.get(ts) != nil
}

// onDeleted handles the deletion of a reply. Also that of an unknown reply is stored: its own event may still come, or come again.
func (rs *replies) onDeleted(ctx context.Context, ts string) {
	if it := rs.queue.get(ts); it != nil {
		rs.settleDeleted(ctx, it)
		return
	}
	e, known := rs.b.Replies[ts]
	_, done := rs.b.Traces[ts]
	switch {
	case done, rs.unbound:
	case known && e.State == StateInflight:
		e.Deleted = true
		rs.b.Replies[ts] = e
		rs.saveBestEffort()
	case known && e.State == StateSettled:
		rs.entries.deletedLate(ts, e)
	case known:
		rs.entries.settle(ts, OutcomeWithdrawn, "")
		rs.prompts.closeEmptyPrompts(ts)
	case chat.CompareTS(ts, rs.b.Cursor) > 0: // up to the cursor everything is settled
		rs.entries.settle(ts, OutcomeWithdrawn, "")
	}
}

// deletedSoon is how long after a reply was typed its deletion still looks like an attempt to stop it.
const deletedSoon = time.Minute
