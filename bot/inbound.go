package bot

import (
	"context"
	"encoding/json"
	"log/slog"

	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/chat"
)

// Threads is told what happens in threads. None of its methods may block.
type Threads interface {
	Replies
	CatchUps
	// RootGone says that a message which may be the root of a thread was deleted.
	RootGone(channel, root string)
}

// Replies takes what people write in threads.
type Replies interface {
	Heard(r chat.Reply)
	// Edited says that the text of a reply is another one now.
	Edited(r chat.Reply)
	// Withdrawn says that a reply was deleted.
	Withdrawn(channel, root, ts string)
}

// CatchUps has threads read again, because something may have been missed.
type CatchUps interface {
	Connected(alone bool) // events flow (again); alone: Slack counts no other connection that some of them may go to
	CatchUpAll()
	CatchUp(channel, root string)
}

// Notice is something that happened to the app or to a channel, and that is no message.
type Notice struct {
	Kind    NoticeKind
	Channel string // the channel it happened to; empty for the app
	Renamed string // with NoticeChannelID: the channel's new id
	TS      string // with NoticeChannelID: when it got it
}

// NoticeKind says what happened.
type NoticeKind string

// What a [Notice] can be.
const (
	NoticeArchived    NoticeKind = "archived"    // nothing can be posted there any more
	NoticeLeft        NoticeKind = "left"        // the bot is no longer in the channel
	NoticeJoined      NoticeKind = "joined"      // the bot is in the channel now
	NoticeChannelID   NoticeKind = "channel_id"  // the channel has another id now
	NoticeUnarchived  NoticeKind = "unarchived"  // it can be posted there again
	NoticeSharing     NoticeKind = "sharing"     // another organisation came to the channel, or left it
	NoticeShared      NoticeKind = "shared"      // something happened in a channel that is shared with another organisation
	NoticeMember      NoticeKind = "member"      // somebody is in the channel now
	NoticeRenamed     NoticeKind = "renamed"     // the channel is called something else now
	NoticeRevoked     NoticeKind = "revoked"     // the bot token is not valid any more
	NoticeUninstalled NoticeKind = "uninstalled" // the app was taken out of the workspace
)

// Envelope is what a Socket Mode connection carries, undecoded.
type Envelope struct {
	Type    string // events_api, slash_commands, interactive
	ID      string
	Payload json.RawMessage
	Retry   int // how often it was sent before
	// Answer sends the ack with a payload. It is set when the ack is left to whoever handles the envelope.
	Answer func(payload any)
}

// Envelope types.
const (
	envelopeEvent       = "events_api"
	envelopeCommand     = "slash_commands"
	envelopeInteractive = "interactive"
)

// InboundOptions are what an [Inbound] is made of. Client, Threads and Sink are required.
type InboundOptions struct {
	Client  *Client
	Threads Threads
	Sink    sessions.Sink
	Doors   *Doors       // nil: presses and commands go nowhere
	Notice  func(Notice) // must not block; nil: notices go nowhere
	Log     *slog.Logger // nil: silent
}

// Inbound routes envelopes. It is called from one goroutine, so what happens in a channel keeps its order.
type Inbound struct {
	o InboundOptions
}

// NewInbound makes a router.
func NewInbound(o InboundOptions) *Inbound {
	o.Log = orSilent(o.Log)
	if o.Notice == nil {
		o.Notice = func(Notice) {}
	}
	return &Inbound{o: o}
}

