package threads

import (
	"context"
	"slices"
	"time"

	"the-loop/threads/chat"
)

// cursorLags are how far behind Slack's clock the cursor stays. Slack delivers an event again for about five minutes, and a
// message may be read later than one that was written after it. In a thread where so much is written that too many traces
// would have to be kept, the cursor follows more closely.
var cursorLags = []time.Duration{15 * time.Minute, time.Minute, 5 * time.Second}

// maxTraces is how many traces of settled replies are kept before the thread is read so that some can go.
const maxTraces = 128

// advanceCursor moves the cursor over what was read and is not waiting any more, and forgets what lies behind it. now is when the
// read began, by Slack's clock; zero: not known, so that nothing is sure to have been read.
func (t *thread) advanceCursor(replies []chat.Reply, now time.Time) {
	if now.IsZero() {
		return
	}
	all := t.tsAfterCursor(replies)
	for _, lag := range cursorLags {
		cursor, limit := t.b.Cursor, chat.TimeTS(now.Add(-lag))
		for _, ts := range all {
			if chat.CompareTS(ts, limit) > 0 || t.blocksCursor(ts) {
				break
			}
			cursor = maxTS(cursor, ts)
		}
		t.moveCursor(cursor)
		if len(t.b.Traces) < maxTraces {
			break
		}
	}
	t.readAtTraces = len(t.b.Traces) + maxTraces/2
}

// after lists what was read, and what is known beside that, oldest first.
func (t *thread) tsAfterCursor(replies []chat.Reply) []string {
	var all []string
	for _, r := range replies {
		all = append(all, r.TS)
	}
	for _, it := range t.queue.items {
		all = append(all, it.reply.TS)
	}
	for ts := range t.b.Replies {
		all = append(all, ts)
	}
	for ts := range t.b.Traces {
		all = append(all, ts)
	}
	all = slices.DeleteFunc(all, func(ts string) bool { return chat.CompareTS(ts, t.b.Cursor) <= 0 })
	slices.SortFunc(all, chat.CompareTS)
	return slices.Compact(all)
}

// blocksCursor reports whether the cursor has to stay before a reply: only Slack has it. What is put to the operator, or is typed
// by his choice, has all that is needed in the binding.
func (t *thread) blocksCursor(ts string) bool {
	if _, done := t.b.Traces[ts]; done {
		return false
	}
	e := t.b.Replies[ts]
	switch e.State {
	case StateSettled, StateDoubt, StateOffered, StateApproved:
		return false
	}
	return !e.Approved
}

func (t *thread) moveCursor(cursor string) {
	if cursor == t.b.Cursor {
		return
	}
	t.b.Cursor = cursor
	for ts := range t.b.Traces {
		if chat.CompareTS(ts, cursor) <= 0 {
			delete(t.b.Traces, ts)
		}
	}
	for token, q := range t.b.ResendPrompts {
		if q.Choice != "" && chat.CompareTS(chat.TimeTS(q.At), cursor) <= 0 {
			delete(t.b.ResendPrompts, token)
		}
	}
	t.trim()
	t.saveBestEffort()
}

// withdrawMissing withdraws what waits and is not in the thread any more. What lies before from was not read.
func (t *thread) withdrawMissing(ctx context.Context, from string, there map[string]bool, newest string) {
	gone := func(ts string) bool {
		return !there[ts] && chat.CompareTS(ts, from) > 0 && chat.CompareTS(ts, newest) < 0
	}
	for _, it := range slices.Clone(t.queue.items) {
		if gone(it.reply.TS) {
			t.settleDeleted(ctx, it)
		}
	}
	for _, ts := range append(t.inState(StateHeld), t.inState("")...) { // of an earlier run
		if gone(ts) {
			t.settle(ts, OutcomeWithdrawn, "")
		}
	}
}

// requeueChosen has a reply typed that somebody chose; it is read from Slack when it is due.
func (t *thread) requeueChosen(ts string) {
	t.queue.put(&item{reply: t.lazyReply(ts), arrivedAt: time.Now(), approved: true, raw: t.b.Replies[ts].Raw, logged: true})
}

// requeueApproved has typed what somebody chose in an earlier run: the cursor may have gone past it.
func (t *thread) requeueApproved() {
	for ts, e := range t.b.Replies {
		if e.State == StateApproved || e.State == StateHeld && e.Approved {
			t.requeueChosen(ts)
		}
	}
}
