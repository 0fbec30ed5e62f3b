package threads

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// TicketWriter writes onto the tickets of work items.
type TicketWriter interface {
	// WriteTicket puts a reply that reached a work item's session onto its ticket.
	WriteTicket(ctx context.Context, m MirroredReply) error
}

// MirroredReply is a reply, as a ticket is to show it.
type MirroredReply struct {
	Ref     sessions.Ref
	Key     string // the same whenever the reply is written
	User    string // member id of who wrote it
	Speaker string // their name
	Text    string // as the agent got it
}

// Reasons of [EventMirrorSkip].
const (
	// ReasonNoWorkItem is that of a standing session: there is no ticket to mirror a reply onto, and the event log is the trail.
	ReasonNoWorkItem = "a standing session owns no work item"
	// ReasonNoWriter is that of a work item's session while nothing writes onto tickets.
	ReasonNoWriter = "no ticket writer is configured"
)

// mirrorTimeout bounds what writing one reply onto a ticket may take.
const mirrorTimeout = 30 * time.Second

// emitMirrorSkipped records why a reply is not written onto a ticket, where it is not.
func (t *thread) emitMirrorSkipped(ctx context.Context, reply map[string]any) {
	reason := ReasonNoWorkItem
	switch {
	case t.ref.Kind() == sessions.KindWorkItem && t.m.o.Tickets != nil:
		return
	case t.ref.Kind() == sessions.KindWorkItem:
		reason = ReasonNoWriter
	}
	fields := maps.Clone(reply)
	fields["reason"] = reason
	t.m.o.Sink.Emit(ctx, sessions.Event{Name: EventMirrorSkip, Level: slog.LevelInfo, ID: t.sessionID, Ref: t.ref, Fields: fields})
}

// mirror has a reply that reached the session written onto its ticket, beside everything else: a slow ticket holds up no
// reply. It is tried once, and the event log says what came of it.
func (t *thread) mirror(r chat.Reply, speaker, text string) {
	if t.m.o.Tickets == nil || t.ref.Kind() != sessions.KindWorkItem {
		return
	}
	t.m.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
		defer cancel()
		fields := map[string]any{"channel": r.Channel, "thread": r.Root, "ts": r.TS, "user": r.Actor.User}
		e := sessions.Event{Name: EventMirrored, Level: slog.LevelInfo, ID: t.sessionID, Ref: t.ref, Fields: fields}
		err := t.m.o.Tickets.WriteTicket(ctx, MirroredReply{Ref: t.ref, Key: t.sessionID + "." + r.TS, User: r.Actor.User, Speaker: speaker, Text: text})
		if err != nil {
			e.Name, e.Level, fields["reason"] = EventMirrorFail, slog.LevelWarn, err.Error()
		}
		t.m.o.Sink.Emit(context.WithoutCancel(ctx), e)
	})
}
