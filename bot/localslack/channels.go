package localslack

import (
	"slices"
)

// ChannelOption makes a channel other than public.
type ChannelOption func(*channelState)

// Private makes a private channel: it does not exist for a bot that is not in it.
func Private() ChannelOption { return func(c *channelState) { c.kind = PrivateChannel } }

// Mpim makes a direct message of several people.
func Mpim() ChannelOption { return func(c *channelState) { c.kind = GroupMessage } }

// ExtShared shares the channel with other teams (Slack Connect).
func ExtShared(teams ...string) ChannelOption {
	return func(c *channelState) { c.extShared, c.sharedTeams = true, append(c.sharedTeams, teams...) }
}

// Archived makes a channel that nobody can post in.
func Archived() ChannelOption { return func(c *channelState) { c.archived = true } }

// Members puts members in from the beginning, by id.
func Members(users ...string) ChannelOption {
	return func(c *channelState) { c.members = append(c.members, users...) }
}

// AddChannel adds a channel, a public one unless an option says otherwise. Nobody is in it.
func (w *Places) AddChannel(name string, opts ...ChannelOption) Channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &channelState{name: name, kind: PublicChannel}
	for _, o := range opts {
		o(c)
	}
	prefix := "C"
	if c.kind == GroupMessage {
		prefix = "G"
	}
	c.sharedTeams = append(c.sharedTeams, w.opts.TeamID)
	return w.newChannel(prefix, c).public()
}

// OpenIM returns the direct message between somebody and the bot.
func (w *Places) OpenIM(user string) Channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.person(user); p != nil {
		user = p.ID
	}
	return w.im(user).public()
}

// Invite puts people into a channel by id or name, the bot too. Once the workspace has started, joining shows: a
// channel_join message and a member_joined_channel event.
func (w *Feed) Invite(channel string, users ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	for _, user := range users {
		p := w.person(user)
		if ch == nil || p == nil || ch.hasMember(p.ID) {
			continue
		}
		ch.members = append(ch.members, p.ID)
		w.recordChange(change{kind: directoryChanged})
		w.notify()
		if w.started {
			w.emitJoined(ch, p)
		}
	}
}

// Join is Invite.
func (w *Feed) Join(channel string, users ...string) { w.Invite(channel, users...) }

func (w *Feed) emitJoined(ch *channelState, p *Member) {
	if ch.kind == PublicChannel || ch.kind == PrivateChannel {
		w.post(ch, &Message{Type: "message", Subtype: "channel_join", User: p.ID, TS: w.newTS(), Team: p.TeamID,
			Inviter: ch.members[0], Text: "<@" + p.ID + "> has joined the channel"})
	}
	w.emit(ch, "member_joined_channel", w.newMemberEvent("member_joined_channel", ch, p))
}

func (w *Feed) newMemberEvent(kind string, ch *channelState, p *Member) jsonObject {
	letter := "C"
	if ch.kind == PrivateChannel {
		letter = "G"
	}
	return jsonObject{"type": kind, "user": p.ID, "channel": ch.id, "channel_type": letter, "team": p.TeamID, "event_ts": w.newTS()}
}

// Leave takes people out of a channel; the bot is told of it when it is still there or was the one.
func (w *Feed) Leave(channel string, users ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	for _, user := range users {
		p := w.person(user)
		if ch == nil || p == nil || !ch.hasMember(p.ID) {
			continue
		}
		w.emit(ch, "member_left_channel", w.newMemberEvent("member_left_channel", ch, p))
		ch.members = without(ch.members, p.ID)
		w.recordChange(change{kind: directoryChanged})
		w.notify()
	}
}

// Archive archives a channel; the event is channel_archive or group_archive.
func (w *Feed) Archive(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil || ch.archived {
		return
	}
	kind := "channel_archive"
	if ch.kind == PrivateChannel {
		kind = "group_archive"
	}
	ch.archived = true
	w.recordChange(change{kind: directoryChanged})
	w.emit(ch, kind, jsonObject{"type": kind, "channel": ch.id, "user": w.peopleOrder[0], "event_ts": w.newTS()})
	w.notify()
}

// Unarchive makes a channel usable again.
func (w *Feed) Unarchive(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil || !ch.archived {
		return
	}
	kind := "channel_unarchive"
	if ch.kind == PrivateChannel {
		kind = "group_unarchive"
	}
	ch.archived = false
	w.recordChange(change{kind: directoryChanged})
	w.emit(ch, kind, jsonObject{"type": kind, "channel": ch.id, "user": w.peopleOrder[0], "event_ts": w.newTS()})
	w.notify()
}

// ShareChannel connects a channel with other teams while it is in use; the event is channel_shared.
func (w *Feed) ShareChannel(channel string, teams ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil {
		return
	}
	ch.pendingShare = false
	ExtShared(slices.Clone(teams)...)(ch)
	w.recordChange(change{kind: directoryChanged})
	for _, team := range teams {
		w.emit(ch, "channel_shared", jsonObject{"type": "channel_shared", "connected_team_id": team, "channel": ch.id, "event_ts": w.newTS()})
	}
	w.notify()
}

// InviteTeam asks another team to share a channel. Until it accepts, the channel is not shared, and no event tells of it.
func (w *Feed) InviteTeam(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.channel(channel); ch != nil {
		ch.pendingShare = true
		w.notify()
	}
}

// ChangeChannelID gives a channel another id, as Slack does when a private one is shared, and returns it. The old one is not
// known any more. The event is channel_id_changed.
func (w *Feed) ChangeChannelID(channel string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil {
		return ""
	}
	old := ch.id
	ch.id = w.newID("C")
	delete(w.channels, old)
	w.channels[ch.id] = ch
	w.channelOrder[slices.Index(w.channelOrder, old)] = ch.id
	w.recordChange(change{kind: directoryChanged})
	w.emit(ch, "channel_id_changed", jsonObject{"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": ch.id, "event_ts": w.newTS()})
	w.notify()
	return ch.id
}

// UnshareChannel disconnects a channel from all other teams; the event is channel_unshared.
func (w *Feed) UnshareChannel(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil || !ch.extShared {
		return
	}
	others := without(slices.Clone(ch.sharedTeams), w.opts.TeamID)
	ch.extShared, ch.sharedTeams = false, []string{w.opts.TeamID}
	w.recordChange(change{kind: directoryChanged})
	for _, team := range others {
		w.emit(ch, "channel_unshared", jsonObject{"type": "channel_unshared", "previously_connected_team_id": team, "channel": ch.id,
			"is_ext_shared": false, "event_ts": w.newTS()})
	}
	w.notify()
}
