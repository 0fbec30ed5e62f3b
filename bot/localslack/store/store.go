package store

import (
	"slices"
	"sort"
	"strings"

	"the-loop/bot/localslack/slacktime"
)

// ChannelState is a conversation with its messages. The store's Mu guards it.
type ChannelState struct {
	ID        string
	Name      string
	Kind      ChannelKind
	ExtShared bool
	// PendingShare: another team was asked to share the channel.
	PendingShare bool
	Archived     bool
	Created      int64
	Members      []string
	SharedTeams  []string // teams that share the channel
	Messages     []*Message
	ByTS         map[string]*Message
	Threads      map[string][]*Message // root's ts → replies, oldest first
}

// HasMember says whether somebody is in the channel.
func (c *ChannelState) HasMember(user string) bool { return slices.Contains(c.Members, user) }

// Add keeps a message, below its root if it is a reply.
func (c *ChannelState) Add(m *Message) {
	c.Messages = append(c.Messages, m)
	c.ByTS[m.TS] = m
	if !m.IsReply() {
		return
	}
	c.Threads[m.ThreadTS] = append(c.Threads[m.ThreadTS], m)
	if root := c.ByTS[m.ThreadTS]; root != nil {
		root.ThreadTS = root.TS
		c.countReplies(root)
	}
}

// countReplies keeps what Slack tells about a thread on its root.
func (c *ChannelState) countReplies(root *Message) {
	replies := c.Threads[root.TS]
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

// Remove takes a message out of the channel.
func (c *ChannelState) Remove(m *Message) {
	c.Messages = slices.DeleteFunc(c.Messages, func(o *Message) bool { return o == m })
	delete(c.ByTS, m.TS)
	if !m.IsReply() {
		return
	}
	c.Threads[m.ThreadTS] = slices.DeleteFunc(c.Threads[m.ThreadTS], func(o *Message) bool { return o == m })
	if root := c.ByTS[m.ThreadTS]; root != nil {
		c.countReplies(root)
	}
}

// MessagesBetween returns the part of msgs (ordered by ts) within the bounds, which are microseconds; 0 means no bound.
func MessagesBetween(msgs []*Message, oldest, latest int64, inclusive bool) []*Message {
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

// FindChannel finds a conversation by id or name. The caller holds Mu.
func (w *Places) FindChannel(ref string) *ChannelState {
	if c := w.ChannelsByID[ref]; c != nil {
		return c
	}
	name := strings.TrimPrefix(ref, "#")
	for _, id := range w.ChannelOrder {
		if c := w.ChannelsByID[id]; c.Name != "" && c.Name == name {
			return c
		}
	}
	return nil
}

// FindMember finds a member by id or name. The caller holds Mu.
func (w *Places) FindMember(ref string) *Member {
	if p := w.MembersByID[ref]; p != nil {
		return p
	}
	name := strings.TrimPrefix(ref, "@")
	for _, id := range w.PeopleOrder {
		if p := w.MembersByID[id]; p.Name == name {
			return p
		}
	}
	return nil
}

// Im returns the direct message between the bot and a member, made when needed. The caller holds Mu.
func (w *Places) Im(user string) *ChannelState {
	for _, id := range w.ChannelOrder {
		c := w.ChannelsByID[id]
		if c.Kind == DirectMessage && c.HasMember(user) && c.HasMember(w.BotUser) {
			return c
		}
	}
	return w.newChannel("D", &ChannelState{Kind: DirectMessage, Members: []string{user, w.BotUser}})
}

func (w *Places) newChannel(prefix string, c *ChannelState) *ChannelState {
	c.ID, c.Created = w.NewID(prefix), w.Clock.Now().Unix()
	c.ByTS, c.Threads = map[string]*Message{}, map[string][]*Message{}
	w.ChannelsByID[c.ID] = c
	w.ChannelOrder = append(w.ChannelOrder, c.ID)
	w.RecordChange(Change{Kind: DirectoryChanged})
	w.Notify()
	return c
}

// Clone is a copy that shares nothing which changes.
func (m *Message) Clone() Message {
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
		out[i] = m.Clone()
	}
	return out
}
