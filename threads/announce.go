package threads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

// AnnounceRequest asks for a session to be announced, and for its announcement to show what is true.
type AnnounceRequest struct {
	ID      string // Record.ID
	Ref     sessions.Ref
	Channel string
	Started time.Time // of the run that is announced: an announcement that somebody deleted stays away until a later one
	Post    chat.Post // Channel, Root, Nonce and Session are filled in here
}

// Announce posts the root of a session's thread and binds the thread, once: the intent is on disk before the post, and
// after a crash or an unknown outcome the message is looked for before another one is posted. For a session that is announced it
// brings the message up to date where it shows something else. One caller at a time.
func (m *Manager) Announce(ctx context.Context, a AnnounceRequest) error {
	if broken := m.unreadableBinding(a.ID); broken != nil {
		return broken
	}
	return m.announcer.announce(ctx, a)
}

// UpdateAnnouncement has the announcement of a session show something, if there is one.
func (m *Manager) UpdateAnnouncement(ctx context.Context, id string, p chat.Post) error {
	t := m.index.of(id)
	if t == nil {
		return nil
	}
	b, ok := t.Snapshot(ctx)
	switch {
	case !ok:
		return ctx.Err()
	case b.Root == "":
		return nil
	}
	return m.announcer.refresh(ctx, t, b, p)
}

// AnnouncementMatches reports whether the announcement of a session shows the post already.
func (m *Manager) AnnouncementMatches(ctx context.Context, id string, p chat.Post) bool {
	t := m.index.of(id)
	if t == nil {
		return false
	}
	b, ok := t.Snapshot(ctx)
	return ok && b.Root != "" && b.Announcement.Shown == outbox.Fingerprint(p)
}

// Unbind ends the thread of a session that was deleted: the thread is told, and what is written there afterwards reaches nobody.
func (m *Manager) Unbind(ctx context.Context, id string) error {
	t := m.index.of(id)
	if t == nil {
		return nil
	}
	err, ok := actor.Call(ctx, t.Actor, t.end)
	if !ok {
		return ctx.Err()
	}
	return err
}

// Sessions are the sessions that have a thread, bound or still to be bound, by id.
func (m *Manager) Sessions() map[string]sessions.Ref {
	all := map[string]sessions.Ref{}
	for _, t := range m.index.all() {
		all[t.SessionID] = t.Ref
	}
	return all
}

// IsBound reports whether the session's thread is there.
func (m *Manager) IsBound(id string) bool {
	t := m.index.of(id)
	return t != nil && t.ThreadID().Root != ""
}

// announcer posts the roots of threads, and keeps them current.
type announcer struct {
	*services
	*loops
	chat outbox.Chat
}

func (an *announcer) announce(ctx context.Context, a AnnounceRequest) error {
	a.Channel = an.index.moves.current(a.Channel)
	t := an.ensureThread(a)
	b, ok := t.Snapshot(ctx)
	switch {
	case !ok:
		return ctx.Err()
	case b.Root != "":
		return an.refresh(ctx, t, b, a.Post)
	case !b.Announcement.Dismissed.IsZero() && !a.Started.After(b.Announcement.Dismissed):
		return nil
	case b.Announcement.Tried:
		return an.reconcile(ctx, t, b, a)
	}
	return an.post(ctx, t, a)
}

// ensureThread returns the session's thread, and makes an unbound one when there is none.
func (an *announcer) ensureThread(a AnnounceRequest) *thread {
	if t := an.index.of(a.ID); t != nil {
		return t
	}
	t := newThread(an.services, an.loops, binding.Binding{ID: a.ID, Ref: a.Ref, Channel: a.Channel}, true)
	an.index.put(t)
	return t
}

// reconcile finds out whether an earlier try to post came through, and posts only when it did not.
func (an *announcer) reconcile(ctx context.Context, t *thread, b binding.Binding, a AnnounceRequest) error {
	c := an.current(t, b, chat.Post{Channel: b.Channel, Nonce: b.Announcement.Nonce})
	if err := c.Find(ctx); err != nil {
		return fmt.Errorf("announce %s: %w", a.Ref, err)
	}
	if c.State.TS != "" {
		return nil
	}
	return an.post(ctx, t, a)
}

// post posts the root and binds the thread to it.
func (an *announcer) post(ctx context.Context, t *thread, a AnnounceRequest) error {
	p := a.Post
	p.Channel, p.Root, p.Nonce, p.Session = a.Channel, "", rand.Text(), t.SessionID
	since := an.now()
	t.Call(ctx, func(context.Context) { t.relay.Begin(a.Started) })
	c := an.current(t, binding.Binding{Announcement: binding.Announcement{Since: since}}, p)
	if err := c.Ensure(ctx); err != nil {
		return fmt.Errorf("announce %s: %w", a.Ref, err)
	}
	return nil
}

// refresh edits an announcement that no longer shows what is true.
func (an *announcer) refresh(ctx context.Context, t *thread, b binding.Binding, p chat.Post) error {
	p.Channel, p.Root, p.Nonce, p.Session = b.Channel, "", b.Announcement.Nonce, t.SessionID
	err := an.current(t, b, p).Show(ctx)
	switch {
	case errors.Is(err, chat.ErrReplyGone):
		t.Call(ctx, t.dismiss)
		return nil
	case err != nil:
		return fmt.Errorf("update the announcement of %s: %w", b.Ref, err)
	}
	return nil
}

// current is the announcement as a message that is posted once. Only the intent to post must be stored.
func (an *announcer) current(t *thread, b binding.Binding, p chat.Post) *outbox.Current {
	return &outbox.Current{Chat: an.chat, Post: p, State: outbox.State{TS: b.Root, Since: b.Announcement.Since, MaybePosted: b.Announcement.Tried, Shown: b.Announcement.Shown},
		Store: func(ctx context.Context, s outbox.State) error {
			err, ok := actor.Call(ctx, t.Actor, func(ctx context.Context) error { return t.storeAnnouncement(ctx, p, s) })
			if !ok {
				return ctx.Err()
			}
			return err
		}}
}

// storeAnnouncement stores what is known of the announcement, and binds the thread once it is there.
func (t *thread) storeAnnouncement(ctx context.Context, p chat.Post, s outbox.State) error {
	switch {
	case s.TS != "" && t.B.Root == "" && t.B.Announcement.Nonce == p.Nonce:
		t.bindRoot(ctx, s.TS, s.Shown)
	case s.TS != "" && t.B.Root == s.TS:
		t.B.Announcement.Shown = s.Shown
		t.SaveBestEffort()
	case s.TS != "": // it was deleted meanwhile
	case s.MaybePosted:
		t.B.Channel = p.Channel
		t.B.Announcement = binding.Announcement{Nonce: p.Nonce, Since: s.Since, Tried: true}
		return t.Save()
	default:
		t.B.Announcement.Tried = false
		t.SaveBestEffort()
	}
	return nil
}

// pendingAnnouncement reports whether an announcement in that channel may have been posted without our knowing.
func (t *thread) pendingAnnouncement(ctx context.Context, channel string) (binding.Announcement, bool) {
	b, ok := t.Snapshot(ctx)
	return b.Announcement, ok && b.Root == "" && b.Announcement.Tried && b.Channel == channel
}
