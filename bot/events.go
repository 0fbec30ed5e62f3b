package bot

import (
	"context"
	"log/slog"
	"time"

	"the-loop/bot/slack"
	"the-loop/bot/slack/socket"
	"the-loop/sessions"
	"the-loop/threads"
)

// Names of the events that this package emits.
const (
	EventStarted      = "bot.started"
	EventStopped      = "bot.stopped"
	EventConnected    = "bot.connected"
	EventDisconnected = "bot.disconnected"
)

// emitDropped returns a function that records messages which go no further.
func emitDropped(sink sessions.Sink) func(ctx context.Context, d slack.Dropped) {
	return func(ctx context.Context, d slack.Dropped) {
		fields := map[string]any{"reason": d.Reason, "channel": d.Channel, "thread": d.Thread, "ts": d.TS, "user": d.User}
		if d.Subtype != "" {
			fields["subtype"] = d.Subtype
		}
		sink.Emit(ctx, sessions.Event{Name: threads.EventDropped, Level: slog.LevelInfo, Fields: fields})
	}
}

// connectionRecorder records connections to Slack.
type connectionRecorder struct{ sink sessions.Sink }

// Connected implements [socket.Recorder].
func (e connectionRecorder) Connected(ctx context.Context, st socket.State) {
	e.sink.Emit(ctx, sessions.Event{Name: EventConnected, Level: slog.LevelInfo,
		Fields: map[string]any{"connections": st.Connections, "app": st.App, "reconnects": st.Reconnects}})
}

// Disconnected implements [socket.Recorder].
func (e connectionRecorder) Disconnected(ctx context.Context, reason string, after time.Duration) {
	e.sink.Emit(ctx, sessions.Event{Name: EventDisconnected, Level: slog.LevelInfo,
		Fields: map[string]any{"reason": reason, "seconds": int(after.Seconds())}})
}
