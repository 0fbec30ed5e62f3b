package slack

import (
	"cmp"
	"context"
	"net/url"

	"the-loop/threads/chat"
)

// Joined implements [chat.Channels].
func (c *Client) Joined(ctx context.Context) ([]string, error) {
	args := url.Values{"types": {"public_channel,private_channel"}, "exclude_archived": {"true"}, "limit": {pageSize}}
	var ids []string
	for {
		a, err := c.call(ctx, MethodJoined, args)
		if err != nil {
			return nil, err
		}
		for _, ch := range a.Objects("channels") {
			ids = append(ids, ch.Str("id"))
		}
		next := a.Obj("response_metadata").Str("next_cursor")
		if next == "" || next == args.Get("cursor") {
			return ids, nil
		}
		args.Set("cursor", next)
	}
}

// ChannelInfo is what Slack says of a channel.
type ChannelInfo struct {
	Name     string // without the #
	Archived bool
	Member   bool // the bot is in it
	Shared   bool // with another organisation, or about to be
}

// ChannelInfo asks Slack for a channel. The errors are those of [chat.History].
func (c *Client) ChannelInfo(ctx context.Context, id string) (ChannelInfo, error) {
	a, err := c.call(ctx, MethodChannel, url.Values{"channel": {id}})
	if err != nil {
		return ChannelInfo{}, err
	}
	ch := a.Obj("channel")
	return ChannelInfo{Name: cmp.Or(ch.Str("name"), id), Archived: ch.IsTrue("is_archived"), Member: ch.IsTrue("is_member"),
		Shared: ch.IsTrue("is_ext_shared") || ch.IsTrue("is_pending_ext_shared")}, nil
}

var _ chat.Channels = (*Client)(nil)
