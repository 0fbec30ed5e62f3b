package threads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"the-loop/sessions"
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
// after a crash or a silence the message is looked for before another one is posted. For a session that is announced it
// brings the message up to date where it shows something else. One caller at a time.
func (m *Manager) Announce(ctx context.Context, a AnnounceRequest) error {
	a.Channel = m.channelMoves.current(a.Channel)
	t, err := m.ensureThread(a)
	if err != nil {
		return err
	}
	b, ok := t.snapshot(ctx)
	switch {
	case !ok:
		return ctx.Err()
	case b.Root != "":
		return m.refreshAnnouncement(ctx, t, b, a.Post)
	case !b.Announcement.Dismissed.IsZero() && !a.Started.After(b.Announcement.Dismissed):
		return nil
	case b.Announcement.Tried:
		return m.reconcileRoot(ctx, t, b, a)
	}
	return m.postRoot(ctx, t, a)
}

// ensureThread returns the session's thread, and makes an unbound one when there is none.
func (m *Manager) ensureThread(a AnnounceRequest) (*thread, error) {
	if t := m.threadOf(a.ID); t != nil {
		return t, nil
	}
	for _, broken := range m.unreadable {
		if broken.Path == m.store.path(a.ID) {
			return nil, broken
		}
	}
	t := newThread(m, Binding{ID: a.ID, Ref: a.Ref, Channel: a.Channel})
	t.transcriptSynced = true
	m.index(t)
	return t, nil
}

// reconcileRoot finds out whether an earlier try to post came through, and posts only when it did not.
func (m *Manager) reconcileRoot(ctx context.Context, t *thread, b Binding, a AnnounceRequest) error {
	ts, err := m.o.History.FindPost(ctx, b.Channel, "", b.Announcement.Nonce, b.Announcement.Since)
	switch {
	case err != nil:
		return fmt.Errorf("look for an earlier announcement of %s: %w", a.Ref, err)
	case ts == "":
		return m.postRoot(ctx, t, a)
	}
	t.call(ctx, func(ctx context.Context) { t.bindRoot(ctx, ts, "") })
	return nil
}

// postRoot stores the intent, posts, and binds the thread to what was posted.
func (m *Manager) postRoot(ctx context.Context, t *thread, a AnnounceRequest) error {
	p := a.Post
	p.Channel, p.Root, p.Nonce, p.Session = a.Channel, "", rand.Text(), t.sessionID
	err, ok := call(ctx, t, func(context.Context) error {
		t.b.Channel = a.Channel
		t.b.Announcement = Announcement{Nonce: p.Nonce, Since: m.now(), Tried: true}
		t.b.TranscriptOffset, t.b.TranscriptSince = "", time.Time{}
		if t.b.ReportOffset == "" {
			t.b.ReportsSince = transcriptStart(a.Started, m.o.Now())
		}
		if m.answerMode() != AnswersOff {
			t.b.TranscriptSince = transcriptStart(a.Started, m.o.Now())
		}
		return t.save()
	})
	if !ok {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("store the intent to announce %s: %w", a.Ref, err)
	}
	ts, err := m.postWithFallback(ctx, p)
	switch {
	case err == nil:
		t.call(ctx, func(ctx context.Context) { t.bindRoot(ctx, ts, outbox.Fingerprint(a.Post)) })
		return nil
	case !errors.Is(err, chat.ErrOutcomeUnknown) && ctx.Err() == nil:
		t.call(ctx, func(context.Context) { t.b.Announcement.Tried = false; t.saveBestEffort() })
	}
	return fmt.Errorf("announce %s: %w", a.Ref, err)
}

// postWithFallback posts, and where Slack refuses the message as it should be, a plain text in its place.
func (m *Manager) postWithFallback(ctx context.Context, p chat.Post) (ts string, err error) {
	if ts, err = m.o.Poster.Post(ctx, p); !errors.Is(err, chat.ErrRefused) {
		return ts, err
	}
	m.o.Log.Warn("Slack refuses an announcement; it is posted as a plain text", "session", p.Session, "err", err)
	p.Plain = true
	return m.o.Poster.Post(ctx, p)
}

// updateWithFallback is postWithFallback for a message that is there.
func (m *Manager) updateWithFallback(ctx context.Context, ts string, p chat.Post) error {
	err := m.o.Poster.Update(ctx, ts, p)
	if !errors.Is(err, chat.ErrRefused) {
		return err
	}
	m.o.Log.Warn("Slack refuses what an announcement should show; it is made a plain text", "session", p.Session, "err", err)
	p.Plain = true
	return m.o.Poster.Update(ctx, ts, p)
}

