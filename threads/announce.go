package threads

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// Announcing asks for a session to be announced, and for its announcement to show what is true.
type Announcing struct {
	ID      string // Record.ID
	Ref     sessions.Ref
	Channel string
	Started time.Time // of the run that is announced: an announcement that somebody deleted stays away until a later one
	Post    Post      // Channel, Root, Nonce and Session are filled in here
}

// Announce posts the root of a session's thread and binds the thread, once: the intent is on disk before the post, and
// after a crash or a silence the message is looked for before another one is posted. For a session that is announced it
// brings the message up to date where it shows something else. One caller at a time.
func (m *Manager) Announce(ctx context.Context, a Announcing) error {
	a.Channel = m.moves.now(a.Channel)
	t, err := m.thread(a)
	if err != nil {
		return err
	}
	b, ok := t.snapshot(ctx)
	switch {
	case !ok:
		return ctx.Err()
	case b.Root != "":
		return m.refresh(ctx, t, b, a.Post)
	case !b.Announcement.Dismissed.IsZero() && !a.Started.After(b.Announcement.Dismissed):
		return nil
	case b.Announcement.Tried:
		return m.settleRoot(ctx, t, b, a)
	}
	return m.postRoot(ctx, t, a)
}

// thread returns the session's thread, and makes an unbound one when there is none.
func (m *Manager) thread(a Announcing) (*thread, error) {
	if t := m.of(a.ID); t != nil {
		return t, nil
	}
	for _, broken := range m.broken {
		if broken.Path == m.store.path(a.ID) {
			return nil, broken
		}
	}
	t := newThread(m, Binding{ID: a.ID, Ref: a.Ref, Channel: a.Channel})
	t.level = true
	m.index(t)
	return t, nil
}

// settleRoot finds out whether an earlier try to post came through, and posts only when it did not.
func (m *Manager) settleRoot(ctx context.Context, t *thread, b Binding, a Announcing) error {
	ts, err := m.o.History.FindPost(ctx, b.Channel, "", b.Announcement.Nonce, b.Announcement.Since)
	switch {
	case err != nil:
		return fmt.Errorf("look for an earlier announcement of %s: %w", a.Ref, err)
	case ts == "":
		return m.postRoot(ctx, t, a)
	}
	t.call(ctx, func(ctx context.Context) { t.bound(ctx, ts, "") })
	return nil
}

// postRoot stores the intent, posts, and binds the thread to what was posted.
func (m *Manager) postRoot(ctx context.Context, t *thread, a Announcing) error {
	p := a.Post
	p.Channel, p.Root, p.Nonce, p.Session = a.Channel, "", rand.Text(), t.id
	err, ok := ask(ctx, t, func(context.Context) error {
		t.b.Channel = a.Channel
		t.b.Announcement = Announcement{Nonce: p.Nonce, Since: m.now(), Tried: true}
		t.b.Heard, t.b.HeardSince = "", time.Time{}
		if t.b.Noted == "" {
			t.b.NotedSince = hearFrom(a.Started, m.o.Now())
		}
		if m.answers() != AnswersOff {
			t.b.HeardSince = hearFrom(a.Started, m.o.Now())
		}
		return t.save()
	})
	if !ok {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("store the intent to announce %s: %w", a.Ref, err)
	}
	ts, err := m.postRefusable(ctx, p)
	switch {
	case err == nil:
		t.call(ctx, func(ctx context.Context) { t.bound(ctx, ts, fingerprint(a.Post)) })
		return nil
	case !errors.Is(err, ErrUnknown) && ctx.Err() == nil:
		t.call(ctx, func(context.Context) { t.b.Announcement.Tried = false; t.keep() })
	}
	return fmt.Errorf("announce %s: %w", a.Ref, err)
}

// postRefusable posts, and where Slack refuses the message as it should be, a plain text in its place.
func (m *Manager) postRefusable(ctx context.Context, p Post) (ts string, err error) {
	if ts, err = m.o.Speaker.Post(ctx, p); !errors.Is(err, ErrRefused) {
		return ts, err
	}
	m.o.Log.Warn("Slack refuses an announcement; it is posted as a plain text", "session", p.Session, "err", err)
	p.Plain = true
	return m.o.Speaker.Post(ctx, p)
}

// updateRefusable is postRefusable for a message that is there.
func (m *Manager) updateRefusable(ctx context.Context, ts string, p Post) error {
	err := m.o.Speaker.Update(ctx, ts, p)
	if !errors.Is(err, ErrRefused) {
		return err
	}
	m.o.Log.Warn("Slack refuses what an announcement should show; it is made a plain text", "session", p.Session, "err", err)
	p.Plain = true
	return m.o.Speaker.Update(ctx, ts, p)
}