func orSilent(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Route handles one envelope. It does nothing slow: presses and commands run beside it.
func (in *Inbound) Route(ctx context.Context, e Envelope) {
	switch e.Type {
	case envelopeEvent:
		in.event(ctx, e)
	case envelopeCommand, envelopeInteractive:
		if in.o.Doors != nil {
			in.o.Doors.handle(ctx, e)
		} else if e.Answer != nil {
			e.Answer(nil)
		}
	default:
		in.unreadable(ctx, e)
	}
}

// unreadable is an envelope of which nothing can be made: something in it may have been a reply.
func (in *Inbound) unreadable(ctx context.Context, e Envelope) {
	in.o.Log.Warn("cannot read what Slack sent; reading all threads again", "type", e.Type, "bytes", len(e.Payload))
	in.drop(ctx, message{}, dropBroken)
	in.o.Threads.CatchUpAll()
}

func (in *Inbound) event(ctx context.Context, e Envelope) {
	payload := loose(e.Payload)
	if payload.str("type") == "app_rate_limited" {
		in.o.Log.Warn("Slack held events back because there were too many; reading all threads again")
		in.o.Threads.CatchUpAll()
		return
	}
	event := payload.obj("event")
	if event.str("type") == "" {
		in.unreadable(ctx, e)
		return
	}
	in.clocked(payload, event)
	handle, known := innerEvents[event.str("type")]
	if !known {
		in.o.Log.Debug("ignored an event", "type", event.str("type"))
		return
	}
	if channel := channelOf(event); payload.is("is_ext_shared_channel") && channel != "" && event.str("type") != "channel_unshared" {
		in.o.Notice(Notice{Kind: NoticeShared, Channel: channel})
	}
	if e.Retry > 0 {
		event[retried] = json.RawMessage("true")
	}
	handle(in, ctx, event)
}

// channelOf is where an event happened: some name the channel, others describe it.
func channelOf(event object) string {
	return first(event.str("channel"), event.obj("channel").str("id"))
}

// clocked learns from an event what time it is at Slack at least.
func (in *Inbound) clocked(payload, event object) {
	for _, at := range []string{payload.str("event_time"), event.str("event_ts")} {
		if at != "" {
			in.o.Client.clock.ObserveEvent(chat.TSTime(at))
		}
	}
}

// retried marks, in an event, that its envelope was sent before.
const retried = "the-loop.retried"

// innerEvents are the handlers of inner events by type. What is not here is ignored.
var innerEvents = map[string]func(in *Inbound, ctx context.Context, event object){
	"message":               (*Inbound).message,
	"app_mention":           func(*Inbound, context.Context, object) {}, // comes as a message too
	"channel_archive":       (*Inbound).archived,
	"group_archive":         (*Inbound).archived,
	"channel_unarchive":     notice(NoticeUnarchived),
	"group_unarchive":       notice(NoticeUnarchived),
	"channel_shared":        notice(NoticeSharing),
	"channel_unshared":      notice(NoticeSharing),
	"channel_rename":        notice(NoticeRenamed),
	"group_rename":          notice(NoticeRenamed),
	"member_left_channel":   (*Inbound).memberLeft,
	"member_joined_channel": (*Inbound).memberJoined,
	"channel_id_changed":    (*Inbound).channelID,
	"tokens_revoked":        (*Inbound).revoked,
	"app_home_opened": func(in *Inbound, ctx context.Context, event object) {
		if in.o.Doors != nil {
			in.o.Doors.opened(ctx, event)
		}
	},
	"app_uninstalled": func(in *Inbound, _ context.Context, _ object) {
		in.o.Notice(Notice{Kind: NoticeUninstalled})
	},
}

func (in *Inbound) archived(_ context.Context, event object) {
	in.o.Notice(Notice{Kind: NoticeArchived, Channel: event.str("channel")})
}

// notice makes a handler of events that say nothing more than what happened to a channel.
func notice(kind NoticeKind) func(in *Inbound, ctx context.Context, event object) {
	return func(in *Inbound, _ context.Context, event object) {
		in.o.Notice(Notice{Kind: kind, Channel: channelOf(event)})
	}
}

func (in *Inbound) memberJoined(_ context.Context, event object) {
	kind := NoticeMember
	if event.str("user") == in.o.Client.Self().User {
		kind = NoticeJoined
	}
	in.o.Notice(Notice{Kind: kind, Channel: event.str("channel")})
}

func (in *Inbound) memberLeft(_ context.Context, event object) {
	if event.str("user") == in.o.Client.Self().User {
		in.o.Notice(Notice{Kind: NoticeLeft, Channel: event.str("channel")})
	}
}

func (in *Inbound) channelID(_ context.Context, event object) {
	in.o.Notice(Notice{Kind: NoticeChannelID, Channel: event.str("old_channel_id"), Renamed: event.str("new_channel_id"),
		TS: event.str("event_ts")})
}

// revoked minds the bot's token only; people's tokens are not ours.
func (in *Inbound) revoked(_ context.Context, event object) {
	if bots, _ := event.obj("tokens").list("bot"); len(bots) > 0 {
		in.o.Notice(Notice{Kind: NoticeRevoked})
	}
}

// message routes a message event.
func (in *Inbound) message(ctx context.Context, event object) {
	m := message{object: event, channel: event.str("channel")}
	if m.channel == "" {
		in.drop(ctx, m, dropBroken)
		in.o.Threads.CatchUpAll()
		return
	}
	switch m.subtype() {
	case subtypeReplied: // tells of a reply that comes by itself
	case subtypeChanged:
		in.changed(ctx, m)
	case subtypeDeleted:
		in.deleted(ctx, m)
	case subtypeTombstone:
		in.tombstone(m)
	default:
		in.heard(ctx, m)
	}
}

func (in *Inbound) heard(ctx context.Context, m message) {
	r, drop := in.o.Client.readReply(m)
	if drop != "" {
		in.drop(ctx, m, drop)
		return
	}
	r.Redelivered = m.is(retried)
	in.o.Threads.Heard(r)
}

// changed handles message_changed, which comes for edits by people, and also for link previews, for our own updates
// and for roots that become tombstones.
func (in *Inbound) changed(ctx context.Context, event message) {
	now := message{object: event.obj("message"), channel: event.channel}
	before := message{object: event.obj("previous_message"), channel: event.channel}
	if now.subtype() == subtypeTombstone {
		in.tombstone(now)
		return
	}
	r, drop := in.o.Client.readReply(now)
	switch {
	case drop != "":
		in.drop(ctx, now, drop)
	case !rewritten(before, now):
		in.drop(ctx, now, dropUnfurl)
	default:
		r.Redelivered = event.is(retried)
		in.o.Threads.Edited(r)
	}
}

// tombstone is what is left of a deleted root that has replies; data loss prevention makes one of a reply, too.
func (in *Inbound) tombstone(m message) {
	if m.isReply() {
		in.o.Threads.Withdrawn(m.channel, m.thread(), m.ts())
		return
	}
	in.o.Threads.RootGone(m.channel, m.ts())
}

// rewritten reports whether a person changed what a message says. A preview leaves the text as it was, and is no edit: what
// else changed counts only with the mark of a new one. Where Slack does not tell what was there before, the mark decides.
func rewritten(before, now message) bool {
	if before.object == nil {
		return now.has("edited")
	}
	if before.saying(lookup{}) != now.saying(lookup{}) {
		return true
	}
	return before.obj("edited").str("ts") != now.obj("edited").str("ts") && before.told(lookup{}) != now.told(lookup{})
}

// deleted handles message_deleted. A message that was no reply may be the root of a thread.
func (in *Inbound) deleted(ctx context.Context, event message) {
	gone := message{object: event.obj("previous_message"), channel: event.channel}
	ts := first(event.str("deleted_ts"), gone.ts())
	root := first(gone.thread(), event.thread())
	switch {
	case ts == "":
		in.drop(ctx, event, dropBroken)
	case root == "" || root == ts:
		in.o.Threads.RootGone(event.channel, ts)
	case gone.byProgram(in.o.Client.Self()):
		in.drop(ctx, gone, dropBot)
	default:
		in.o.Threads.Withdrawn(event.channel, root, ts)
	}
}

// drop records that a message goes no further. What it says is never recorded.
func (in *Inbound) drop(ctx context.Context, m message, reason string) {
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
