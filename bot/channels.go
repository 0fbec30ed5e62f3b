package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"the-loop/bot/slack"
	"the-loop/sessions"
)

// config is the configuration, with the id that the channel has now: its author may not know the new one yet.
func (b *Bot) config() Config {
	c := b.rawConfig()
	if b.threads != nil { // not while it is made
		c.Channel = b.threads.CurrentChannel(c.Channel)
	}
	return c
}

// channels implements [reconcileNow.Channels], [reconcileNow.NoticeChannel] and [runCommand.Channels].
type channels struct{ b *Bot }

// Channel is the configured channel, by the id that it has now.
func (c channels) Channel() string { return c.b.o.Config().Channel }

// CurrentChannel is the id that a channel has now.
func (c channels) CurrentChannel(id string) string { return c.b.threads.CurrentChannel(id) }

// AnnounceChannel is where a session is announced, by the id that the channel has now.
func (c channels) AnnounceChannel(r sessions.Row) string {
	return c.CurrentChannel(cmp.Or(r.Chat.Channel, c.Channel()))
}

// CheckPostable fails when nothing of sessions may be posted in the channel.
func (c channels) CheckPostable(ctx context.Context, channel string) error {
	return c.b.sharing.Check(ctx, channel)
}

// Announces reports whether sessions are announced in the channel.
func (c channels) Announces(channel string) bool {
	if channel == c.Channel() {
		return true
	}
	for id := range c.b.threads.Sessions() {
		if at, _, bound := c.b.threads.ThreadOf(id); bound && at == channel {
			return true
		}
	}
	return false
}

// IsShared reports whether another organisation can read the channel and must not read of sessions.
func (c channels) IsShared(ctx context.Context, channel string) bool {
	var shared *slack.SharedChannelError
	return errors.As(c.CheckPostable(ctx, channel), &shared)
}

// StaleIDs are the entries of the configuration that name a channel by an id that Slack no longer knows.
func (c channels) StaleIDs(rows []sessions.Row) (errs []error) {
	check := func(key, id string) {
		if now := c.CurrentChannel(id); now != id {
			errs = append(errs, fmt.Errorf("%s is %s, and Slack gave that channel the id %s: write %s there", key, id, now, now))
		}
	}
	check("channels.slack.channel", c.b.rawConfig().Channel)
	for _, r := range rows {
		if r.Source == sessions.SourceDeclared {
			check("slack.channel of the session "+r.Name, r.Chat.Channel)
		}
	}
	return errs
}

// Advise adds to an error of Slack what to do about it.
func (c channels) Advise(err error) error {
	switch slack.ErrorCode(err) {
	case "not_in_channel", "channel_not_found":
		return fmt.Errorf("%w: write `/invite @%s` in the channel", err, c.b.o.Client.Self().Name)
	case "is_archived":
		return fmt.Errorf("%w: unarchive the channel, or use another one", err)
	}
	return err
}
