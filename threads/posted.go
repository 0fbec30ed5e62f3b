package threads

import (
	"context"
	"log/slog"

	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

// postObserver records what becomes of messages, and tells their threads.
type postObserver struct {
	sink  sessions.Sink
	index *threadIndex
}

// Posted implements [outbox.Observer].
func (p postObserver) Posted(ctx context.Context, msg outbox.Message, ts string) {
	fields := map[string]any{"channel": msg.Post.Channel, "thread": msg.Post.Root}
	if ts != "" { // of files Slack does not say it
		fields["ts"] = ts
	}
	p.sink.Emit(ctx, sessions.Event{Name: EventPosted, Level: slog.LevelInfo, ID: msg.Post.Session, Fields: fields})
	if t := p.index.of(msg.Post.Session); t != nil {
		t.Do(func(ctx context.Context) { t.onPosted(ctx, msg, ts) })
	}
}

// PostFailed implements [outbox.Observer].
func (p postObserver) PostFailed(ctx context.Context, post chat.Post, err error) {
	p.sink.Emit(ctx, sessions.Event{Name: EventPostFailed, Level: slog.LevelWarn, ID: post.Session,
		Fields: map[string]any{"channel": post.Channel, "thread": post.Root, "reason": err.Error()}})
}
