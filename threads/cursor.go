package threads

import (
	"context"
	"slices"
	"time"

	"the-loop/threads/binding"
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
func (rs *replies) advanceCursor(replies []chat.Reply, now time.Time) {
	if now.IsZero() {
		return
	}
	all := rs.tsAfterCursor(replies)
	for _, lag := range cursorLags {
		cursor, limit := rs.B.Cursor, chat.TimeTS(now.Add(-lag))
		for _, ts := range all {
			if chat.CompareTS(ts, limit) > 0 || rs.entries.blocksCursor(ts) {
				break
			}
			cursor = chat.MaxTS(cursor, ts)
		}
		rs.entries.moveCursor(cursor)
		if len(rs.B.Traces) < maxTraces {
			break
		}
	}
	rs.entries.readAtTraces = len(rs.B.Traces) + maxTraces/2
}

// tsAfterCursor lists the replies after the cursor, those that were read and the others that are known, oldest first.
func (rs *replies) tsAfterCursor(replies []chat.Reply) []string {
	var all []string
	for _, r := range replies {
		all = append(all, r.TS)
	}
	for _, it := range rs.queue.items {
		all = append(all, it.reply.TS)
	}
	for ts := range rs.B.Replies {
		all = append(all, ts)
	}
	for ts := range rs.B.Traces {
		all = append(all, ts)
	}
	all = slices.DeleteFunc(all, func(ts string) bool { return chat.CompareTS(ts, rs.B.Cursor) <= 0 })
	slices.SortFunc(all, chat.CompareTS)
	return slices.Compact(all)
}

// withdrawMissing withdraws what waits and is not in the thread any more. What lies before from was not read.
func (rs *replies) withdrawMissing(ctx context.Context, from string, there map[string]bool, newest string) {
	gone := func(ts string) bool {
		return !there[ts] && chat.CompareTS(ts, from) > 0 && chat.CompareTS(ts, newest) < 0
	}
	for _, it := range slices.Clone(rs.queue.items) {
		if gone(it.reply.TS) {
			rs.settleDeleted(ctx, it)
		}
	}
	for _, ts := range append(rs.entries.inState(binding.StateHeld), rs.entries.inState("")...) { // of an earlier run
		if gone(ts) {
			rs.entries.settle(ts, binding.OutcomeWithdrawn, "")
		}
	}
}

// requeueChosen has a reply typed that somebody chose; it is read from Slack when it is due.
func (rs *replies) requeueChosen(ts string) {
	rs.queue.put(&item{reply: rs.entries.lazyReply(ts), arrivedAt: time.Now(), approved: true, raw: rs.B.Replies[ts].Raw, logged: true})
}

// requeueApproved has typed what somebody chose in an earlier run: the cursor may have gone past it.
func (rs *replies) requeueApproved() {
	for ts, e := range rs.B.Replies {
		if e.State == binding.StateApproved || e.State == binding.StateHeld && e.Approved {
			rs.requeueChosen(ts)
		}
	}
}
