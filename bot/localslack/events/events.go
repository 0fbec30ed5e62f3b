package events

import (
	"encoding/json"
	"slices"
	"strings"

	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
)

// messageEvent is a message as the Events API sends it.
type messageEvent struct {
	store.Message
	Channel     string            `json:"channel"`
	ChannelType store.ChannelKind `json:"channel_type,omitempty"`
	EventTS     string            `json:"event_ts"`
	Root        any               `json:"root,omitempty"`
}

// Post stores a new message and sends its events. The caller holds Mu.
func (w *Feed) Post(ch *store.ChannelState, m *store.Message) {
	ch.Add(m)
	w.RecordMessageChange(ch, m)
	if m.BotID == w.BotID() && m.IsReply() {
		w.ShowStatus(ch, m.ThreadTS, "")
	}
	w.emitMessage(ch, m)
	if w.Opts.MessageReplied && m.IsReply() && ch.ByTS[m.ThreadTS] != nil {
		w.emitReplied(ch, ch.ByTS[m.ThreadTS])
	}
	if w.Opts.AutoUnfurl && strings.Contains(m.Text, "<http") {
		w.AddPreview(ch, m)
	}
	w.Notify()
}

func (w *Feed) emitMessage(ch *store.ChannelState, m *store.Message) {
	if m.Raw != nil {
		w.emit(ch, "message", m.Raw)
		return
	}
	ev := messageEvent{Message: m.Clone(), Channel: ch.ID, ChannelType: ch.Kind, EventTS: m.TS}
	ev.ReplyCount, ev.ReplyUsers, ev.ReplyUsersN, ev.LatestReply, ev.Metadata = 0, nil, 0, "", nil
	if m.Broadcast {
		ev.Subtype = "thread_broadcast"
		if root := ch.ByTS[m.ThreadTS]; root != nil {
			ev.Root = root.Clone()
		}
	}
	w.emit(ch, "message", ev)
	if m.BotID == "" && m.Subtype != "channel_join" && strings.Contains(m.Text, "<@"+w.BotUser) {
		ev.Type, ev.ChannelType, ev.Subtype = "app_mention", "", ""
		w.emit(ch, "app_mention", ev)
	}
}

// changeEvent is message_changed, message_deleted or message_replied.
type changeEvent struct {
	Type        string            `json:"type"`
	Subtype     string            `json:"subtype"`
	Hidden      bool              `json:"hidden"`
	Channel     string            `json:"channel"`
	ChannelType store.ChannelKind `json:"channel_type"`
	Message     any               `json:"message,omitempty"`
	Previous    any               `json:"previous_message,omitempty"`
	DeletedTS   string            `json:"deleted_ts,omitempty"`
	TS          string            `json:"ts"`
	EventTS     string            `json:"event_ts"`
}

func (w *Feed) newChangeEvent(ch *store.ChannelState, subtype string) changeEvent {
	ts := w.NewTS()
	return changeEvent{Type: "message", Subtype: subtype, Hidden: true, Channel: ch.ID, ChannelType: ch.Kind, TS: ts, EventTS: ts}
}

// Edit changes a message and sends message_changed. An empty editor leaves no mark of an edit, as an unfurl does.
func (w *Feed) Edit(ch *store.ChannelState, m *store.Message, editor string, change func(*store.Message)) {
	before := m.Clone()
	change(m)
	ev := w.newChangeEvent(ch, "message_changed")
	if editor != "" {
		m.Edited = &store.Edited{User: editor, TS: ev.TS}
	}
	after := m.Clone()
	after.Metadata, before.Metadata = nil, nil // metadata has events of its own, which need a scope
	ev.Message, ev.Previous = after, before
	w.emit(ch, "message", ev)
	w.RecordMessageChange(ch, m)
	w.Notify()
}

