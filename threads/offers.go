package threads

import (
	"context"
	"slices"
	"time"

	"the-loop/authz"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// offerOld takes the replies that wait and are too old to be typed unasked out of the queue, and offers them in one
// message. It reports whether there were any.
func (rs *replies) offerOld(ctx context.Context) bool {
	var old []string
	waiting := len(rs.queue.items)
	for _, it := range rs.expiredItems(ctx) {
		old = append(old, it.reply.TS)
		e := rs.B.Replies[it.reply.TS]
		e.State, e.At, e.User, e.Raw, e.Wanted = binding.StateOffered, rs.svc.now(), it.reply.Actor.User, it.raw, binding.MarkHeld
		rs.entries.setEntry(it.reply.TS, e)
	}
	if len(old) == 0 {
		return len(rs.queue.items) != waiting // some were dropped
	}
	offered := make(map[string]bool, len(old))
	for _, ts := range old {
		offered[ts] = true
	}
	rs.queue.items = slices.DeleteFunc(rs.queue.items, func(it *item) bool { return offered[it.reply.TS] })
	left := max(0, len(old)-maxOffered)
	for _, ts := range old[:left] {
		rs.entries.skip(ts)
	}
	rs.prompts.prompt(binding.ResendPrompt{Kind: binding.ResendPromptOffer, Replies: old[left:], Omitted: left})
	return true
}

// expiredItems lists the replies that wait and are too old. Of those whose author is not let in nothing is said: they are dropped, or
// while the list cannot be read wait on.
func (rs *replies) expiredItems(ctx context.Context) (old []*item) {
	for _, it := range slices.Clone(rs.queue.items) {
		if !rs.isTooOld(it) {
			continue
		}
		switch verdict, reason := rs.svc.Policy().Authorize(it.reply.Actor); {
		case verdict == authz.Allowed, verdict == authz.Denied && reason == authz.ReasonNoTeam:
			old = append(old, it)
		case verdict == authz.Denied:
			rs.deny(ctx, it.reply, reason)
		}
	}
	return old
}

// isTooOld reports whether a reply waited for too long to be typed unasked. A live one has no age but the time it waited,
// which no clock that is set changes; of one that was missed the age is by Slack's clock.
func (rs *replies) isTooOld(it *item) bool {
	if it.approved {
		return false
	}
	age := time.Since(it.arrivedAt)
	if !it.live {
		age = max(age, rs.svc.now().Sub(chat.TSTime(it.reply.TS)))
	}
	return age > rs.svc.Settings().MaxAge
}
