package threads

import (
	"context"
	"fmt"
	"slices"
	"time"

	"the-loop/authz"
	"the-loop/threads/chat"
)

// How a question is settled that nobody decided.
const (
	choiceLapsed    = "lapsed"    // too many later ones are open
	choiceWithdrawn = "withdrawn" // its reply was deleted
)

// offerOld takes the replies that wait and are too old to be typed unasked out of the queue, and offers them in one
// message. It reports whether there were any.
func (t *thread) offerOld(ctx context.Context) bool {
	var old []string
	waiting := len(t.queue.items)
	for _, it := range t.expiredItems(ctx) {
		old = append(old, it.reply.TS)
		e := t.b.Replies[it.reply.TS]
		e.State, e.At, e.User, e.Raw, e.Wanted = StateOffered, t.m.now(), it.reply.Actor.User, it.raw, MarkHeld
		t.setEntry(it.reply.TS, e)
	}
	if len(old) == 0 {
		return len(t.queue.items) != waiting // some were dropped
	}
	offered := make(map[string]bool, len(old))
	for _, ts := range old {
		offered[ts] = true
	}
	t.queue.items = slices.DeleteFunc(t.queue.items, func(it *item) bool { return offered[it.reply.TS] })
	left := max(0, len(old)-maxOffered)
	for _, ts := range old[:left] {
		t.skip(ts)
	}
	t.prompt(ResendPrompt{Kind: ResendPromptOffer, Replies: old[left:], Omitted: left})
	return true
}

// old lists the replies that wait and are too old. Of those whose author is not let in nothing is said: they are dropped, or
// while the list cannot be read wait on.
func (t *thread) expiredItems(ctx context.Context) (old []*item) {
	for _, it := range slices.Clone(t.queue.items) {
		if !t.isTooOld(it) {
			continue
		}
		switch verdict, reason := t.m.o.Policy().Authorize(it.reply.Actor); {
		case verdict == authz.Allowed, verdict == authz.Denied && reason == authz.ReasonNoTeam:
			old = append(old, it)
		case verdict == authz.Denied:
			t.deny(ctx, it.reply, reason)
		}
	}
	return old
}

// isTooOld reports whether a reply waited for too long to be typed unasked. A live one has no age but the time it waited,
// which no clock that is set changes; of one that was missed the age is by Slack's clock.
func (t *thread) isTooOld(it *item) bool {
	if it.approved {
		return false
	}
	age := time.Since(it.arrivedAt)
	if !it.live {
		age = max(age, t.m.now().Sub(chat.TSTime(it.reply.TS)))
	}
	return age > t.m.o.Settings().MaxAge
}

// skip settles a reply that is not typed.
func (t *thread) skip(ts string) {
	e := t.b.Replies[ts]
	e.State, e.Outcome, e.At, e.Wanted = StateSettled, OutcomeSkipped, t.m.now(), ""
	t.setEntry(ts, e)
}

// omittedText says what an offer could not keep.
func omittedText(q ResendPrompt) string {
	if q.Omitted == 0 {
		return ""
	}
	return fmt.Sprintf("\n%d more from before were not typed either, and are too many to be kept: what is still wanted has to be written again.", q.Omitted)
}

// expirePrompts settles the oldest questions where too many replies are in open ones, and forgets the oldest of the decided ones.
func (t *thread) expirePrompts() {
	open, decided := t.listPrompts()
	n := 0
	for _, name := range open {
		n += len(t.b.ResendPrompts[name].Replies)
	}
	for ; n > maxOpenReplies && len(open) > 1; open = open[1:] {
		q := t.b.ResendPrompts[open[0]]
		n -= len(q.Replies)
		for _, ts := range q.Replies {
			if e := t.b.Replies[ts]; e.State == StateDoubt || e.State == StateOffered {
				t.skip(ts)
			}
		}
		t.closePrompt(open[0], choiceLapsed)
	}
	for _, name := range decided[:max(0, len(decided)-maxDecidedPrompts)] {
		delete(t.b.ResendPrompts, name)
	}
}

// asked lists the questions, the oldest first: those that are open, and those that are decided.
func (t *thread) listPrompts() (open, decided []string) {
	for name, q := range t.b.ResendPrompts {
		if q.Choice == "" {
			open = append(open, name)
		} else {
			decided = append(decided, name)
		}
	}
	slices.SortFunc(open, func(a, b string) int {
		return chat.CompareTS(t.b.ResendPrompts[a].firstReply(), t.b.ResendPrompts[b].firstReply())
	})
	slices.SortFunc(decided, func(a, b string) int { return t.b.ResendPrompts[a].At.Compare(t.b.ResendPrompts[b].At) })
	return open, decided
}

// first is the oldest reply that a question is about.
func (q ResendPrompt) firstReply() string {
	if len(q.Replies) == 0 {
		return ""
	}
	return q.Replies[0]
}

// close settles a question without anybody's choice, and has its message say so.
func (t *thread) closePrompt(name, choice string) {
	q := t.b.ResendPrompts[name]
	q.Choice, q.At = choice, t.m.now()
	t.b.ResendPrompts[name] = q
	t.m.outbox.Update(t.promptPost(name, q), q.TS)
}

// closeEmptyPrompts settles the questions about a reply that was deleted, where they are about no other.
func (t *thread) closeEmptyPrompts(ts string) {
	for name, q := range t.b.ResendPrompts {
		if q.Choice != "" || !slices.Contains(q.Replies, ts) {
			continue
		}
		if !slices.ContainsFunc(q.Replies, func(ts string) bool {
			s := t.b.Replies[ts].State
			return s == StateDoubt || s == StateOffered
		}) {
			t.closePrompt(name, choiceWithdrawn)
			t.saveBestEffort()
		}
	}
}
