package workspace

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// readable finds a channel and checks the scope for its kind; what is history or read.
func (c *call) readable(what string) (*channelState, error) {
	ch, err := c.visible(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	return ch, c.w.needScope(c, scopeFor(ch.kind, what))
}

func (w *Workspace) channelInfo(ch *channelState) reply {
	out := reply{"id": ch.id, "created": ch.created, "is_archived": ch.archived, "is_im": ch.kind == DirectMessage,
		"is_mpim": ch.kind == GroupMessage, "is_channel": ch.kind == PublicChannel, "is_group": ch.kind == PrivateChannel,
		"is_private": ch.kind != PublicChannel, "is_ext_shared": ch.extShared, "is_pending_ext_shared": ch.pendingShare, "is_shared": ch.extShared,
		"is_org_shared": false, "is_general": false, "context_team_id": w.opts.TeamID}
	if ch.kind == DirectMessage {
		for _, m := range ch.members {
			if m != w.botUser {
				out["user"] = m
			}
		}
		return out
	}
	out["name"], out["name_normalized"], out["is_member"] = ch.name, ch.name, ch.has(w.botUser)
	out["topic"] = reply{"value": "", "creator": "", "last_set": 0}
	out["purpose"] = reply{"value": "", "creator": "", "last_set": 0}
	if ch.extShared {
		out["shared_team_ids"] = ch.shared
		out["conversation_host_id"] = w.opts.TeamID
	}
	return out
}

func conversationsInfo(c *call) (reply, error) {
	ch, err := c.readable("read")
	if err != nil {
		return nil, err
	}
	info := c.w.channelInfo(ch)
	if c.flag("include_num_members") {
		info["num_members"] = len(ch.members)
	}
	return reply{"channel": info}, nil
}

// bounds reads oldest, latest and inclusive.
func (c *call) bounds() (oldest, latest int64, inclusive bool, err error) {
	var ok bool
	if v := c.arg("oldest"); v != "" {
		if oldest, ok = parseTS(v); !ok {
			return 0, 0, false, fail("invalid_ts_oldest")
		}
	}
	if v := c.arg("latest"); v != "" && v != "now" {
		if latest, ok = parseTS(v); !ok {
			return 0, 0, false, fail("invalid_ts_latest")
		}
	}
	return oldest, latest, c.flag("inclusive"), nil
}

func cursor(kind, value string) string {
	return base64.StdEncoding.EncodeToString([]byte(kind + ":" + value))
}

// cursorArg returns the value within the cursor argument, "" when there is none.
func (c *call) cursorArg(kind string) (string, error) {
	v := c.arg("cursor")
	if v == "" {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(v)
	value, ok := strings.CutPrefix(string(raw), kind+":")
	if err != nil || !ok {
		return "", fail("invalid_cursor")
	}
	return value, nil
}

func page(out reply, next string) reply {
	if next != "" {
		out["response_metadata"] = reply{"next_cursor": next}
	}
	return out
}

// conversationsHistory pages from the newest to the oldest; replies are not in it unless they were broadcast.
func conversationsHistory(c *call) (reply, error) {
	ch, err := c.readable("history")
	if err != nil {
		return nil, err
	}
	if !ch.has(c.w.botUser) {
		return nil, fail("not_in_channel")
	}
	limit, err := c.limit(100, 999)
	if err != nil {
		return nil, err
	}
	oldest, latest, inclusive, err := c.bounds()
	if err != nil {
		return nil, err
	}
	msgs := between(ch.messages, oldest, latest, inclusive)
	before, err := c.cursorArg("next_ts")
	if err != nil {
		return nil, err
	}
	if before != "" {
		micro, _ := strconv.ParseInt(before, 10, 64)
		msgs = between(msgs, 0, micro, true)
	}
	return c.historyPage(msgs, limit), nil
}

func (c *call) historyPage(msgs []*Message, limit int) reply {
	out, next := []Message{}, ""
	for _, m := range slices.Backward(msgs) {
		if m.IsReply() && !m.broadcast {
			continue
		}
		if len(out) == limit {
			micro, _ := parseTS(m.TS)
			next = cursor("next_ts", strconv.FormatInt(micro, 10))
			break
		}
		out = append(out, c.shown(m))
	}
	return page(reply{"messages": out, "has_more": next != "", "pin_count": 0}, next)
}

// shown is a message as the app may read it: metadata only when asked for.
func (c *call) shown(m *Message) Message {
	s := m.clone()
	if !c.flag("include_all_metadata") {
		s.Metadata = nil
	}
	if m.broadcast {
		s.Subtype = "thread_broadcast"
	}
	return s
}

// conversationsReplies pages from the oldest to the newest, as documented. The root comes first on every page, whatever
// the bounds.
func conversationsReplies(c *call) (reply, error) {
	ch, err := c.readable("history")
	if err != nil {
		return nil, err
	}
	if !ch.has(c.w.botUser) {
		return nil, fail("not_in_channel")
	}
	root, err := c.rootOf(ch)
	if err != nil {
		return nil, err
	}
	limit, err := c.limit(1000, 1000)
	if err != nil {
		return nil, err
	}
	oldest, latest, inclusive, err := c.bounds()
	if err != nil {
		return nil, err
	}
	at, err := c.cursorArg("next_ts")
	if err != nil {
		return nil, err
	}
	micro, _ := strconv.ParseInt(at, 10, 64)
	msgs := between(ch.threads[root.TS], oldest, latest, inclusive)
	if c.w.opts.RepliesNewestFirst {
		msgs, micro = lastOf(between(msgs, 0, micro, true), limit-1)
	} else {
		msgs, micro = firstOf(between(msgs, micro, 0, true), limit-1)
	}
	return c.repliesPage(root, msgs, micro), nil
}

// rootOf finds the root of the thread that the ts argument is in: the root's own, or that of any reply.
func (c *call) rootOf(ch *channelState) (*Message, error) {
	m := ch.byTS[c.arg("ts")]
	if m != nil && m.IsReply() {
		m = ch.byTS[m.ThreadTS]
	}
	if m == nil || m.Subtype == "channel_join" {
		return nil, fail("thread_not_found")
	}
	return m, nil
}

// firstOf returns the oldest replies and where the next page starts; 0 when there is none.
func firstOf(msgs []*Message, room int) ([]*Message, int64) {
	room = max(room, 1)
	if len(msgs) <= room {
		return msgs, 0
	}
	next, _ := parseTS(msgs[room].TS)
	return msgs[:room], next
}

// lastOf returns the newest replies and where the page before them ends; 0 when there is none.
func lastOf(msgs []*Message, room int) ([]*Message, int64) {
	cut := len(msgs) - max(room, 1)
	if cut <= 0 {
		return msgs, 0
	}
	next, _ := parseTS(msgs[cut-1].TS)
	return msgs[cut:], next
}

func (c *call) repliesPage(root *Message, msgs []*Message, micro int64) reply {
	out, next := []Message{c.shown(root)}, ""
	if micro > 0 {
		next = cursor("next_ts", strconv.FormatInt(micro, 10))
	}
	for _, m := range msgs {
		out = append(out, c.shown(m))
	}
	return page(reply{"messages": out, "has_more": next != ""}, next)
}

// slicePage cuts a list that is paged by position.
func slicePage[T any](c *call, list []T, def, most int) (part []T, next string, err error) {
	limit, err := c.limit(def, most)
	if err != nil {
		return nil, "", err
	}
	at, err := c.cursorArg("offset")
	if err != nil {
		return nil, "", err
	}
	start, _ := strconv.Atoi(at)
	start = min(max(start, 0), len(list))
	end := min(start+limit, len(list))
	if end < len(list) {
		next = cursor("offset", strconv.Itoa(end))
	}
	return list[start:end], next, nil
}

func conversationsMembers(c *call) (reply, error) {
	ch, err := c.readable("read")
	if err != nil {
		return nil, err
	}
	part, next, err := slicePage(c, ch.members, 100, 1000)
	if err != nil {
		return nil, err
	}
	return page(reply{"members": append([]string{}, part...)}, next), nil
}

func conversationsList(c *call) (reply, error) { return c.channelList(false) }

// usersConversations are the channels that the bot is in.
func usersConversations(c *call) (reply, error) { return c.channelList(true) }

func (c *call) channelList(mine bool) (reply, error) {
	w := c.w
	kinds := map[string]Kind{"public_channel": PublicChannel, "private_channel": PrivateChannel, "im": DirectMessage, "mpim": GroupMessage}
	want := map[Kind]bool{}
	types := c.arg("types")
	if types == "" {
		types = "public_channel"
	}
	for t := range strings.SplitSeq(types, ",") {
		k, ok := kinds[strings.TrimSpace(t)]
		if !ok {
			return nil, fail("invalid_types")
		}
		if err := w.needScope(c, scopeFor(k, "read")); err != nil {
			return nil, err
		}
		want[k] = true
	}
	var list []reply
	for _, id := range w.channelOrder {
		ch := w.channels[id]
		hidden := (mine || ch.kind != PublicChannel) && !ch.has(w.botUser) || ch.archived && c.flag("exclude_archived")
		if want[ch.kind] && !hidden {
			info := w.channelInfo(ch)
			info["num_members"] = len(ch.members)
			list = append(list, info)
		}
	}
	part, next, err := slicePage(c, list, 100, 1000)
	if err != nil {
		return nil, err
	}
	return page(reply{"channels": append([]reply{}, part...)}, next), nil
}

func conversationsOpen(c *call) (reply, error) {
	users := strings.Split(c.arg("users"), ",")
	if len(users) != 1 || c.w.people[users[0]] == nil {
		return nil, fail("user_not_found")
	}
	return reply{"channel": c.w.channelInfo(c.w.im(users[0]))}, nil
}
