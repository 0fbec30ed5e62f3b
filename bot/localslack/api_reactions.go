package localslack

import (
	"regexp"
	"slices"
	"sync"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
)

const (
	maxReactionsPerUser = 23 // different emoji of one member on one message
	maxEmojiPerItem     = 50
)

var emojiName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_+'\-]+(::skin-tone-[2-6])?$`) })

// reactionTarget finds the message of a reaction call.
func (c *call) reactionTarget() (*store.ChannelState, *store.Message, error) {
	if c.arg("channel") == "" || c.arg("timestamp") == "" {
		return nil, nil, slackerr.New("no_item_specified")
	}
	if _, ok := slacktime.Parse(c.arg("timestamp")); !ok {
		return nil, nil, slackerr.New("bad_timestamp")
	}
	ch, err := c.visibleChannel(c.arg("channel"))
	switch {
	case err != nil:
		return nil, nil, err
	case !ch.HasMember(c.w.BotUser):
		return nil, nil, slackerr.New("not_in_channel")
	}
	m := ch.ByTS[c.arg("timestamp")]
	if m == nil || m.Subtype == "tombstone" {
		return nil, nil, slackerr.New("message_not_found")
	}
	return ch, m, nil
}

func reactionsAdd(c *call) (store.Object, error) {
	ch, m, err := c.reactionTarget()
	switch {
	case err != nil:
		return nil, err
	case ch.Archived:
		return nil, slackerr.New("is_archived")
	case !emojiName().MatchString(c.arg("name")):
		return nil, slackerr.New("invalid_name")
	}
	return nil, c.w.addReaction(ch, m, c.w.BotUser, c.arg("name"))
}

// addReaction puts one member's emoji on a message. The caller holds mu.
func (w *Feed) addReaction(ch *store.ChannelState, m *store.Message, user, name string) error {
	own, at := 0, -1
	for i, r := range m.Reactions {
		if slices.Contains(r.Users, user) {
			own++
		}
		if r.Name == name {
			at = i
		}
	}
	switch {
	case at >= 0 && slices.Contains(m.Reactions[at].Users, user):
		return slackerr.New("already_reacted")
	case own >= maxReactionsPerUser:
		return slackerr.New("too_many_reactions")
	case at < 0 && len(m.Reactions) >= maxEmojiPerItem:
		return slackerr.New("too_many_emoji")
	case at < 0:
		m.Reactions = append(m.Reactions, store.Reaction{Name: name})
		at = len(m.Reactions) - 1
	}
	r := &m.Reactions[at]
	r.Users = append(r.Users, user)
	r.Count = len(r.Users)
	w.emitReaction("reaction_added", ch, m, user, name)
	return nil
}

func reactionsRemove(c *call) (store.Object, error) {
	ch, m, err := c.reactionTarget()
	if err != nil {
		return nil, err
	}
	return nil, c.w.removeReaction(ch, m, c.w.BotUser, c.arg("name"))
}

// removeReaction takes one member's emoji off a message. The caller holds mu.
func (w *Feed) removeReaction(ch *store.ChannelState, m *store.Message, user, name string) error {
	for i := range m.Reactions {
		r := &m.Reactions[i]
		if r.Name != name || !slices.Contains(r.Users, user) {
			continue
		}
		r.Users = slices.DeleteFunc(r.Users, func(u string) bool { return u == user })
		r.Count = len(r.Users)
		if r.Count == 0 {
			m.Reactions = slices.Delete(m.Reactions, i, i+1)
		}
		w.emitReaction("reaction_removed", ch, m, user, name)
		return nil
	}
	return slackerr.New("no_reaction")
}

func reactionsGet(c *call) (store.Object, error) {
	ch, m, err := c.reactionTarget()
	if err != nil {
		return nil, err
	}
	return store.Object{"type": "message", "channel": ch.Id, "message": m.Clone()}, nil
}
