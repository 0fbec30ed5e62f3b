package bot

import (
	"cmp"
	"fmt"

	"the-loop/sessions"
)

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
	return b.threads.CurrentChannel(cmp.Or(r.Chat.Channel, b.o.Config().Channel))
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
