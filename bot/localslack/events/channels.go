package events

import (
	"slices"

	"the-loop/bot/localslack/store"
)

// Invite puts people into a channel by id or name, the bot too. Once the workspace has started, joining shows: a
// channel_join message and a member_joined_channel event.
func (w *Feed) Invite(channel string, users ...string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	for _, user := range users {
		p := w.FindMember(user)
		if ch == nil || p == nil || ch.HasMember(p.ID) {
			continue
		}
		ch.Members = append(ch.Members, p.ID)
		w.RecordChange(store.Change{Kind: store.DirectoryChanged})
		w.Notify()
		if w.Started {
			w.emitJoined(ch, p)
		}
	}
}

// Join is Invite.
func (w *Feed) Join(channel string, users ...string) { w.Invite(channel, users...) }

func (w *Feed) emitJoined(ch *store.ChannelState, p *store.Member) {
	if ch.Kind == store.PublicChannel || ch.Kind == store.PrivateChannel {
		w.Post(ch, &store.Message{Type: "message", Subtype: "channel_join", User: p.ID, TS: w.NewTS(), Team: p.TeamID,
			Inviter: ch.Members[0], Text: "<@" + p.ID + "> has joined the channel"})
	}
	w.emit(ch, "member_joined_channel", w.newMemberEvent("member_joined_channel", ch, p))
}

func (w *Feed) newMemberEvent(kind string, ch *store.ChannelState, p *store.Member) store.Object {
	letter := "C"
	if ch.Kind == store.PrivateChannel {
		letter = "G"
	}
	return store.Object{"type": kind, "user": p.ID, "channel": ch.ID, "channel_type": letter, "team": p.TeamID, "event_ts": w.NewTS()}
}

// Leave takes people out of a channel; the bot is told of it when it is still there or was the one.
func (w *Feed) Leave(channel string, users ...string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	for _, user := range users {
		p := w.FindMember(user)
		if ch == nil || p == nil || !ch.HasMember(p.ID) {
			continue
		}
		w.emit(ch, "member_left_channel", w.newMemberEvent("member_left_channel", ch, p))
		ch.Members = store.Without(ch.Members, p.ID)
		w.RecordChange(store.Change{Kind: store.DirectoryChanged})
		w.Notify()
	}
}

// Archive archives a channel; the event is channel_archive or group_archive.
func (w *Feed) Archive(channel string) { w.setArchived(channel, true, "archive") }

// Unarchive makes a channel usable again; the event is channel_unarchive or group_unarchive.
func (w *Feed) Unarchive(channel string) { w.setArchived(channel, false, "unarchive") }

func (w *Feed) setArchived(channel string, archived bool, event string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	if ch == nil || ch.Archived == archived {
		return
	}
	kind := "channel_" + event
	if ch.Kind == store.PrivateChannel {
		kind = "group_" + event
	}
	ch.Archived = archived
	w.RecordChange(store.Change{Kind: store.DirectoryChanged})
	w.emit(ch, kind, store.Object{"type": kind, "channel": ch.ID, "user": w.PeopleOrder[0], "event_ts": w.NewTS()})
	w.Notify()
}

// ShareChannel connects a channel with other teams while it is in use; the event is channel_shared.
func (w *Feed) ShareChannel(channel string, teams ...string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	if ch == nil {
		return
	}
	ch.PendingShare = false
	store.ExtShared(slices.Clone(teams)...)(ch)
	w.RecordChange(store.Change{Kind: store.DirectoryChanged})
	for _, team := range teams {
		w.emit(ch, "channel_shared", store.Object{"type": "channel_shared", "connected_team_id": team, "channel": ch.ID, "event_ts": w.NewTS()})
	}
	w.Notify()
}

// InviteTeam asks another team to share a channel. Until it accepts, the channel is not shared, and no event tells of it.
func (w *Feed) InviteTeam(channel string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if ch := w.FindChannel(channel); ch != nil {
		ch.PendingShare = true
		w.Notify()
	}
}

// ChangeChannelID gives a channel another id, as Slack does when a private one is shared, and returns it. The old one is not
// known any more. The event is channel_id_changed.
func (w *Feed) ChangeChannelID(channel string) string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	if ch == nil {
		return ""
	}
	old := ch.ID
	ch.ID = w.NewID("C")
	delete(w.ChannelsByID, old)
	w.ChannelsByID[ch.ID] = ch
	w.ChannelOrder[slices.Index(w.ChannelOrder, old)] = ch.ID
	w.RecordChange(store.Change{Kind: store.DirectoryChanged})
	w.emit(ch, "channel_id_changed", store.Object{"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": ch.ID, "event_ts": w.NewTS()})
	w.Notify()
	return ch.ID
}

// UnshareChannel disconnects a channel from all other teams; the event is channel_unshared.
func (w *Feed) UnshareChannel(channel string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch := w.FindChannel(channel)
	if ch == nil || !ch.ExtShared {
		return
	}
	others := store.Without(slices.Clone(ch.SharedTeams), w.Opts.TeamID)
	ch.ExtShared, ch.SharedTeams = false, []string{w.Opts.TeamID}
	w.RecordChange(store.Change{Kind: store.DirectoryChanged})
	for _, team := range others {
		w.emit(ch, "channel_unshared", store.Object{"type": "channel_unshared", "previously_connected_team_id": team, "channel": ch.ID,
			"is_ext_shared": false, "event_ts": w.NewTS()})
	}
	w.Notify()
}
