package webapi

import (
	"regexp"
	"sync"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slacktime"
	"the-loop/bot/localslack/store"
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
	return nil, c.w.AddReaction(ch, m, c.w.BotUser, c.arg("name"))
}

func reactionsRemove(c *call) (store.Object, error) {
	ch, m, err := c.reactionTarget()
	if err != nil {
		return nil, err
	}
	return nil, c.w.RemoveReaction(ch, m, c.w.BotUser, c.arg("name"))
}

func reactionsGet(c *call) (store.Object, error) {
	ch, m, err := c.reactionTarget()
	if err != nil {
		return nil, err
	}
	return store.Object{"type": "message", "channel": ch.ID, "message": m.Clone()}, nil
}
