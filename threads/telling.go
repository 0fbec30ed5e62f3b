package threads

import (
	"context"
	"crypto/rand"

	"the-loop/sessions"
)

// Telling is something that a session's thread is told.
type Telling struct {
	Text    string // with Slack's marks
	Buttons []Button
	// Once names what is told: a thread is told that only once, also across restarts, as long as nothing with another
	// name was told in between. Empty: it is told each time.
	Once string
}

// Tell has a session's thread told something, through the outbox. It reports false when the session has no thread, or
// the thread was told already.
func (m *Manager) Tell(ctx context.Context, id string, what Telling) bool {
	t := m.of(id)
	if t == nil {
		return false
	}
	told, ok := ask(ctx, t, func(context.Context) bool { return t.told(what) })
	return ok && told
}

// told tells the thread, unless there is none or it knows. The letter is in the outbox before the name is stored: after a
// crash in between it is looked for, and not posted twice.
func (t *thread) told(what Telling) bool {
	if t.gone || t.b.Root == "" || what.Once != "" && t.b.Told == what.Once {
		return false
	}
	p := t.message(what.Text, rand.Text())
	if what.Once != "" {
		p.Nonce = t.id + "." + what.Once
	}
	p.Buttons = what.Buttons
	t.m.outbox.add(p, what.Once != "")
	if what.Once != "" {
		t.b.Told = what.Once
		t.keep()
	}
	return true
}

// Knows reports whether the session's thread was told that already, or is not there to be told.
func (m *Manager) Knows(ctx context.Context, id, once string) bool {
	t := m.of(id)
	if t == nil {
		return true
	}
	b, ok := t.snapshot(ctx)
	return !ok || b.Root == "" || b.Told == once
}

// At is the session whose thread has that root.
func (m *Manager) At(channel, root string) (id string, ref sessions.Ref, ok bool) {
	t := m.at(channel, root)
	if t == nil {
		return "", "", false
	}
	return t.id, t.ref, true
}

// Where is the thread of a session: its channel, and the ts of its root.
func (m *Manager) Where(id string) (channel, root string, ok bool) {
	t := m.of(id)
	if t == nil {
		return "", "", false
	}
	at := t.place()
	return at.channel, at.root, at.root != ""
}

// Show has the announcement of a session show something, if there is one.
func (m *Manager) Show(ctx context.Context, id string, p Post) error {
	t := m.of(id)
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
	return m.refresh(ctx, t, b, p)
}

// Shows reports whether the announcement of a session shows the post already.
func (m *Manager) Shows(ctx context.Context, id string, p Post) bool {
	t := m.of(id)
	if t == nil {
		return false
	}
	b, ok := t.snapshot(ctx)
	return ok && b.Root != "" && b.Announcement.Shown == fingerprint(p)
}
