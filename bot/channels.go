package bot

import (
	"context"
	"fmt"
	"net/url"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

var _ chat.Channels = (*Client)(nil)

// Joined implements [threads.Channels].
func (c *Client) Joined(ctx context.Context) ([]string, error) {
	args := url.Values{"types": {"public_channel,private_channel"}, "exclude_archived": {"true"}, "limit": {pageSize}}
	var ids []string
	for {
		a, err := c.call(ctx, methodJoined, args)
		if err != nil {
			return nil, err
		}
		for _, ch := range a.objects("channels") {
			ids = append(ids, ch.str("id"))
		}
		next := a.obj("response_metadata").str("next_cursor")
		if next == "" || next == args.Get("cursor") {
			return ids, nil
		}
		args.Set("cursor", next)
	}
}

// config is the configuration with the id that the channel has now: whoever wrote it down may not know the new one yet.
func (b *Bot) config() Config {
	c := b.rawConfig()
	if b.threads != nil { // it is being made
		c.Channel = b.threads.CurrentChannel(c.Channel)
	}
	return c
}

// channelOf is where a session is announced, by the id that the channel has now.
func (b *Bot) announceChannel(r sessions.Row) string {
	return b.threads.CurrentChannel(firstNonEmpty(r.Chat.Channel, b.o.Config().Channel))
}

// staleChannelIDs are the entries of the configuration that name a channel by an id that Slack does not know any more.
func (b *Bot) staleChannelIDs(rows []sessions.Row) (errs []error) {
	say := func(key, id string) {
		if now := b.threads.CurrentChannel(id); now != id {
			errs = append(errs, fmt.Errorf("%s is %s, and Slack gave that channel the id %s: write %s there", key, id, now, now))
		}
	}
	say("channels.slack.channel", b.rawConfig().Channel)
	for _, r := range rows {
		if r.Source == sessions.SourceDeclared {
			say("slack.channel of the session "+r.Name, r.Chat.Channel)
		}
	}
	return errs
}
