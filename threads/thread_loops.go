package threads

import (
	"context"
	"time"

	"the-loop/threads/actor"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/receipts"
)

// PendingReactions implements [receipts.Thread].
func (t *thread) PendingReactions(ctx context.Context, now time.Time, failed map[string]time.Time) receipts.Changes {
	l, _ := actor.Call(ctx, t.Actor, func(context.Context) receipts.Changes { return t.entries.pendingReactions(now, failed) })
	for _, c := range []*receipts.Change{l.Add, l.Remove} {
		if c != nil {
			c.T = t
		}
	}
	return l
}

// OnReactionChanged implements [receipts.Thread].
func (t *thread) OnReactionChanged(ctx context.Context, c receipts.Change) {
	t.Call(ctx, func(context.Context) { t.entries.onReactionChanged(c) })
}

// GiveUpReaction implements [receipts.Thread].
func (t *thread) GiveUpReaction(ctx context.Context, c receipts.Change, err error) {
	t.Call(ctx, func(context.Context) { t.entries.giveUpReaction(c, err) })
}

// ReadPosition implements [catchup.Thread].
func (t *thread) ReadPosition(ctx context.Context) (from binding.Binding, number int, ok bool) {
	type position struct {
		b      binding.Binding
		number int
	}
	p, ok := actor.Call(ctx, t.Actor, func(context.Context) position { return position{t.B.Clone(), t.replies.readGeneration} })
	return p.b, p.number, ok
}

// ApplyRead implements [catchup.Thread].
func (t *thread) ApplyRead(number int, from string, replies []chat.Reply, now time.Time) {
	t.Do(func(ctx context.Context) { t.replies.merge(ctx, number, from, replies, now) })
}

// HandleThreadGone implements [catchup.Thread].
func (t *thread) HandleThreadGone() { t.Do(t.dismiss) }
