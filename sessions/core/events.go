package core

import (
	"context"
	"log/slog"

	"the-loop/sessions"
)

// events writes to the event log.
type events struct{ sink sessions.Sink }

func (e *events) emit(ctx context.Context, name string, level slog.Level, r sessions.Record, fields map[string]any) {
	e.sink.Emit(ctx, sessions.Event{Name: sessions.EventName(r.Ref, name), Level: level, Ref: r.Ref, ID: r.ID, Fields: fields})
}
