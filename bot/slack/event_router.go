package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"the-loop/bot/slack/lenientjson"
	"the-loop/threads/chat"
)

// ThreadHandler is told what happens in threads. None of its methods may block.
type ThreadHandler interface {
	HandleReply(r chat.Reply)
	// ReplyEdited says that a reply has another text now.
	ReplyEdited(r chat.Reply)
	// ReplyDeleted says that a reply was deleted.
	ReplyDeleted(channel, root, ts string)
	// ThreadDeleted says that a message which may be the root of a thread was deleted.
	ThreadDeleted(channel, root string)
}

// InteractionHandler is told what people do in Slack besides writing. Neither method may block.
type InteractionHandler interface {
	// HandleInteraction handles a slash command, or a press of a button, a modal or a shortcut. It acks the envelope when that
	// is left to it.
	HandleInteraction(ctx context.Context, e Envelope)
	// HandleHomeOpened says that a member opened the app's Home tab.
	HandleHomeOpened(ctx context.Context, h HomeOpened)
}

// HomeOpened is a visit of the app's Home, in one of its tabs. Slack does not tell the member's team.
type HomeOpened struct{ User, Tab, Channel string }

// Dropped is a message that goes no further. Its text is never recorded.
type Dropped struct{ Reason, Channel, Thread, TS, User, Subtype string }

// ChannelEvent is something that happened to the app or to a channel.
type ChannelEvent struct {
	Kind    ChannelEventKind
	Channel string // the channel it happened to; empty for the app
	NewID   string // with ChannelIDChanged: the channel's new id
	TS      string // with ChannelIDChanged: when it got it
}

// ChannelEventKind says what happened.
type ChannelEventKind string

