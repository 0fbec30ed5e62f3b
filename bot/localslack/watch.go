package localslack

import (
	"context"
	"slices"

	"the-loop/bot/localslack/slacktime"
)

// notify tells everybody who waits that something changed. The caller holds mu.
func (w *Base) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of anything in the workspace.
func (w *Base) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(channel); c != nil {
		return cloneAll(c.messages)
	}
	return nil
}

// MessagesSince returns what was posted in a channel after a timestamp, oldest first.
func (w *Places) MessagesSince(channel, ts string) []Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	after, _ := slacktime.Parse(ts)
	if c := w.channel(channel); c != nil {
		return cloneAll(messagesBetween(c.messages, after, 0, false))
	}
	return nil
}

// Message returns one message.
func (w *Places) Message(channel, ts string) (m Message, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(channel); c != nil && c.byTS[ts] != nil {
		return c.byTS[ts].clone(), true
	}
	return Message{}, false
}

// Thread returns a root and its replies, oldest first.
func (w *Places) Thread(channel, ts string) []Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.channel(channel)
	if c == nil || c.byTS[ts] == nil {
		return nil
	}
	return append([]Message{c.byTS[ts].clone()}, cloneAll(c.threads[ts])...)
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
			return slices.Contains(r.Users, w.botUser)
		}
	}
	return false
}

// Ephemerals returns what only this member was shown, oldest first.
func (w *Store) Ephemerals(user string) []Ephemeral {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.person(user); p != nil {
		user = p.ID
	}
	return slices.Clone(w.ephemerals[user])
}

// Views returns the modals that a member has open, the topmost last.
func (w *Store) Views(user string) []View {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.person(user); p != nil {
		user = p.ID
	}
	var out []View
	for _, id := range w.viewStacks[user] {
		out = append(out, w.views[id].View)
	}
	return out
}

// Home returns the Home tab that the app published to a member.
func (w *Store) Home(user string) (v View, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.person(user); p != nil {
		user = p.ID
	}
	if h := w.homes[user]; h != nil {
		return h.View, true
	}
	return View{}, false
}

// Requests returns the last InjectAPI calls, oldest first (Options.RequestLog of them).
func (w *Base) Requests() []Request { return w.RequestsSince(0) }

// RequestsSince returns the InjectAPI calls after a sequence number.
func (w *Base) RequestsSince(seq int) []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests.since(seq)
}

// RequestsOf returns the last calls of one method.
func (w *Base) RequestsOf(method string) []Request {
	return slices.DeleteFunc(w.Requests(), func(r Request) bool { return r.Method != method })
}

// Connections is how many sockets are open and said hello to.
func (w *Hub) Connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.countActive()
}

// Channel returns a conversation by id or name.
func (w *Places) Channel(ref string) (ch Channel, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(ref); c != nil {
		return c.public(), true
	}
	return Channel{}, false
}

// Channels returns all conversations, oldest first.
func (w *Places) Channels() []Channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Channel, 0, len(w.channelOrder))
	for _, id := range w.channelOrder {
		out = append(out, w.channels[id].public())
	}
	return out
}

// People returns everybody, the bot first.
func (w *Workspace) People() []*Person {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*Person, 0, len(w.peopleOrder))
	for _, id := range w.peopleOrder {
		out = append(out, &Person{Member: w.people[id], w: w})
	}
	return out
}

// Status returns what assistant.threads.setStatus shows in a thread.
func (w *Store) Status(channel, threadTS string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.statuses[channel+"/"+threadTS]
}

func (c *channelState) public() Channel {
	return Channel{ID: c.id, Name: c.name, Kind: c.kind, ExtShared: c.extShared, Archived: c.archived,
		Members: slices.Clone(c.members)}
}
