package localslack

import (
	"encoding/json"
	"slices"
	"strings"
)

// messageEvent is a message as the Events InjectAPI sends it.
type messageEvent struct {
	Message
	Channel     string      `json:"channel"`
	ChannelType ChannelKind `json:"channel_type,omitempty"`
	EventTS     string      `json:"event_ts"`
	Root        any         `json:"root,omitempty"`
}

// post stores a new message and sends its events. The caller holds mu.
func (w *Feed) post(ch *channelState, m *Message) {
	ch.add(m)
	w.recordMessageChange(ch, m)
	if m.BotID == w.botID && m.IsReply() {
		w.showStatus(ch, m.ThreadTS, "")
	}
	w.emitMessage(ch, m)
	if w.opts.MessageReplied && m.IsReply() && ch.byTS[m.ThreadTS] != nil {
		w.emitReplied(ch, ch.byTS[m.ThreadTS])
	}
	if w.opts.AutoUnfurl && strings.Contains(m.Text, "<http") {
		w.unfurl(ch, m)
	}
	w.notify()
}

func (w *Feed) emitMessage(ch *channelState, m *Message) {
	if m.raw != nil {
		w.emit(ch, "message", m.raw)
		return
	}
	ev := messageEvent{Message: m.clone(), Channel: ch.id, ChannelType: ch.kind, EventTS: m.TS}
	ev.ReplyCount, ev.ReplyUsers, ev.ReplyUsersN, ev.LatestReply, ev.Metadata = 0, nil, 0, "", nil
	if m.broadcast {
		ev.Subtype = "thread_broadcast"
		if root := ch.byTS[m.ThreadTS]; root != nil {
			ev.Root = root.clone()
		}
	}
	w.emit(ch, "message", ev)
	if m.BotID == "" && m.Subtype != "channel_join" && strings.Contains(m.Text, "<@"+w.botUser) {
		ev.Type, ev.ChannelType, ev.Subtype = "app_mention", "", ""
		w.emit(ch, "app_mention", ev)
	}
}

// newChangeEvent is message_changed, message_deleted or message_replied.
type changeEvent struct {
	Type        string      `json:"type"`
	Subtype     string      `json:"subtype"`
	Hidden      bool        `json:"hidden"`
	Channel     string      `json:"channel"`
	ChannelType ChannelKind `json:"channel_type"`
	Message     any         `json:"message,omitempty"`
	Previous    any         `json:"previous_message,omitempty"`
	DeletedTS   string      `json:"deleted_ts,omitempty"`
	TS          string      `json:"ts"`
	EventTS     string      `json:"event_ts"`
}

func (w *Feed) newChangeEvent(ch *channelState, subtype string) changeEvent {
	ts := w.newTS()
	return changeEvent{Type: "message", Subtype: subtype, Hidden: true, Channel: ch.id, ChannelType: ch.kind, TS: ts, EventTS: ts}
}

// edit changes a message and sends message_changed. An empty editor leaves no mark of an edit, as an unfurl does.
func (w *Feed) edit(ch *channelState, m *Message, editor string, change func(*Message)) {
	before := m.clone()
	change(m)
	ev := w.newChangeEvent(ch, "message_changed")
	if editor != "" {
		m.Edited = &Edited{User: editor, TS: ev.TS}
	}
	after := m.clone()
	after.Metadata, before.Metadata = nil, nil // metadata has events of its own, which need a scope
	ev.Message, ev.Previous = after, before
	w.emit(ch, "message", ev)
	w.recordMessageChange(ch, m)
	w.notify()
}

// delete removes a message. A root with replies leaves a tombstone, whose event is a change.
func (w *Feed) delete(ch *channelState, m *Message) {
	if m.ReplyCount > 0 {
		w.edit(ch, m, "", func(m *Message) {
			m.Subtype, m.Hidden, m.Text, m.User = "tombstone", true, "This message was deleted.", "USLACKBOT"
			m.Blocks, m.Attachments, m.Files, m.Metadata, m.Reactions = nil, nil, nil, nil, nil
			m.BotID, m.AppID, m.Edited, m.ClientMsgID = "", "", nil, ""
		})
		return
	}
	before := m.clone()
	ch.remove(m)
	ev := w.newChangeEvent(ch, "message_deleted")
	ev.Previous, ev.DeletedTS = before, before.TS
	w.emit(ch, "message", ev)
	w.recordMessageChange(ch, &before)
	w.notify()
}

