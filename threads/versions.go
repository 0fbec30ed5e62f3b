package threads

import (
	"context"
	"time"

	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// applyVersion replaces the version of a reply that waits, where this one is newer.
func (rs *replies) applyVersion(ctx context.Context, it *item, r chat.Reply, live bool) {
	if binding.IsNewer(r.Edited, it.reply.Edited) {
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
	e, known := rs.B.Replies[r.TS]
	switch {
	case known && e.State == binding.StateInflight:
		rs.editedInflight(r, e)
	case known && (e.State == binding.StateSettled || e.State == binding.StateDoubt || e.State == binding.StateOffered):
		rs.entries.editedLate(r, e)
	case rs.entries.editedTrace(r):
	default: // it waits to be read, or its own event was missed
		rs.onReply(ctx, r, !r.Redelivered)
	}
}

// editedInflight remembers a newer version of a reply that may be in the pane. Whether it came too late shows its outcome.
func (rs *replies) editedInflight(r chat.Reply, e binding.Entry) {
	if !binding.IsNewer(r.Edited, binding.Newer(e.Edited, e.Changed)) {
		return
	}
	e.Changed = r.Edited
	rs.B.Replies[r.TS] = e
	if rs.current != nil && rs.current.reply.TS == r.TS {
		rs.current.newerVersion = &r
	}
	rs.SaveBestEffort()
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
	if rs.B.Replies[ts].Deleted {
		rs.settleDeleted(ctx, it)
		return false
	}
	e := rs.B.Replies[ts]
	e.Changed = ""
	rs.B.Replies[ts] = e
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
	e, known := rs.B.Replies[ts]
	_, done := rs.B.Traces[ts]
	switch {
	case done, rs.Unbound:
	case known && e.State == binding.StateInflight:
		e.Deleted = true
		rs.B.Replies[ts] = e
		rs.SaveBestEffort()
	case known && e.State == binding.StateSettled:
		rs.entries.deletedLate(ts, e)
	case known:
		rs.entries.settle(ts, binding.OutcomeWithdrawn, "")
		rs.prompts.closeEmptyPrompts(ts)
	case chat.CompareTS(ts, rs.B.Cursor) > 0: // up to the cursor everything is settled
		rs.entries.settle(ts, binding.OutcomeWithdrawn, "")
	}
}

// deletedSoon is how long after a reply was typed its deletion still looks like an attempt to stop it.
const deletedSoon = time.Minute
