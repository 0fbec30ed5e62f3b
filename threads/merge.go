package threads

import (
	"context"
	"time"

	"the-loop/threads/chat"
)

// readLag is how long before a read a message must have been written to be in it for certain.
const readLag = 10 * time.Second

// How long a reply waits for a read: a live one, because another connection may have got events, and one that Slack sends again.
const (
	livePatience       = 1500 * time.Millisecond
	redeliveryPatience = 30 * time.Second
)

// requireRead has the thread read before anything of it is typed: events may have been missed.
func (rs *replies) requireRead() {
	if rs.B.Root == "" {
		return
	}
	rs.stale = true
	rs.readGeneration++
	rs.signals.readFreshDue(len(rs.queue.items) > 0)
}

// readFirst has the thread read before anything is typed, but waits no longer than the patience: with much written in many threads,
// Slack's rate would delay every reply, for what is rarely missing.
func (rs *replies) readFirst(patience time.Duration) {
	if rs.stale { // it is read for a better reason
		return
	}
	rs.requireRead()
	number := rs.readGeneration
	time.AfterFunc(patience, func() {
		rs.Do(func(ctx context.Context) {
			if rs.stale && rs.readGeneration == number {
				rs.stale = false
				rs.sendNext(ctx)
			}
		})
	})
}

// merge handles a complete read of the thread from a cursor.
func (rs *replies) merge(ctx context.Context, number int, from string, replies []chat.Reply, now time.Time) {
	if rs.Unbound || rs.B.Cursor != from {
		return
	}
	if number == rs.readGeneration {
		rs.stale = false
	}
	there := make(map[string]bool, len(replies))
	newest := from
	for _, r := range replies {
		there[r.TS] = true
		newest = chat.MaxTS(newest, r.TS)
	}
	if !now.IsZero() {
		newest = chat.MaxTS(newest, chat.TimeTS(now.Add(-readLag)))
	}
	rs.withdrawMissing(ctx, from, there, newest)
	for _, r := range replies {
		rs.enqueue(ctx, r, false)
	}
	rs.advanceCursor(replies, now)
	rs.sendNext(ctx)
}
