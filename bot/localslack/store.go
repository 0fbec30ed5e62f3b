package localslack

import (
	"slices"
	"sort"
	"strings"

	"the-loop/bot/localslack/slacktime"
)

// channelState is a conversation with its messages. The workspace's mu guards it.
type channelState struct {
	id        string
	name      string
	kind      ChannelKind
	extShared bool
	// pendingShare: another team was asked to share the channel.
	pendingShare bool
	archived     bool
	created      int64
	members      []string
	sharedTeams  []string // teams that share the channel
	messages     []*Message
	byTS         map[string]*Message
	threads      map[string][]*Message // root's ts → replies, oldest first
}

func (c *channelState) hasMember(user string) bool { return slices.Contains(c.members, user) }

func (c *channelState) add(m *Message) {
	c.messages = append(c.messages, m)
	c.byTS[m.TS] = m
	if !m.IsReply() {
		return
	}
	c.threads[m.ThreadTS] = append(c.threads[m.ThreadTS], m)
	if root := c.byTS[m.ThreadTS]; root != nil {
		root.ThreadTS = root.TS
		c.countReplies(root)
	}
}

// countReplies keeps what Slack tells about a thread on its root.
func (c *channelState) countReplies(root *Message) {
	replies := c.threads[root.TS]
	root.ReplyCount = len(replies)
	if len(replies) == 0 {
		root.ReplyUsers, root.ReplyUsersN, root.LatestReply = nil, 0, ""
		return
	}
	last := replies[len(replies)-1]
	root.LatestReply = last.TS
	if !slices.Contains(root.ReplyUsers, last.User) {
		root.ReplyUsers = append(slices.Clip(root.ReplyUsers), last.User)
	}
	root.ReplyUsersN = len(root.ReplyUsers)
}

func (c *channelState) remove(m *Message) {
	c.messages = slices.DeleteFunc(c.messages, func(o *Message) bool { return o == m })
	delete(c.byTS, m.TS)
	if !m.IsReply() {
		return
	}
	c.threads[m.ThreadTS] = slices.DeleteFunc(c.threads[m.ThreadTS], func(o *Message) bool { return o == m })
	if root := c.byTS[m.ThreadTS]; root != nil {
		c.countReplies(root)
	}
}

// messagesBetween returns the part of msgs (ordered by ts) within the bounds, which are microseconds; 0 means no bound.
func messagesBetween(msgs []*Message, oldest, latest int64, inclusive bool) []*Message {
	lo, hi := 0, len(msgs)
	at := func(i int) int64 { v, _ := slacktime.Parse(msgs[i].TS); return v }
	if oldest > 0 {
		lo = sort.Search(len(msgs), func(i int) bool { return at(i) > oldest || inclusive && at(i) == oldest })
	}
	if latest > 0 {
		hi = sort.Search(len(msgs), func(i int) bool { return at(i) > latest || !inclusive && at(i) == latest })
	}
	if lo >= hi {
		return nil
	}
	return msgs[lo:hi]
}

// channel finds a conversation by id or name. The caller holds mu.
func (w *Places) channel(ref string) *channelState {
	if c := w.channels[ref]; c != nil {
		return c
	}
	name := strings.TrimPrefix(ref, "#")
	for _, id := range w.channelOrder {
		if c := w.channels[id]; c.name != "" && c.name == name {
			return c
		}
	}
	return nil
}

// person finds a member by id or name. The caller holds mu.
func (w *Places) person(ref string) *Member {
	if p := w.people[ref]; p != nil {
		return p
	}
	name := strings.TrimPrefix(ref, "@")
	for _, id := range w.peopleOrder {
		if p := w.people[id]; p.Name == name {
			return p
		}
	}
	return nil
}

// im returns the direct message between the bot and a member, made when needed. The caller holds mu.
func (w *Places) im(user string) *channelState {
	for _, id := range w.channelOrder {
		c := w.channels[id]
		if c.kind == DirectMessage && c.hasMember(user) && c.hasMember(w.botUser) {
			return c
		}
	}
	return w.newChannel("D", &channelState{kind: DirectMessage, members: []string{user, w.botUser}})
}

func (w *Places) newChannel(prefix string, c *channelState) *channelState {
	c.id, c.created = w.newID(prefix), w.clock.Now().Unix()
	c.byTS, c.threads = map[string]*Message{}, map[string][]*Message{}
	w.channels[c.id] = c
	w.channelOrder = append(w.channelOrder, c.id)
	w.recordChange(change{kind: directoryChanged})
	w.notify()
	return c
}

func (m *Message) clone() Message {
	c := *m
	c.ReplyUsers = slices.Clone(m.ReplyUsers)
	c.Files = slices.Clone(m.Files)
	c.Reactions = slices.Clone(m.Reactions)
	for i := range c.Reactions {
		c.Reactions[i].Users = slices.Clone(c.Reactions[i].Users)
	}
	if m.Edited != nil {
		e := *m.Edited
		c.Edited = &e
	}
	return c
}

func cloneAll(msgs []*Message) []Message {
	out := make([]Message, len(msgs))
	for i, m := range msgs {
		out[i] = m.clone()
	}
	return out
}