// refresh edits an announcement that no longer shows what is true.
func (m *Manager) refresh(ctx context.Context, t *thread, b Binding, p Post) error {
	shows := fingerprint(p)
	if b.Announcement.Shown == shows {
		return nil
	}
	p.Channel, p.Root, p.Nonce, p.Session = b.Channel, "", b.Announcement.Nonce, t.id
	if b.Announcement.Shown != "" { // after a crash in between it may show the one or the other
		t.call(ctx, func(context.Context) { t.b.Announcement.Shown = ""; t.keep() })
	}
	err := m.updateRefusable(ctx, b.Root, p)
	switch {
	case errors.Is(err, ErrReplyGone):
		t.call(ctx, t.dismiss)
		return nil
	case err != nil:
		return fmt.Errorf("update the announcement of %s: %w", b.Ref, err)
	}
	t.call(ctx, func(context.Context) { t.b.Announcement.Shown = shows; t.keep() })
	return nil
}

// bound makes the message ts the root of the thread.
func (t *thread) bound(ctx context.Context, ts, shown string) {
	if t.b.Root == ts {
		return
	}
	t.b.Root, t.b.Cursor, t.b.Announcement.Shown, t.b.Active = ts, ts, shown, t.m.now()
	t.stale = shown == "" // found again after a crash: somebody may have replied meanwhile
	t.keep()
	t.moved(place{t.b.Channel, ts})
	t.m.index(t)
	t.m.o.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(t.ref, EventAnnounced), Level: slog.LevelInfo, ID: t.id, Ref: t.ref,
		Fields: map[string]any{"channel": t.b.Channel, "thread": ts}})
	t.next(ctx)
}

// intended reports whether an announcement in that channel may have been posted without our knowing.
func (t *thread) intended(ctx context.Context, channel string) (Announcement, bool) {
	b, ok := t.snapshot(ctx)
	return b.Announcement, ok && b.Root == "" && b.Announcement.Tried && b.Channel == channel
}

// dismiss unbinds the thread since somebody deleted its root. The binding stays, so that it is not announced again
// before the next start.
func (t *thread) dismiss(ctx context.Context) {
	t.m.unlink(t)
	t.abandon(ctx)
	t.b = newThread(t.m, Binding{ID: t.id, Ref: t.ref, Channel: t.b.Channel, Noted: t.b.Noted, Announcement: Announcement{Dismissed: t.m.now()}}).b
	t.keep()
}

// abandon drops what waits: there is no thread any more to answer in.
func (t *thread) abandon(ctx context.Context) {
	for _, it := range t.queue.items {
		t.m.dropped(ctx, t.id, t.ref, it.reply, ReasonUnmapped)
	}
	t.queue = queue{}
	if t.pause != nil {
		t.pause.Stop()
	}
	t.paused = false
	t.m.reader.forget(t)
}

// Unbind ends the thread of a session that was deleted: the thread is told, and nothing that is written there goes
// anywhere.
func (m *Manager) Unbind(ctx context.Context, id string) error {
	t := m.of(id)
	if t == nil {
		return nil
	}
	err, ok := ask(ctx, t, func(ctx context.Context) error {
		t.workAbandoned()
		m.outbox.end(t.id)
		if t.b.Root != "" {
			t.farewell()
		}
		m.forget(t)
		t.abandon(ctx)
		t.gone = true
		return m.store.remove(t.id)
	})
	if !ok {
		return ctx.Err()
	}
	return err
}

// farewell says that the session is gone.
func (t *thread) farewell() {
	l := &letter{Post: t.message(ended(t.ref)+" What is written here goes nowhere.", t.id+".ended"), Since: t.m.o.Now(), Last: true}
	_ = t.m.outbox.put(l) // it was logged, and nothing depends on it
}

func ended(ref sessions.Ref) string {
	if ref.Kind() == sessions.KindWorkItem {
		return "This session was closed."
	}
	return "This session was deleted."
}

// Sessions are the sessions that have a thread, bound or still to be bound, by id.
func (m *Manager) Sessions() map[string]sessions.Ref {
	all := map[string]sessions.Ref{}
	for _, t := range m.threads() {
		all[t.id] = t.ref
	}
	return all
}

// Bound reports whether the session's thread is there.
func (m *Manager) Bound(id string) bool {
	t := m.of(id)
	return t != nil && t.place().root != ""
}

// fingerprint is a short sum of what a message shows.
func fingerprint(p Post) string {
	p.Channel, p.Root, p.Nonce, p.Session = "", "", "", ""
	data, _ := json.Marshal(p) // a struct of strings always encodes
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
