package threads

import (
	"slices"

	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// A binding is written at every step of a reply, so what it holds is bounded, whatever people do.
const (
	maxFullEntries    = 16  // settled replies that are kept with all that is known of them
	maxUnshown        = 40  // settled replies whose receipt is still to be shown
	maxReceived       = 100 // replies that wait and show that they were received
	maxOpenReplies    = 50  // replies in open questions
	maxOffered        = 50  // replies in one offer
	maxDecidedPrompts = 32  // questions that were decided
)

// trim reduces what is done to traces, and has the thread read when there are so many that the cursor should move on.
func (es *entries) trim() {
	es.giveUpReceipts()
	var done []string
	for ts, e := range es.B.Replies {
		switch {
		case !e.IsComplete() || e.Notification != "":
		case chat.CompareTS(ts, es.B.Cursor) <= 0:
			delete(es.B.Replies, ts)
		default:
			done = append(done, ts)
		}
	}
	if len(done) <= maxFullEntries {
		return
	}
	slices.SortFunc(done, chat.CompareTS)
	for _, ts := range done[:len(done)-maxFullEntries] {
		e := es.B.Replies[ts]
		es.B.Traces[ts] = binding.Trace{Typed: e.WasDelivered(), Edited: binding.Newer(e.Edited, e.Changed)}
		delete(es.B.Replies, ts)
	}
	if n := len(es.B.Traces); n >= maxTraces && n >= es.readAtTraces {
		es.readAtTraces = n + maxTraces/2
		es.signals.readDue(false)
	}
}

// giveUpReceipts leaves the oldest receipts as they are where people write faster than Slack takes reactions.
func (es *entries) giveUpReceipts() {
	var unshown []string
	for ts, e := range es.B.Replies {
		if e.State == binding.StateSettled && !e.IsComplete() {
			unshown = append(unshown, ts)
		}
	}
	if len(unshown) <= maxUnshown {
		return
	}
	slices.SortFunc(unshown, chat.CompareTS)
	for _, ts := range unshown[:len(unshown)-maxUnshown] {
		e := es.B.Replies[ts]
		e.Wanted, e.Shown = "", nil
		es.B.Replies[ts] = e
	}
}

// canShowReceived reports whether one more reply that waits may show that it was received.
func (es *entries) canShowReceived() bool { return len(es.inState("")) < maxReceived }