// refreshAnnouncement edits an announcement that no longer shows what is true.
func (m *Manager) refreshAnnouncement(ctx context.Context, t *thread, b Binding, p chat.Post) error {
	shows := outbox.Fingerprint(p)
	if b.Announcement.Shown == shows {
		return nil
	}
	p.Channel, p.Root, p.Nonce, p.Session = b.Channel, "", b.Announcement.Nonce, t.sessionID
	if b.Announcement.Shown != "" { // after a crash in between it may show the one or the other
		t.call(ctx, func(context.Context) { t.b.Announcement.Shown = ""; t.saveBestEffort() })
	}
	err := m.updateWithFallback(ctx, b.Root, p)
	switch {
	case errors.Is(err, chat.ErrReplyGone):
		t.call(ctx, t.dismiss)
		return nil
	case err != nil:
		return fmt.Errorf("update the announcement of %s: %w", b.Ref, err)
	}
	t.call(ctx, func(context.Context) { t.b.Announcement.Shown = shows; t.saveBestEffort() })
	return nil
}

// bindRoot makes the message ts the root of the thread.
func (t *thread) bindRoot(ctx context.Context, ts, shown string) {
	if t.b.Root == ts {
		return
	}
	t.b.Root, t.b.Cursor, t.b.Announcement.Shown, t.b.LastActive = ts, ts, shown, t.m.now()
	t.stale = shown == "" // found again after a crash: somebody may have replied meanwhile
	t.saveBestEffort()
	t.setThreadID(chat.ThreadID{Channel: t.b.Channel, Root: ts})
	t.m.index(t)
	t.m.o.Sink.Emit(ctx, sessions.Event{Name: sessions.EventName(t.ref, EventAnnounced), Level: slog.LevelInfo, ID: t.sessionID, Ref: t.ref,
		Fields: map[string]any{"channel": t.b.Channel, "thread": ts}})
	t.sendNext(ctx)
}

// pendingAnnouncement reports whether an announcement in that channel may have been posted without our knowing.
func (t *thread) pendingAnnouncement(ctx context.Context, channel string) (Announcement, bool) {
	b, ok := t.snapshot(ctx)
	return b.Announcement, ok && b.Root == "" && b.Announcement.Tried && b.Channel == channel
}

// dismiss unbinds the thread since somebody deleted its root. The binding stays, so that it is not announced again
// before the next start.
func (t *thread) dismiss(ctx context.Context) {
	t.m.unindexRoot(t)
	t.dropQueue(ctx)
	t.b = newThread(t.m, Binding{ID: t.sessionID, Ref: t.ref, Channel: t.b.Channel, ReportOffset: t.b.ReportOffset, Announcement: Announcement{Dismissed: t.m.now()}}).b
	t.saveBestEffort()
}

// dropQueue drops what waits: there is no thread any more to answer in.
func (t *thread) dropQueue(ctx context.Context) {
	for _, it := range t.queue.items {
		t.m.emitDropped(ctx, t.sessionID, t.ref, it.reply, ReasonUnmapped)
	}
	t.queue = queue{}
	if t.pauseTimer != nil {
		t.pauseTimer.Stop()
	}
	t.paused = false
	t.m.reader.cancel(t)
}

// Unbind ends the thread of a session that was deleted: the thread is told, and nothing that is written there goes
// anywhere.
func (m *Manager) Unbind(ctx context.Context, id string) error {
	t := m.threadOf(id)
	if t == nil {
		return nil
	}
	err, ok := call(ctx, t, func(ctx context.Context) error {
		t.closeTurnMessage()
		m.outbox.RemoveSession(t.sessionID)
		if t.b.Root != "" {
			t.postEnded()
		}
		m.unindex(t)
		t.dropQueue(ctx)
		t.unbound = true
		return m.store.remove(t.sessionID)
	})
	if !ok {
		return ctx.Err()
	}
	return err
}

// postEnded says that the session is gone.
func (t *thread) postEnded() {
	l := &outbox.Message{Post: t.newPost(endedText(t.ref)+" What is written here goes nowhere.", t.sessionID+".ended"), Since: t.m.o.Now(), Final: true}
	_ = t.m.outbox.Put(l) // it was logged, and nothing depends on it
}

func endedText(ref sessions.Ref) string {
	if ref.Kind() == sessions.KindWorkItem {
		return "This session was closed."
	}
	return "This session was deleted."
}

// Sessions are the sessions that have a thread, bound or still to be bound, by id.
func (m *Manager) Sessions() map[string]sessions.Ref {
	all := map[string]sessions.Ref{}
	for _, t := range m.threads() {
		all[t.sessionID] = t.ref
	}
	return all
}

// IsBound reports whether the session's thread is there.
func (m *Manager) IsBound(id string) bool {
	t := m.threadOf(id)
	return t != nil && t.threadID().Root != ""
}
