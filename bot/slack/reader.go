package slack

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"the-loop/authz"
	"the-loop/threads/chat"
)

// Reader reads threads and finds our own messages in them.
type Reader struct {
	*API
	people *People
}

// Replies implements [chat.History]. Only what people wrote is returned: no root, no bots, no joins. Page.Now is
// zero when the answer had no Date.
func (c *Reader) Replies(ctx context.Context, channel, root, oldest, cursor string) (chat.Page, error) {
	if err := c.EnsureIdentified(ctx); err != nil {
		return chat.Page{}, err
	}
	args := url.Values{"channel": {channel}, "ts": {root}, "limit": {pageSize}}
	setIf(args, "oldest", oldest)
	setIf(args, "cursor", cursor)
	a, err := c.call(ctx, MethodReplies, args)
	if err != nil {
		return chat.Page{}, err
	}
	page := chat.Page{Next: a.Obj("response_metadata").Str("next_cursor"), Now: a.date}
	for _, o := range a.Objects("messages") {
		m := message{Object: o, channel: channel}
		if m.ts() == root && m.subtype() == subtypeTombstone {
			return chat.Page{}, fmt.Errorf("%s: the root was deleted: %w", MethodReplies, chat.ErrThreadGone)
		}
		if r, drop := c.readReply(m); drop == "" && r.Root == root && isAfter(r.TS, oldest) {
			page.Replies = append(page.Replies, r)
		}
	}
	slices.SortStableFunc(page.Replies, func(a, b chat.Reply) int { return chat.CompareTS(a.TS, b.TS) })
	return page, nil
}

// Reply implements [chat.History].
func (c *Reader) Reply(ctx context.Context, channel, root, ts string) (chat.Reply, error) {
	if err := c.EnsureIdentified(ctx); err != nil {
		return chat.Reply{}, err
	}
	a, err := c.call(ctx, MethodReplies, url.Values{"channel": {channel}, "ts": {root}, "oldest": {ts}, "latest": {ts},
		"inclusive": {"true"}, "limit": {"10"}})
	if err != nil {
		return chat.Reply{}, err
	}
	for _, o := range a.Objects("messages") {
		m := message{Object: o, channel: channel}
		if m.ts() != ts {
			continue
		}
		if r, drop := c.readReply(m); drop == "" {
			return r, nil
		}
	}
	return chat.Reply{}, fmt.Errorf("%s: %w", MethodReplies, chat.ErrReplyGone)
}

// FindPost implements [chat.History]. The search begins a minute before since.
func (c *Reader) FindPost(ctx context.Context, channel, root, nonce string, since time.Time) (string, error) {
	if err := c.EnsureIdentified(ctx); err != nil {
		return "", err
	}
	method, args := MethodHistory, url.Values{"channel": {channel}}
	if !since.IsZero() {
		args.Set("oldest", chat.TimeTS(since.Add(-time.Minute)))
	}
	if root != "" {
		method = MethodReplies
		args.Set("ts", root)
	} else if !since.IsZero() {
		args.Set("latest", chat.TimeTS(since.Add(3*time.Minute)))
	}
	args.Set("include_all_metadata", "true")
	args.Set("limit", pageSize)
	return c.findOwn(ctx, method, args, func(m message) bool { return m.nonce() == nonce })
}

// readReply reads a message of a thread; drop is the reason when it is not a person's reply.
func (c *Reader) readReply(m message) (r chat.Reply, drop string) {
	self := c.Self()
	if drop = m.dropReason(self); drop != "" {
		return chat.Reply{}, drop
	}
	actor := m.actor(self)
	return chat.Reply{Channel: m.channel, Root: m.thread(), TS: m.ts(), Edited: m.Obj("edited").Str("ts"), Actor: actor, Command: m.mentionCommand(self, c.plainNames()),
		Load: func(ctx context.Context) (chat.Content, error) { return c.loadContent(ctx, m, actor) }}, ""
}

// loadContent completes a reply: who wrote it, and what it says with the names of the people and channels in it.
func (c *Reader) loadContent(ctx context.Context, m message, actor authz.Actor) (chat.Content, error) {
	actor, person, err := c.people.ResolveActor(ctx, actor)
	if err != nil {
		return chat.Content{}, err
	}
	text, missing := m.read(c.people.nameLookup(ctx))
	return chat.Content{Actor: actor, Speaker: cmp.Or(c.text.DisplayName(person.Name), actor.User), Text: text, Unreadable: missing, Files: m.files()}, nil
}

// isAfter reports whether a message is newer than oldest; with an empty oldest every message is.
func isAfter(ts, oldest string) bool { return oldest == "" || chat.CompareTS(ts, oldest) > 0 }