func (w *Feed) emitReplied(ch *channelState, root *Message) {
	ev := w.newChangeEvent(ch, "message_replied")
	ev.Message = root.clone()
	w.emit(ch, "message", ev)
}

// unfurl adds a link preview as Slack does: the message changes, its text does not. The caller holds mu.
func (w *Feed) unfurl(ch *channelState, m *Message) {
	link := "https://example.com/"
	if found := mrkdwnToken().FindStringSubmatch(m.Text); found != nil && strings.HasPrefix(found[1], "http") {
		link, _, _ = strings.Cut(found[1], "|")
	}
	preview, err := json.Marshal([]map[string]any{{"from_url": link, "original_url": link, "id": 1,
		"service_name": "example", "title": "A page", "title_link": link, "text": "What the page says.", "fallback": "A page"}})
	if err != nil {
		return
	}
	w.edit(ch, m, "", func(m *Message) { m.Attachments = preview })
}

func (w *Feed) emitReaction(kind string, ch *channelState, m *Message, user, name string) {
	w.emit(ch, kind, map[string]any{"type": kind, "user": user, "reaction": name, "item_user": m.User,
		"item": jsonObject{"type": "message", "channel": ch.id, "ts": m.TS}, "event_ts": w.newTS()})
	w.recordMessageChange(ch, m)
	w.notify()
}

// emit sends an event that happened in a channel. Nothing leaves a channel that the bot is not in, and nothing that
// the app has neither subscribed to nor the scope for.
func (w *Feed) emit(ch *channelState, kind string, inner any) {
	if !ch.hasMember(w.botUser) {
		return
	}
	name, scope := kind, ""
	switch kind {
	case "message":
		name, scope = "message."+kindName(ch.kind), scopeFor(ch.kind, "history")
	case "app_mention":
		scope = "app_mentions:read"
	case "reaction_added", "reaction_removed":
		scope = "reactions:read"
	case "member_joined_channel", "member_left_channel", "channel_archive", "group_archive",
		"channel_unarchive", "group_unarchive", "channel_shared", "channel_unshared", "channel_id_changed":
		scope = scopeFor(ch.kind, "read")
	}
	if scope == "" || slices.Contains(w.opts.Scopes, scope) {
		w.emitEvent(name, inner, ch)
	}
}

// emitEvent wraps an inner event and sends it off. ch may be nil.
func (w *Feed) emitEvent(name string, inner any, ch *channelState) {
	if !w.started || w.eventsDisabled || w.opts.Events != nil && !slices.Contains(w.opts.Events, name) {
		return
	}
	raw, err := json.Marshal(inner)
	if err != nil {
		w.log.Error("an event cannot be written", "event", name, "err", err)
		return
	}
	d := &envelopeDelivery{kind: "events_api", name: name, inner: raw, eventID: w.newID("Ev"), happenedAt: w.clock.Now(), channel: ch}
	if m, ok := inner.(messageEvent); ok && m.Type == "message" {
		w.messageEvents[m.Channel+"/"+m.TS] = d
	}
	w.startDelivery(d)
}

// eventPayload is the wrapper around an inner event.
func (w *Hub) eventPayload(d *envelopeDelivery, inner json.RawMessage) jsonObject {
	channel, shared := "", false
	if d.channel != nil {
		channel, shared = d.channel.id, d.channel.extShared
	}
	p := jsonObject{"token": "verification", "team_id": w.opts.TeamID, "context_team_id": w.opts.TeamID,
		"context_enterprise_id": nil, "api_app_id": w.appID, "event": inner,
		"type": "event_callback", "event_id": d.eventID, "event_time": d.happenedAt.Unix(),
		"authorizations": []jsonObject{{"enterprise_id": nil, "team_id": w.opts.TeamID, "user_id": w.botUser, "is_bot": true,
			"is_enterprise_install": false}},
		"is_ext_shared_channel": shared, "event_context": "4-" + d.name + "-" + w.opts.TeamID + "-" + channel}
	return p
}
