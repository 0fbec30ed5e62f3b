package threads

import (
	"context"
	"time"

	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/chat"
)

// Notification is a message for a session's thread.
type Notification struct {
	Text    string // with Slack's marks
	Buttons []chat.Button
	// Once names the notification: it is posted only once, also across restarts, as long as no other named one was posted in
	// between. Empty: it is posted each time.
	Once string
}

// Notify posts a notification in a session's thread, through the outbox. It reports false when the session has no thread, or the
// notification was posted already.
func (m *Manager) Notify(ctx context.Context, id string, n Notification) bool {
	t := m.index.of(id)
	if t == nil {
		return false
	}
	posted, ok := actor.Call(ctx, t.Actor, func(context.Context) bool { return t.notify(n) })
	return ok && posted
}

// WasNotified reports whether the named notification was posted in the session's thread already, or there is no thread.
func (m *Manager) WasNotified(ctx context.Context, id, once string) bool {
	t := m.index.of(id)
	if t == nil {
		return true
	}
	b, ok := t.Snapshot(ctx)
	return !ok || b.Root == "" || b.LastNotification == once
}

// SessionAt is the session whose thread has that root.
func (m *Manager) SessionAt(channel, root string) (id string, ref sessions.Ref, ok bool) {
	t := m.index.at(channel, root)
	if t == nil {
		return "", "", false
	}
	return t.SessionID, t.Ref, true
}

// ThreadOf is the thread of a session: its channel, and the ts of its root.
func (m *Manager) ThreadOf(id string) (channel, root string, ok bool) {
	t := m.index.of(id)
	if t == nil {
		return "", "", false
	}
	at := t.ThreadID()
	return at.Channel, at.Root, at.Root != ""
}

// AgentEnded says that a session's agent had ended by then, so that its thread does not show that it works.
func (m *Manager) AgentEnded(ctx context.Context, id string, at time.Time) {
	if t := m.index.of(id); t != nil {
		t.Call(ctx, func(context.Context) { t.turn.AgentEnded(at) })
	}
}

// Relay posts what the agent of a session said and reported since the last time: in order, each text once, also across
// crashes. While [Settings].Answers is off, and before there is a thread, nothing that it said is kept for later. It returns
// the files that change when there is more. Several calls for one session do not post twice.
func (m *Manager) Relay(ctx context.Context, id string) (watch []string, err error) {
	t := m.index.of(id)
	if t == nil {
		return nil, nil
	}
	return t.relay.Run(ctx)
}