// What a [ChannelEvent] can be.
const (
	ChannelArchived       ChannelEventKind = "archived"    // nothing can be posted there any more
	ChannelLeft           ChannelEventKind = "left"        // the bot is no longer in the channel
	ChannelJoined         ChannelEventKind = "joined"      // the bot is in the channel now
	ChannelIDChanged      ChannelEventKind = "channel_id"  // Slack gave the channel another id
	ChannelUnarchived     ChannelEventKind = "unarchived"  // messages can be posted there again
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

// The types of envelopes.
const (
	EnvelopeEvent       = "events_api"
	EnvelopeCommand     = "slash_commands"
	EnvelopeInteractive = "interactive"
)

// EventRouterOptions are what an [EventRouter] is made of. Client, Threads and CatchUpAll are required.
type EventRouterOptions struct {
	Client         *Client
	Threads        ThreadHandler
	CatchUpAll     func()                               // called to have all threads read again, because something may have been missed
	Interactions   InteractionHandler                   // nil: interactions are ignored
	OnDropped      func(ctx context.Context, d Dropped) // nil: drops are not recorded
	OnChannelEvent func(ChannelEvent)                   // must not block; nil: channel events are ignored
	Log            *slog.Logger                         // nil: silent
}

// EventRouter routes envelopes. One goroutine calls it, so the events of a channel keep their order.
type EventRouter struct {
	o EventRouterOptions
}

// NewEventRouter returns a router.
func NewEventRouter(o EventRouterOptions) *EventRouter {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.OnChannelEvent == nil {
		o.OnChannelEvent = func(ChannelEvent) {}
	}
	if o.OnDropped == nil {
		o.OnDropped = func(context.Context, Dropped) {}
	}
	return &EventRouter{o: o}
}

// Route handles one envelope. It does nothing slow.
func (in *EventRouter) Route(ctx context.Context, e Envelope) {
	switch e.Type {
	case EnvelopeEvent:
		in.routeEvent(ctx, e)
	case EnvelopeCommand, EnvelopeInteractive:
		if in.o.Interactions != nil {
			in.o.Interactions.HandleInteraction(ctx, e)
		} else if e.AckWith != nil {
			e.AckWith(nil)
		}
	default:
		in.handleUnreadable(ctx, e)
	}
}

// handleUnreadable handles an envelope that cannot be read: it may have held a reply.
func (in *EventRouter) handleUnreadable(ctx context.Context, e Envelope) {
	in.o.Log.Warn("cannot read what Slack sent; reading all threads again", "type", e.Type, "bytes", len(e.Payload))
	in.emitDropped(ctx, message{}, DropUnreadable)
	in.o.CatchUpAll()
}

func (in *EventRouter) routeEvent(ctx context.Context, e Envelope) {
	payload := lenientjson.Parse(e.Payload)
	if payload.Str("type") == "app_rate_limited" {
		in.o.Log.Warn("Slack held events back because there were too many; reading all threads again")
		in.o.CatchUpAll()
		return
	}
	event := payload.Obj("event")
	if event.Str("type") == "" {
		in.handleUnreadable(ctx, e)
		return
	}
	in.observeClock(payload, event)
	handle, known := eventHandlers[event.Str("type")]
	if !known {
		in.o.Log.Debug("ignored an event", "type", event.Str("type"))
		return
	}
	if channel := eventChannel(event); payload.IsTrue("is_ext_shared_channel") && channel != "" && event.Str("type") != "channel_unshared" {
		in.o.OnChannelEvent(ChannelEvent{Kind: ChannelIsShared, Channel: channel})
	}
	if e.Retry > 0 {
		event[retriedKey] = json.RawMessage("true")
	}
	handle(in, ctx, event)
}

// eventChannel is where an event happened: some name the channel, others describe it.
func eventChannel(event lenientjson.Object) string {
	return cmp.Or(event.Str("channel"), event.Obj("channel").Str("id"))
}

// observeClock sets Slack's clock to an event's time at least.
func (in *EventRouter) observeClock(payload, event lenientjson.Object) {
	for _, at := range []string{payload.Str("event_time"), event.Str("event_ts")} {
		if at != "" {
			in.o.Client.Clock().ObserveEvent(chat.TSTime(at))
		}
	}
}

// retriedKey marks, in an event, that its envelope was sent before.
const retriedKey = "the-loop.retried"

// eventHandlers are the handlers of inner events by type. What is not here is ignored.
var eventHandlers = map[string]func(in *EventRouter, ctx context.Context, event lenientjson.Object){
	"message":               (*EventRouter).routeMessage,
	"app_mention":           func(*EventRouter, context.Context, lenientjson.Object) {}, // comes as a message too
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
	"app_home_opened": func(in *EventRouter, ctx context.Context, event lenientjson.Object) {
		if in.o.Interactions != nil {
			in.o.Interactions.HandleHomeOpened(ctx, HomeOpened{User: event.Str("user"), Tab: event.Str("tab"), Channel: event.Str("channel")})
		}
	},
	"app_uninstalled": func(in *EventRouter, _ context.Context, _ lenientjson.Object) {
		in.o.OnChannelEvent(ChannelEvent{Kind: AppUninstalled})
	},
}

// EventTypes are the types of the events that a router handles.
func EventTypes() []string { return slices.Sorted(maps.Keys(eventHandlers)) }

func (in *EventRouter) onArchived(_ context.Context, event lenientjson.Object) {
	in.o.OnChannelEvent(ChannelEvent{Kind: ChannelArchived, Channel: event.Str("channel")})
}

// channelEventHandler returns a handler of events that only say what happened to a channel.
func channelEventHandler(kind ChannelEventKind) func(in *EventRouter, ctx context.Context, event lenientjson.Object) {
	return func(in *EventRouter, _ context.Context, event lenientjson.Object) {
		in.o.OnChannelEvent(ChannelEvent{Kind: kind, Channel: eventChannel(event)})
	}
}

func (in *EventRouter) onMemberJoined(_ context.Context, event lenientjson.Object) {
	kind := ChannelMemberJoined
	if event.Str("user") == in.o.Client.Self().User {
		kind = ChannelJoined
	}
	in.o.OnChannelEvent(ChannelEvent{Kind: kind, Channel: event.Str("channel")})
}

func (in *EventRouter) onMemberLeft(_ context.Context, event lenientjson.Object) {
	if event.Str("user") == in.o.Client.Self().User {
		in.o.OnChannelEvent(ChannelEvent{Kind: ChannelLeft, Channel: event.Str("channel")})
	}
}

func (in *EventRouter) onChannelIDChanged(_ context.Context, event lenientjson.Object) {
	in.o.OnChannelEvent(ChannelEvent{Kind: ChannelIDChanged, Channel: event.Str("old_channel_id"), NewID: event.Str("new_channel_id"),
		TS: event.Str("event_ts")})
}

// onTokensRevoked ignores tokens of people, which are not ours.
func (in *EventRouter) onTokensRevoked(_ context.Context, event lenientjson.Object) {
	if bots, _ := event.Obj("tokens").List("bot"); len(bots) > 0 {
		in.o.OnChannelEvent(ChannelEvent{Kind: TokenRevoked})
	}
}

// routeMessage routes a message event.
func (in *EventRouter) routeMessage(ctx context.Context, event lenientjson.Object) {
	m := message{Object: event, channel: event.Str("channel")}
	if m.channel == "" {
		in.emitDropped(ctx, m, DropUnreadable)
		in.o.CatchUpAll()
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
	r.Redelivered = m.IsTrue(retriedKey)
	in.o.Threads.HandleReply(r)
}

// routeEdit handles message_changed, which comes for edits by people, for link previews, for our own updates and for roots that
// become tombstones.
func (in *EventRouter) routeEdit(ctx context.Context, event message) {
	now := message{Object: event.Obj("message"), channel: event.channel}
	before := message{Object: event.Obj("previous_message"), channel: event.channel}
	if now.subtype() == subtypeTombstone {
		in.routeTombstone(now)
		return
	}
	r, drop := in.o.Client.readReply(now)
	switch {
	case drop != "":
		in.emitDropped(ctx, now, drop)
	case !isRewritten(before, now, in.o.Client.plainNames()):
		in.emitDropped(ctx, now, DropUnfurl)
	default:
		r.Redelivered = event.IsTrue(retriedKey)
		in.o.Threads.ReplyEdited(r)
	}
}

// routeTombstone handles what is left of a deleted root with replies; data loss prevention leaves one of a reply, too.
func (in *EventRouter) routeTombstone(m message) {
	if m.isReply() {
		in.o.Threads.ReplyDeleted(m.channel, m.thread(), m.ts())
		return
	}
	in.o.Threads.ThreadDeleted(m.channel, m.ts())
}

// isRewritten reports whether a person changed what a message says. A preview leaves the text as it was, so other changes count
// only with a new edited mark. Where Slack does not tell what was there before, the mark decides.
func isRewritten(before, now message, l nameLookup) bool {
	if before.Object == nil {
		return now.Has("edited")
	}
	if before.ownText(l) != now.ownText(l) {
		return true
	}
	return before.Obj("edited").Str("ts") != now.Obj("edited").Str("ts") && before.textWithFiles(l) != now.textWithFiles(l)
}

// routeDeletion handles message_deleted. A message that was no reply may be the root of a thread.
func (in *EventRouter) routeDeletion(ctx context.Context, event message) {
	gone := message{Object: event.Obj("previous_message"), channel: event.channel}
	ts := cmp.Or(event.Str("deleted_ts"), gone.ts())
	root := cmp.Or(gone.thread(), event.thread())
	switch {
	case ts == "":
		in.emitDropped(ctx, event, DropUnreadable)
	case root == "" || root == ts:
		in.o.Threads.ThreadDeleted(event.channel, ts)
	case gone.isAutomated(in.o.Client.Self()):
		in.emitDropped(ctx, gone, DropBot)
	default:
		in.o.Threads.ReplyDeleted(event.channel, root, ts)
	}
}

// emitDropped records that a message goes no further.
func (in *EventRouter) emitDropped(ctx context.Context, m message, reason string) {
	in.o.OnDropped(ctx, Dropped{Reason: reason, Channel: m.channel, Thread: m.thread(), TS: m.ts(), User: m.Str("user"), Subtype: m.subtype()})
}
