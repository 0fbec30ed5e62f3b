package webapi

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
)

// readableChannel finds a channel and checks the scope for its kind; what is history or read.
func (c *call) readableChannel(what string) (*store.ChannelState, error) {
	ch, err := c.visibleChannel(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	return ch, c.w.requireScope(c, store.ScopeFor(ch.Kind, what))
}

func (w *API) channelInfo(ch *store.ChannelState) store.Object {
	out := store.Object{"id": ch.ID, "created": ch.Created, "is_archived": ch.Archived, "is_im": ch.Kind == store.DirectMessage,
		"is_mpim": ch.Kind == store.GroupMessage, "is_channel": ch.Kind == store.PublicChannel, "is_group": ch.Kind == store.PrivateChannel,
		"is_private": ch.Kind != store.PublicChannel, "is_ext_shared": ch.ExtShared, "is_pending_ext_shared": ch.PendingShare, "is_shared": ch.ExtShared,
		"is_org_shared": false, "is_general": false, "context_team_id": w.Opts.TeamID}
	if ch.Kind == store.DirectMessage {
		for _, m := range ch.Members {
			if m != w.BotUser {
				out["user"] = m
			}
		}
		return out
	}
	out["name"], out["name_normalized"], out["is_member"] = ch.Name, ch.Name, ch.HasMember(w.BotUser)
	out["topic"] = store.Object{"value": "", "creator": "", "last_set": 0}
	out["purpose"] = store.Object{"value": "", "creator": "", "last_set": 0}
	if ch.ExtShared {
		out["shared_team_ids"] = ch.SharedTeams
		out["conversation_host_id"] = w.Opts.TeamID
	}
	return out
}

func conversationsInfo(c *call) (store.Object, error) {
	ch, err := c.readableChannel("read")
	if err != nil {
		return nil, err
	}
	info := c.w.channelInfo(ch)
	if c.flag("include_num_members") {
		info["num_members"] = len(ch.Members)
	}
	return store.Object{"channel": info}, nil
}

// timeRange reads oldest, latest and inclusive.
func (c *call) timeRange() (oldest, latest int64, inclusive bool, err error) {
	var ok bool
	if v := c.arg("oldest"); v != "" {
		if oldest, ok = slacktime.Parse(v); !ok {
			return 0, 0, false, slackerr.New("invalid_ts_oldest")
		}
	}
	if v := c.arg("latest"); v != "" && v != "now" {
		if latest, ok = slacktime.Parse(v); !ok {
			return 0, 0, false, slackerr.New("invalid_ts_latest")
		}
	}
	return oldest, latest, c.flag("inclusive"), nil
}

func encodeCursor(kind, value string) string {
	return base64.StdEncoding.EncodeToString([]byte(kind + ":" + value))
}

// decodeCursor returns the value within the cursor argument, "" when there is none.
func (c *call) decodeCursor(kind string) (string, error) {
	v := c.arg("cursor")
	if v == "" {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(v)
	value, ok := strings.CutPrefix(string(raw), kind+":")
	if err != nil || !ok {
		return "", slackerr.New("invalid_cursor")
	}
	return value, nil
}

func withNextCursor(out store.Object, next string) store.Object {
	if next != "" {
		out["response_metadata"] = store.Object{"next_cursor": next}
	}
	return out
}

// conversationsHistory pages from the newest to the oldest; replies are not in it unless they were broadcast.
func conversationsHistory(c *call) (store.Object, error) {
	ch, err := c.readableChannel("history")
	if err != nil {
		return nil, err
	}
	if !ch.HasMember(c.w.BotUser) {
		return nil, slackerr.New("not_in_channel")
	}
	limit, err := c.limit(100, 999)
	if err != nil {
		return nil, err
	}
	oldest, latest, inclusive, err := c.timeRange()
	if err != nil {
		return nil, err
	}
	msgs := store.MessagesBetween(ch.Messages, oldest, latest, inclusive)
	before, err := c.decodeCursor("next_ts")
	if err != nil {
		return nil, err
	}
	if before != "" {
		micro, _ := strconv.ParseInt(before, 10, 64)
		msgs = store.MessagesBetween(msgs, 0, micro, true)
	}
	return c.historyPage(msgs, limit), nil
}

func (c *call) historyPage(msgs []*store.Message, limit int) store.Object {
	out, next := []store.Message{}, ""
	for _, m := range slices.Backward(msgs) {
		if m.IsReply() && !m.Broadcast {
			continue
		}
		if len(out) == limit {
			micro, _ := slacktime.Parse(m.TS)
			next = encodeCursor("next_ts", strconv.FormatInt(micro, 10))
			break
		}
		out = append(out, c.visibleMessage(m))
	}
	return withNextCursor(store.Object{"messages": out, "has_more": next != "", "pin_count": 0}, next)
}

// visibleMessage is a message as the app may read it: metadata only when asked for.
func (c *call) visibleMessage(m *store.Message) store.Message {
	s := m.Clone()
	if !c.flag("include_all_metadata") {
		s.Metadata = nil
	}
	if m.Broadcast {
		s.Subtype = "thread_broadcast"
	}
	return s
}

// conversationsReplies pages from the oldest to the newest, as documented. The root comes first on every page, whatever
// the bounds.
func conversationsReplies(c *call) (store.Object, error) {
	ch, err := c.readableChannel("history")
	if err != nil {
		return nil, err
	}
	if !ch.HasMember(c.w.BotUser) {
		return nil, slackerr.New("not_in_channel")
	}
	root, err := c.rootOf(ch)
	if err != nil {
		return nil, err
	}
	limit, err := c.limit(1000, 1000)
	if err != nil {
		return nil, err
	}
	oldest, latest, inclusive, err := c.timeRange()
	if err != nil {
		return nil, err
	}
	at, err := c.decodeCursor("next_ts")
	if err != nil {
		return nil, err
	}
	micro, _ := strconv.ParseInt(at, 10, 64)
	msgs := store.MessagesBetween(ch.Threads[root.TS], oldest, latest, inclusive)
	if c.w.Opts.RepliesNewestFirst {
		msgs, micro = newestReplies(store.MessagesBetween(msgs, 0, micro, true), limit-1)
	} else {
		msgs, micro = oldestReplies(store.MessagesBetween(msgs, micro, 0, true), limit-1)
	}
	return c.repliesPage(root, msgs, micro), nil
}

// rootOf finds the root of the thread that the ts argument is in: the root's own, or that of any reply.
func (c *call) rootOf(ch *store.ChannelState) (*store.Message, error) {
	m := ch.ByTS[c.arg("ts")]
	if m != nil && m.IsReply() {
		m = ch.ByTS[m.ThreadTS]
	}
	if m == nil || m.Subtype == "channel_join" {
		return nil, slackerr.New("thread_not_found")
	}
	return m, nil
}

// oldestReplies returns the oldest replies and where the next page starts; 0 when there is none.
func oldestReplies(msgs []*store.Message, room int) ([]*store.Message, int64) {
	room = max(room, 1)
	if len(msgs) <= room {
		return msgs, 0
	}
	next, _ := slacktime.Parse(msgs[room].TS)
	return msgs[:room], next
}

// newestReplies returns the newest replies and where the page before them ends; 0 when there is none.
func newestReplies(msgs []*store.Message, room int) ([]*store.Message, int64) {
	cut := len(msgs) - max(room, 1)
	if cut <= 0 {
		return msgs, 0
	}
	next, _ := slacktime.Parse(msgs[cut-1].TS)
	return msgs[cut:], next
}

func (c *call) repliesPage(root *store.Message, msgs []*store.Message, micro int64) store.Object {
	out, next := []store.Message{c.visibleMessage(root)}, ""
	if micro > 0 {
		next = encodeCursor("next_ts", strconv.FormatInt(micro, 10))
	}
	for _, m := range msgs {
		out = append(out, c.visibleMessage(m))
	}
	return withNextCursor(store.Object{"messages": out, "has_more": next != ""}, next)
}

// paginate cuts a list that is paged by position.
func paginate[T any](c *call, list []T, def, most int) (part []T, next string, err error) {
	limit, err := c.limit(def, most)
	if err != nil {
		return nil, "", err
	}
	at, err := c.decodeCursor("offset")
	if err != nil {
		return nil, "", err
	}
	start, _ := strconv.Atoi(at)
	start = min(max(start, 0), len(list))
	end := min(start+limit, len(list))
	if end < len(list) {
		next = encodeCursor("offset", strconv.Itoa(end))
	}
	return list[start:end], next, nil
}

func conversationsMembers(c *call) (store.Object, error) {
	ch, err := c.readableChannel("read")
	if err != nil {
		return nil, err
	}
	part, next, err := paginate(c, ch.Members, 100, 1000)
	if err != nil {
		return nil, err
	}
	return withNextCursor(store.Object{"members": append([]string{}, part...)}, next), nil
}

func conversationsList(c *call) (store.Object, error) { return c.listChannels(false) }

// usersConversations are the channels that the bot is in.
func usersConversations(c *call) (store.Object, error) { return c.listChannels(true) }

func (c *call) listChannels(mine bool) (store.Object, error) {
	w := c.w
	kinds := map[string]store.ChannelKind{"public_channel": store.PublicChannel, "private_channel": store.PrivateChannel, "im": store.DirectMessage, "mpim": store.GroupMessage}
	want := map[store.ChannelKind]bool{}
	types := c.arg("types")
	if types == "" {
		types = "public_channel"
	}
	for t := range strings.SplitSeq(types, ",") {
		k, ok := kinds[strings.TrimSpace(t)]
		if !ok {
			return nil, slackerr.New("invalid_types")
		}
		if err := w.requireScope(c, store.ScopeFor(k, "read")); err != nil {
			return nil, err
		}
		want[k] = true
	}
	var list []store.Object
	for _, id := range w.ChannelOrder {
		ch := w.ChannelsByID[id]
		hidden := (mine || ch.Kind != store.PublicChannel) && !ch.HasMember(w.BotUser) || ch.Archived && c.flag("exclude_archived")
		if want[ch.Kind] && !hidden {
			info := w.channelInfo(ch)
			info["num_members"] = len(ch.Members)
			list = append(list, info)
		}
	}
	part, next, err := paginate(c, list, 100, 1000)
	if err != nil {
		return nil, err
	}
	return withNextCursor(store.Object{"channels": append([]store.Object{}, part...)}, next), nil
}

func conversationsOpen(c *call) (store.Object, error) {
	users := strings.Split(c.arg("users"), ",")
	if len(users) != 1 || c.w.MembersByID[users[0]] == nil {
		return nil, slackerr.New("user_not_found")
	}
	return store.Object{"channel": c.w.channelInfo(c.w.Im(users[0]))}, nil
}
