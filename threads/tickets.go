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

// emitMirrorSkipped records why a reply is not written onto a ticket, unless it is.
func (es *entries) emitMirrorSkipped(ctx context.Context, reply map[string]any) {
	reason := ReasonNoWorkItem
	switch {
	case es.Ref.Kind() == sessions.KindWorkItem && es.svc.Tickets != nil:
		return
	case es.Ref.Kind() == sessions.KindWorkItem:
		reason = ReasonNoWriter
	}
	fields := maps.Clone(reply)
	fields["reason"] = reason
	es.svc.Sink.Emit(ctx, sessions.Event{Name: EventMirrorSkip, Level: slog.LevelInfo, ID: es.SessionID, Ref: es.Ref, Fields: fields})
}

// ticketMirror writes the replies that reached a work item's session onto its ticket.
type ticketMirror struct{ *threadState }

// mirror writes one reply, in a goroutine: a slow ticket holds up no reply. It is tried once, and the event log says what came of it.
func (m *ticketMirror) mirror(r chat.Reply, speaker, text string) {
	if m.svc.Tickets == nil || m.Ref.Kind() != sessions.KindWorkItem {
		return
	}
	m.svc.Start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
		defer cancel()
		fields := map[string]any{"channel": r.Channel, "thread": r.Root, "ts": r.TS, "user": r.Actor.User}
		e := sessions.Event{Name: EventMirrored, Level: slog.LevelInfo, ID: m.SessionID, Ref: m.Ref, Fields: fields}
		err := m.svc.Tickets.WriteTicket(ctx, MirroredReply{Ref: m.Ref, Key: m.SessionID + "." + r.TS, User: r.Actor.User, Speaker: speaker, Text: text})
		if err != nil {
			e.Name, e.Level, fields["reason"] = EventMirrorFail, slog.LevelWarn, err.Error()
		}
		m.svc.Sink.Emit(context.WithoutCancel(ctx), e)
	})
}
