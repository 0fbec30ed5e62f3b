package threads

import (
	"context"
	"crypto/rand"

	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

// Notification is something that a session's thread is told.
type Notification struct {
	Text    string // with Slack's marks
	Buttons []chat.Button
	// Once names what is told: a thread is told that only once, also across restarts, as long as nothing with another
	// name was told in between. Empty: it is told each time.
	Once string
}

// Tell has a session's thread told something, through the outbox. It reports false when the session has no thread, or
// the thread was told already.
func (m *Manager) Notify(ctx context.Context, id string, what Notification) bool {
	t := m.threadOf(id)
	if t == nil {
		return false
	}
	told, ok := call(ctx, t, func(context.Context) bool { return t.notify(what) })
	return ok && told
}

// told tells the thread, unless there is none or it knows. The letter is in the outbox before the name is stored: after a
// crash in between it is looked for, and not posted twice.
func (t *thread) notify(what Notification) bool {
	if t.unbound || t.b.Root == "" || what.Once != "" && t.b.LastNotification == what.Once {
		return false
	}
	p := t.newPost(what.Text, rand.Text())
	if what.Once != "" {
		p.Nonce = t.sessionID + "." + what.Once
	}
	p.Buttons = what.Buttons
	t.m.outbox.Add(p, what.Once != "")
	if what.Once != "" {
		t.b.LastNotification = what.Once
		t.saveBestEffort()
	}
	return true
}

// WasNotified reports whether the session's thread was told that already, or is not there to be told.
func (m *Manager) WasNotified(ctx context.Context, id, once string) bool {
	t := m.threadOf(id)
	if t == nil {
		return true
	}
	b, ok := t.snapshot(ctx)
	return !ok || b.Root == "" || b.LastNotification == once
}

// SessionAt is the session whose thread has that root.
func (m *Manager) SessionAt(channel, root string) (id string, ref sessions.Ref, ok bool) {
	t := m.threadAt(channel, root)
	if t == nil {
		return "", "", false
	}
	return t.sessionID, t.ref, true
}

// ThreadOf is the thread of a session: its channel, and the ts of its root.
func (m *Manager) ThreadOf(id string) (channel, root string, ok bool) {
	t := m.threadOf(id)
	if t == nil {
		return "", "", false
	}
	at := t.threadID()
	return at.Channel, at.Root, at.Root != ""
}

// UpdateAnnouncement has the announcement of a session show something, if there is one.
func (m *Manager) UpdateAnnouncement(ctx context.Context, id string, p chat.Post) error {
	t := m.threadOf(id)
	if t == nil {
		return nil
	}
	b, ok := t.snapshot(ctx)
	switch {
	case !ok:
		return ctx.Err()
	case b.Root == "":
		return nil
	}
	return m.refreshAnnouncement(ctx, t, b, p)
}

// AnnouncementMatches reports whether the announcement of a session shows the post already.
func (m *Manager) AnnouncementMatches(ctx context.Context, id string, p chat.Post) bool {
	t := m.threadOf(id)
	if t == nil {
		return false
	}
	b, ok := t.snapshot(ctx)
	return ok && b.Root != "" && b.Announcement.Shown == outbox.Fingerprint(p)
}
