package threads

import (
	"slices"
	"time"

	"the-loop/threads/attachments"
	"the-loop/threads/chat"
)

// item is a reply that waits.
type item struct {
	reply        chat.Reply
	live         bool                  // heard as an event, not found by reading
	arrivedAt    time.Time             // when it was heard or found, with the monotonic clock: it has waited since
	approved     bool                  // somebody chose to have it typed: its age is not asked
	raw          bool                  // a command of the agent's own
	logged       bool                  // it passed authorization once, and the event log has it
	held         bool                  // the pane did not take it; it is tried again
	heldSince    time.Time             // since when it is held
	version      int                   // counts edits while it waits
	newerVersion *chat.Reply           // a later version that came while this one was on its way
	download     *attachments.Progress // of the reply's files; used by the attempt that is under way
}

// queue holds the replies of one thread that wait, in the order of their ts.
type queue struct{ items []*item }

// put adds an item, unless the reply waits already: which version of it counts is asked by [ensureThread.applyVersion].
func (q *queue) put(it *item) {
	if i, found := q.search(it.reply.TS); !found {
		q.items = slices.Insert(q.items, i, it)
	}
}

func (q *queue) search(ts string) (int, bool) {
	return slices.BinarySearchFunc(q.items, ts, func(it *item, ts string) int { return chat.CompareTS(it.reply.TS, ts) })
}

func (q *queue) get(ts string) *item {
	if i, found := q.search(ts); found {
		return q.items[i]
	}
	return nil
}

func (q *queue) remove(ts string) {
	if i, found := q.search(ts); found {
		q.items = slices.Delete(q.items, i, i+1)
	}
}

// head is the oldest that waits; nil when none does.
func (q *queue) head() *item {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}
