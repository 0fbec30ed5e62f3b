package store

import (
	"context"
	"slices"

	"the-loop/bot/localslack/slacktime"
)

// Notify tells everybody who waits that something changed. The caller holds Mu.
func (w *Base) Notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of anything in the workspace.
func (w *Base) Changed() <-chan struct{} {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.changed
}

// WaitFor returns nil as soon as cond holds, and the context's error when that ends first. cond is asked again after
// each change.
func (w *Base) WaitFor(ctx context.Context, cond func() bool) error {
	for {
		changed := w.Changed()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// WaitForMessage returns the first message of a channel that matches, as soon as there is one.
func (w *Places) WaitForMessage(ctx context.Context, channel string, match func(Message) bool) (found Message, err error) {
	err = w.WaitFor(ctx, func() bool {
		for _, m := range w.Messages(channel) {
			if match(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}

// WaitForReply returns the first message below a root that matches, as soon as there is one.
func (w *Places) WaitForReply(ctx context.Context, channel, root string, match func(Message) bool) (found Message, err error) {
	err = w.WaitFor(ctx, func() bool {
		for _, m := range w.Thread(channel, root) {
			if m.TS != root && match(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}

// Messages returns everything in a channel, replies included, oldest first.
func (w *Places) Messages(channel string) []Message {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if c := w.FindChannel(channel); c != nil {
		return cloneAll(c.Messages)
	}
	return nil
}

// MessagesSince returns what was posted in a channel after a timestamp, oldest first.
func (w *Places) MessagesSince(channel, ts string) []Message {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	after, _ := slacktime.Parse(ts)
	if c := w.FindChannel(channel); c != nil {
		return cloneAll(MessagesBetween(c.Messages, after, 0, false))
	}
	return nil
}

// Message returns one message.
func (w *Places) Message(channel, ts string) (m Message, ok bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if c := w.FindChannel(channel); c != nil && c.ByTS[ts] != nil {
		return c.ByTS[ts].Clone(), true
	}
	return Message{}, false
}

// Thread returns a root and its replies, oldest first.
func (w *Places) Thread(channel, ts string) []Message {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	c := w.FindChannel(channel)
	if c == nil || c.ByTS[ts] == nil {
		return nil
	}
	return append([]Message{c.ByTS[ts].Clone()}, cloneAll(c.Threads[ts])...)
}

// Reactions returns the emoji on a message.
func (w *Places) Reactions(channel, ts string) []Reaction {
	m, _ := w.Message(channel, ts)
	return m.Reactions
}

// HasReaction says whether the bot has put that emoji on a message.
func (w *Places) HasReaction(channel, ts, name string) bool {
	for _, r := range w.Reactions(channel, ts) {
		if r.Name == name {
			return slices.Contains(r.Users, w.BotUser)
		}
	}
	return false
}

// Channel returns a conversation by id or name.
func (w *Places) Channel(ref string) (ch Channel, ok bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if c := w.FindChannel(ref); c != nil {
		return c.public(), true
	}
	return Channel{}, false
}

// Channels returns all conversations, oldest first.
func (w *Places) Channels() []Channel {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	out := make([]Channel, 0, len(w.ChannelOrder))
	for _, id := range w.ChannelOrder {
		out = append(out, w.ChannelsByID[id].public())
	}
	return out
}

func (c *ChannelState) public() Channel {
	return Channel{ID: c.ID, Name: c.Name, Kind: c.Kind, ExtShared: c.ExtShared, Archived: c.Archived,
		Members: slices.Clone(c.Members)}
}
