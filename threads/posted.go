package threads

import (
	"context"
	"log/slog"

	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
	"the-loop/threads/permission"
)

// chatService is the chat service as [outbox.Chat] needs it.
type chatService struct {
	chat.Poster
	chat.History
}

func (m *Manager) chat() outbox.Chat { return chatService{m.o.Poster, m.o.History} }

// postObserver records what becomes of messages, and tells their threads.
type postObserver struct{ m *Manager }

// Posted implements [outbox.Observer].
func (p postObserver) Posted(ctx context.Context, msg outbox.Message, ts string) {
	fields := map[string]any{"channel": msg.Post.Channel, "thread": msg.Post.Root}
	if ts != "" { // of files Slack does not say it
		fields["ts"] = ts
	}
	p.m.o.Sink.Emit(ctx, sessions.Event{Name: EventPosted, Level: slog.LevelInfo, ID: msg.Post.Session, Fields: fields})
	if t := p.m.threadOf(msg.Post.Session); t != nil {
		t.do(func(ctx context.Context) { t.onPosted(ctx, msg, ts) })
	}
}

// PostFailed implements [outbox.Observer].
func (p postObserver) PostFailed(ctx context.Context, post chat.Post, err error) {
	p.m.o.Sink.Emit(ctx, sessions.Event{Name: EventPostFailed, Level: slog.LevelWarn, ID: post.Session,
		Fields: map[string]any{"channel": post.Channel, "thread": post.Root, "reason": err.Error()}})
}

// onPosted handles that a message of ours was posted or edited in the thread.
func (t *thread) onPosted(ctx context.Context, msg outbox.Message, ts string) {
	nonce := msg.Post.Nonce
	if q, ok := t.b.ResendPrompts[nonce]; ok && q.TS == "" {
		q.TS = ts
		t.b.ResendPrompts[nonce] = q
		t.saveBestEffort()
	}
	t.applyPermission(ctx, nonce, permission.Event{Kind: permission.Posted, TS: ts}, true)
	if !msg.Edit {
		t.onTurnMessagePosted(nonce, ts)
	}
}
