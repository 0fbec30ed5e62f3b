package bot

import (
	"context"
	"encoding/json"
	"log/slog"

	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// ThreadHandler is told what happens in threads. None of its methods may block.
type ThreadHandler interface {
	ReplyHandler
	CatchUpRequester
	// ThreadDeleted says that a message which may be the root of a thread was deleted.
	ThreadDeleted(channel, root string)
}

// ReplyHandler takes what people write in threads.
type ReplyHandler interface {
	HandleReply(r chat.Reply)
	// ReplyEdited says that the text of a reply is another one now.
	ReplyEdited(r chat.Reply)
	// ReplyDeleted says that a reply was deleted.
	ReplyDeleted(channel, root, ts string)
}

// CatchUpRequester has threads read again, because something may have been missed.
type CatchUpRequester interface {
	Connected(alone bool) // events flow (again); alone: Slack counts no other connection that some of them may go to
	CatchUpAll()
	CatchUp(channel, root string)
}

// Notice is something that happened to the app or to a channel, and that is no message.
type ChannelEvent struct {
	Kind    ChannelEventKind
	Channel string // the channel it happened to; empty for the app
	NewID   string // with ChannelIDChanged: the channel's new id
	TS      string // with ChannelIDChanged: when it got it
}

// ChannelEventKind says what happened.
type ChannelEventKind string

// What a [Notice] can be.
const (
	ChannelArchived       ChannelEventKind = "archived"    // nothing can be posted there any more
	ChannelLeft           ChannelEventKind = "left"        // the bot is no longer in the channel
	ChannelJoined         ChannelEventKind = "joined"      // the bot is in the channel now
	ChannelIDChanged      ChannelEventKind = "channel_id"  // the channel has another id now
	ChannelUnarchived     ChannelEventKind = "unarchived"  // it can be posted there again
	ChannelSharingChanged ChannelEventKind = "sharing"     // another organisation came to the channel, or left it
	ChannelIsShared       ChannelEventKind = "shared"      // something happened in a channel that is shared with another organisation
	ChannelMemberJoined   ChannelEventKind = "member"      // somebody is in the channel now
	ChannelRenamed        ChannelEventKind = "renamed"     // the channel is called something else now
	TokenRevoked          ChannelEventKind = "revoked"     // the bot token is not valid any more
	AppUninstalled        ChannelEventKind = "uninstalled" // the app was taken out of the workspace
)

// Envelope is what a Socket Mode connection carries, undecoded.
type Envelope struct {
	Type    string // events_api, slash_commands, interactive
	ID      string
	Payload json.RawMessage
	Retry   int // how often it was sent before
	// AckWith sends the ack with a payload. It is set when the ack is left to whoever handles the envelope.
	AckWith func(payload any)
}

// Envelope types.
const (
	envelopeEvent       = "events_api"
	envelopeCommand     = "slash_commands"
	envelopeInteractive = "interactive"
)

// EventRouterOptions are what an [Inbound] is made of. Client, Threads and Sink are required.
type EventRouterOptions struct {
	Client         *Client
	Threads        ThreadHandler
	Sink           sessions.Sink
	Interactions   *InteractionRouter // nil: presses and commands go nowhere
	OnChannelEvent func(ChannelEvent) // must not block; nil: notices go nowhere
	Log            *slog.Logger       // nil: silent
}

// Inbound routes envelopes. It is called from one goroutine, so what happens in a channel keeps its order.
type EventRouter struct {
	o EventRouterOptions
}

// NewEventRouter makes a router.
func NewEventRouter(o EventRouterOptions) *EventRouter {
	o.Log = loggerOrDiscard(o.Log)
	if o.OnChannelEvent == nil {
		o.OnChannelEvent = func(ChannelEvent) {}
	}
	return &EventRouter{o: o}
}

func loggerOrDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Route handles one envelope. It does nothing slow: presses and commands run beside it.
func (in *EventRouter) Route(ctx context.Context, e Envelope) {
	switch e.Type {
	case envelopeEvent:
		in.routeEvent(ctx, e)
	case envelopeCommand, envelopeInteractive:
		if in.o.Interactions != nil {
			in.o.Interactions.handle(ctx, e)
		} else if e.AckWith != nil {
			e.AckWith(nil)
		}
	default:
		in.handleUnreadable(ctx, e)
	}
}

// handleUnreadable is an envelope of which nothing can be made: something in it may have been a reply.
func (in *EventRouter) handleUnreadable(ctx context.Context, e Envelope) {
	in.o.Log.Warn("cannot read what Slack sent; reading all threads again", "type", e.Type, "bytes", len(e.Payload))
	in.emitDropped(ctx, message{}, dropUnreadable)
	in.o.Threads.CatchUpAll()
}

func (in *EventRouter) routeEvent(ctx context.Context, e Envelope) {
	payload := parseObject(e.Payload)
	if payload.str("type") == "app_rate_limited" {
		in.o.Log.Warn("Slack held events back because there were too many; reading all threads again")
		in.o.Threads.CatchUpAll()
		return
	}
	event := payload.obj("event")
	if event.str("type") == "" {
		in.handleUnreadable(ctx, e)
		return
	}
	in.observeClock(payload, event)
	handle, known := eventHandlers[event.str("type")]
	if !known {
		in.o.Log.Debug("ignored an event", "type", event.str("type"))
		return
	}
	if channel := eventChannel(event); payload.isTrue("is_ext_shared_channel") && channel != "" && event.str("type") != "channel_unshared" {
		in.o.OnChannelEvent(ChannelEvent{Kind: ChannelIsShared, Channel: channel})
	}
	if e.Retry > 0 {
		event[retriedKey] = json.RawMessage("true")
	}
	handle(in, ctx, event)
}

// channelOf is where an event happened: some name the channel, others describe it.
func eventChannel(event rawObject) string {
	return firstNonEmpty(event.str("channel"), event.obj("channel").str("id"))
}

// observeClock learns from an event what time it is at Slack at least.
func (in *EventRouter) observeClock(payload, event rawObject) {
	for _, at := range []string{payload.str("event_time"), event.str("event_ts")} {
		if at != "" {
			in.o.Client.clock.ObserveEvent(chat.TSTime(at))
		}
	}
}

// retriedKey marks, in an event, that its envelope was sent before.
const retriedKey = "the-loop.retried"

// eventHandlers are the handlers of inner events by type. What is not here is ignored.
var eventHandlers = map[string]func(in *EventRouter, ctx context.Context, event rawObject){
	"message":               (*EventRouter).routeMessage,
	"app_mention":           func(*EventRouter, context.Context, rawObject) {}, // comes as a message too
	"channel_archive":       (*EventRouter).onArchived,
	"group_archive":         (*EventRouter).onArchived,
	"channel_unarchive":     channelEventHandler(ChannelUnarchived),
	"group_unarchive":       channelEventHandler(ChannelUnarchived),
	"channel_shared":        channelEventHandler(ChannelSharingChanged),
	"channel_unshared":      channelEventHandler(ChannelSharingChanged),
	"channel_rename":        channelEventHandler(ChannelRenamed),
	"group_rename":          channelEventHandler(ChannelRenamed),
	"member_left_channel":   (*EventRouter).onMemberLeft,
	"member_joined_channel": (*EventRouter).onMemberJoined,
	"channel_id_changed":    (*EventRouter).onChannelIDChanged,
	"tokens_revoked":        (*EventRouter).onTokensRevoked,
	"app_home_opened": func(in *EventRouter, ctx context.Context, event rawObject) {
		if in.o.Interactions != nil {
			in.o.Interactions.handleHomeOpened(ctx, event)
		}
	},
	"app_uninstalled": func(in *EventRouter, _ context.Context, _ rawObject) {
		in.o.OnChannelEvent(ChannelEvent{Kind: AppUninstalled})
	},
}

func (in *EventRouter) onArchived(_ context.Context, event rawObject) {
	in.o.OnChannelEvent(ChannelEvent{Kind: ChannelArchived, Channel: event.str("channel")})
}

// notice makes a handler of events that say nothing more than what happened to a channel.
func channelEventHandler(kind ChannelEventKind) func(in *EventRouter, ctx context.Context, event rawObject) {
	return func(in *EventRouter, _ context.Context, event rawObject) {
		in.o.OnChannelEvent(ChannelEvent{Kind: kind, Channel: eventChannel(event)})
	}
}

func (in *EventRouter) onMemberJoined(_ context.Context, event rawObject) {
	kind := ChannelMemberJoined
	if event.str("user") == in.o.Client.Self().User {
		kind = ChannelJoined
	}
	in.o.OnChannelEvent(ChannelEvent{Kind: kind, Channel: event.str("channel")})
}

func (in *EventRouter) onMemberLeft(_ context.Context, event rawObject) {
	if event.str("user") == in.o.Client.Self().User {
		in.o.OnChannelEvent(ChannelEvent{Kind: ChannelLeft, Channel: event.str("channel")})
	}
}

func (in *EventRouter) onChannelIDChanged(_ context.Context, event rawObject) {
	in.o.OnChannelEvent(ChannelEvent{Kind: ChannelIDChanged, Channel: event.str("old_channel_id"), NewID: event.str("new_channel_id"),
		TS: event.str("event_ts")})
}

// onTokensRevoked minds the bot's token only; people's tokens are not ours.
func (in *EventRouter) onTokensRevoked(_ context.Context, event rawObject) {
	if bots, _ := event.obj("tokens").list("bot"); len(bots) > 0 {
		in.o.OnChannelEvent(ChannelEvent{Kind: TokenRevoked})
	}
}

// message routes a message event.
func (in *EventRouter) routeMessage(ctx context.Context, event rawObject) {
	m := message{rawObject: event, channel: event.str("channel")}
	if m.channel == "" {
		in.emitDropped(ctx, m, dropUnreadable)
		in.o.Threads.CatchUpAll()
		return
	}
	switch m.subtype() {
	case subtypeReplied: // tells of a reply that comes by itself
	case subtypeChanged:
		in.routeEdit(ctx, m)
	case subtypeDeleted:
		in.routeDeletion(ctx, m)
	case subtypeTombstone:
		in.routeTombstone(m)
	default:
		in.routeReply(ctx, m)
	}
}

func (in *EventRouter) routeReply(ctx context.Context, m message) {
	r, drop := in.o.Client.readReply(m)
	if drop != "" {
		in.emitDropped(ctx, m, drop)
		return
	}
	r.Redelivered = m.isTrue(retriedKey)
	in.o.Threads.HandleReply(r)
}

// changed handles message_changed, which comes for edits by people, and also for link previews, for our own updates
// and for roots that become tombstones.
func (in *EventRouter) routeEdit(ctx context.Context, event message) {
	now := message{rawObject: event.obj("message"), channel: event.channel}
	before := message{rawObject: event.obj("previous_message"), channel: event.channel}
	if now.subtype() == subtypeTombstone {
		in.routeTombstone(now)
		return
	}
	r, drop := in.o.Client.readReply(now)
	switch {
	case drop != "":
		in.emitDropped(ctx, now, drop)
	case !isRewritten(before, now):
		in.emitDropped(ctx, now, dropUnfurl)
	default:
		r.Redelivered = event.isTrue(retriedKey)
		in.o.Threads.ReplyEdited(r)
	}
}

// routeTombstone is what is left of a deleted root that has replies; data loss prevention makes one of a reply, too.
func (in *EventRouter) routeTombstone(m message) {
	if m.isReply() {
		in.o.Threads.ReplyDeleted(m.channel, m.thread(), m.ts())
		return
	}
	in.o.Threads.ThreadDeleted(m.channel, m.ts())
}

// isRewritten reports whether a person changed what a message says. A preview leaves the text as it was, and is no edit: what
// else changed counts only with the mark of a new one. Where Slack does not tell what was there before, the mark decides.
func isRewritten(before, now message) bool {
	if before.rawObject == nil {
		return now.has("edited")
	}
	if before.ownText(nameLookup{}) != now.ownText(nameLookup{}) {
		return true
	}
	return before.obj("edited").str("ts") != now.obj("edited").str("ts") && before.textWithFiles(nameLookup{}) != now.textWithFiles(nameLookup{})
}

// routeDeletion handles message_deleted. A message that was no reply may be the root of a thread.
func (in *EventRouter) routeDeletion(ctx context.Context, event message) {
	gone := message{rawObject: event.obj("previous_message"), channel: event.channel}
	ts := firstNonEmpty(event.str("deleted_ts"), gone.ts())
	root := firstNonEmpty(gone.thread(), event.thread())
	switch {
	case ts == "":
		in.emitDropped(ctx, event, dropUnreadable)
	case root == "" || root == ts:
		in.o.Threads.ThreadDeleted(event.channel, ts)
	case gone.isAutomated(in.o.Client.Self()):
		in.emitDropped(ctx, gone, dropBot)
	default:
		in.o.Threads.ReplyDeleted(event.channel, root, ts)
	}
}

// drop records that a message goes no further. What it says is never recorded.
func (in *EventRouter) emitDropped(ctx context.Context, m message, reason string) {
	fields := map[string]any{"reason": reason, "channel": m.channel, "thread": m.thread(), "ts": m.ts(), "user": m.str("user")}
	if m.subtype() != "" {
		fields["subtype"] = m.subtype()
	}
	in.o.Sink.Emit(ctx, sessions.Event{Name: threads.EventDropped, Level: slog.LevelInfo, Fields: fields})
}

// Names of the events that this package emits.
const (
	EventStarted      = "bot.started"
	EventStopped      = "bot.stopped"
	EventConnected    = "bot.connected"
	EventDisconnected = "bot.disconnected"
)