// Delete removes a message. A root with replies leaves a tombstone, whose event is a change.
func (w *Feed) Delete(ch *store.ChannelState, m *store.Message) {
	if m.ReplyCount > 0 {
		w.Edit(ch, m, "", func(m *store.Message) {
			m.Subtype, m.Hidden, m.Text, m.User = "tombstone", true, "This message was deleted.", "USLACKBOT"
			m.Blocks, m.Attachments, m.Files, m.Metadata, m.Reactions = nil, nil, nil, nil, nil
			m.BotID, m.AppID, m.Edited, m.ClientMsgID = "", "", nil, ""
		})
		return
	}
	before := m.Clone()
	ch.Remove(m)
	ev := w.newChangeEvent(ch, "message_deleted")
	ev.Previous, ev.DeletedTS = before, before.TS
	w.emit(ch, "message", ev)
	w.RecordMessageChange(ch, &before)
	w.Notify()
}

func (w *Feed) emitReplied(ch *store.ChannelState, root *store.Message) {
	ev := w.newChangeEvent(ch, "message_replied")
	ev.Message = root.Clone()
	w.emit(ch, "message", ev)
}

// AddPreview adds a link preview as Slack does: the message changes, its text does not. The caller holds Mu.
func (w *Feed) AddPreview(ch *store.ChannelState, m *store.Message) {
	link := "https://example.com/"
	if found := store.MrkdwnToken().FindStringSubmatch(m.Text); found != nil && strings.HasPrefix(found[1], "http") {
		link, _, _ = strings.Cut(found[1], "|")
	}
	preview, err := json.Marshal([]map[string]any{{"from_url": link, "original_url": link, "id": 1,
		"service_name": "example", "title": "A page", "title_link": link, "text": "What the page says.", "fallback": "A page"}})
	if err != nil {
		return
	}
	w.Edit(ch, m, "", func(m *store.Message) { m.Attachments = preview })
}

func (w *Feed) emitReaction(kind string, ch *store.ChannelState, m *store.Message, user, name string) {
	w.emit(ch, kind, map[string]any{"type": kind, "user": user, "reaction": name, "item_user": m.User,
		"item": store.Object{"type": "message", "channel": ch.ID, "ts": m.TS}, "event_ts": w.NewTS()})
	w.RecordMessageChange(ch, m)
	w.Notify()
}

// emit sends an event that happened in a channel. Nothing leaves a channel that the bot is not in, and nothing that
// the app has neither subscribed to nor the scope for.
func (w *Feed) emit(ch *store.ChannelState, kind string, inner any) {
	if !ch.HasMember(w.BotUser) {
		return
	}
	name, scope := kind, ""
	switch kind {
	case "message":
		name, scope = "message."+store.KindName(ch.Kind), store.ScopeFor(ch.Kind, "history")
	case "app_mention":
		scope = "app_mentions:read"
	case "reaction_added", "reaction_removed":
		scope = "reactions:read"
	case "member_joined_channel", "member_left_channel", "channel_archive", "group_archive",
		"channel_unarchive", "group_unarchive", "channel_shared", "channel_unshared", "channel_id_changed":
		scope = store.ScopeFor(ch.Kind, "read")
	}
	if scope == "" || slices.Contains(w.Opts.Scopes, scope) {
		w.EmitEvent(name, inner, ch)
	}
}

// EmitEvent wraps an inner event and sends it off. ch may be nil.
func (w *Feed) EmitEvent(name string, inner any, ch *store.ChannelState) {
	if !w.Started || w.EventsOff || w.Opts.Events != nil && !slices.Contains(w.Opts.Events, name) {
		return
	}
	raw, err := json.Marshal(inner)
	if err != nil {
		w.Log.Error("an event cannot be written", "event", name, "err", err)
		return
	}
	d := &socket.Delivery{Kind: "events_api", Name: name, Inner: raw, EventID: w.NewID("Ev"), HappenedAt: w.Clock.Now(), Channel: ch}
	if m, ok := inner.(messageEvent); ok && m.Type == "message" {
		w.MessageEvents[m.Channel+"/"+m.TS] = d
	}
	w.StartDelivery(d)
}
