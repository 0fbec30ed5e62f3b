package events

import (
	"slices"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

const (
	MaxReactionsPerUser = 23 // different emoji of one member on one message
	maxEmojiPerItem     = 50
)

// AddReaction puts one member's emoji on a message. The caller holds Mu.
func (w *Feed) AddReaction(ch *store.ChannelState, m *store.Message, user, name string) error {
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
	case own >= MaxReactionsPerUser:
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

// RemoveReaction takes one member's emoji off a message. The caller holds Mu.
func (w *Feed) RemoveReaction(ch *store.ChannelState, m *store.Message, user, name string) error {
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
