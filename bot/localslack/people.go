package localslack

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
)

// Person is a member, a guest or a stranger, and acts as one does in a Slack client.
type Person struct {
	*Member
	w *Workspace
}

// Member is what the workspace knows of a person. It does not change once the person was added.
type Member struct {
	ID          string
	Name        string // what others type after the @
	RealName    string
	DisplayName string
	TeamID      string // another one than the workspace's for people of a shared channel
	HomeTeam    string // the workspace's

	deleted, restricted, ultraRestricted, bot bool
	botID, appID                              string // of another app's bot
}

// IsStranger says whether somebody belongs to another team.
func (p *Member) IsStranger() bool { return p.TeamID != p.HomeTeam }

// IsGuest says whether somebody is a guest of either kind.
func (p *Member) IsGuest() bool { return p.restricted }

// IsDeleted says whether the account is deactivated.
func (p *Member) IsDeleted() bool { return p.deleted }

// IsBot says whether this is an app's bot user.
func (p *Member) IsBot() bool { return p.bot }

// UserOption makes somebody other than a full member.
type UserOption func(*Member)

// Guest is a multi-channel guest: is_restricted.
func Guest() UserOption { return func(p *Member) { p.restricted = true } }

// SingleChannelGuest is is_ultra_restricted too.
func SingleChannelGuest() UserOption {
	return func(p *Member) { p.restricted, p.ultraRestricted = true, true }
}

// Stranger is somebody of another team, met in a channel that is shared with it.
func Stranger(team string) UserOption { return func(p *Member) { p.TeamID = team } }

// Deleted is a deactivated account. It can still be looked up.
func Deleted() UserOption { return func(p *Member) { p.deleted = true } }

// Bot is the bot user of another app.
func Bot() UserOption { return func(p *Member) { p.bot = true } }

// Named sets real name and display name, which several people may share.
func Named(realName, displayName string) UserOption {
	return func(p *Member) { p.RealName, p.DisplayName = realName, displayName }
}

// AddUser adds somebody; name is what others type after the @.
func (w *Workspace) AddUser(name string, opts ...UserOption) *Person {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &Member{ID: w.newID("U"), Name: name, RealName: name, DisplayName: name, TeamID: w.opts.TeamID, HomeTeam: w.opts.TeamID}
	for _, o := range opts {
		o(p)
	}
	if p.bot {
		p.botID, p.appID = w.newID("B"), w.newID("A")
	}
	w.people[p.ID] = p
	w.peopleOrder = append(w.peopleOrder, p.ID)
	w.recordChange(change{kind: directoryChanged})
	w.notify()
	return &Person{Member: p, w: w}
}

// AddGroup adds a user group that people mention as @handle.
func (w *Places) AddGroup(handle string, users ...string) (id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := userGroup{ID: w.newID("S"), Handle: handle, Name: handle, Users: users}
	w.groups = append(w.groups, g)
	return g.ID
}

// PostOption changes how a message is posted.
type PostOption func(*Message)

// Broadcast also sends a reply to the channel: its event is a thread_broadcast instead of a plain message.
func Broadcast() PostOption { return func(m *Message) { m.broadcast = true } }

// WithFiles attaches files; only Name and Content are needed. The event is a file_share.
func WithFiles(files ...File) PostOption {
	return func(m *Message) {
		m.Files, m.Subtype, m.Upload = files, "file_share", true
		m.ClientMsgID, m.Team = "", "" // this event comes without
	}
}

// WithoutBlocks leaves the rich_text out, as old clients and some integrations do.
func WithoutBlocks() PostOption { return func(m *Message) { m.Blocks = nil } }

// WithBlocks replaces the rich_text, and WithText the text, for what the composer of this workspace does not make.
func WithBlocks(blocks json.RawMessage) PostOption { return func(m *Message) { m.Blocks = blocks } }

// WithText replaces the text as it goes over the wire.
func WithText(text string) PostOption { return func(m *Message) { m.Text = text } }

// MalformedBlocks makes blocks that no client can decode. They stay in the history, so a page of it is hit as well.
func MalformedBlocks() PostOption {
	return WithBlocks(json.RawMessage(`[{"type":"rich_text","block_id":17,"elements":{"type":"nonsense"}}]`))
}

// RawMessage sends a hand-made inner event instead; the message is stored as usual.
func RawMessage(inner json.RawMessage) PostOption { return func(m *Message) { m.raw = inner } }

// AsApp marks a post that an app made with the person's own token: it looks human but for bot_id and app_id.
func AsApp(botID, appID string) PostOption {
	return func(m *Message) { m.BotID, m.AppID, m.ClientMsgID = botID, appID, "" }
}

// AsBotMessage posts as an incoming webhook does: subtype bot_message, a username, and no user at all.
func AsBotMessage(username string) PostOption {
	return func(m *Message) {
		m.Subtype, m.Username, m.BotID = "bot_message", username, "B0WEBHOOK1"
		m.User, m.ClientMsgID, m.Team = "", "", ""
	}
}

// AsMeMessage is /me: subtype me_message.
func AsMeMessage() PostOption {
	return func(m *Message) { m.Subtype, m.ClientMsgID, m.Blocks, m.Team = "me_message", "", nil, "" }
}

// AllowLeadingSlash sends a text that starts with a slash and would be a command: mobile clients and other apps can.
func AllowLeadingSlash() PostOption { return func(m *Message) { m.leadingSlash = true } }

// Post writes a message in a channel, as typed: Slack escapes it, finds links and mentions and adds rich_text.
func (p *Person) Post(channel, text string, opts ...PostOption) (ts string, err error) {
	return p.send(channel, "", text, opts)
}

// Reply writes a message in a thread.
func (p *Person) Reply(channel, thread, text string, opts ...PostOption) (ts string, err error) {
	if thread == "" {
		return "", slackerr.Refusedf("a reply needs a thread")
	}
	return p.send(channel, thread, text, opts)
}

// commandWord is what a Slack client takes for a command.
var commandWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/[a-zA-Z][\w\-]*(\s|$)`) })

func (p *Person) send(channel, thread, text string, opts []PostOption) (string, error) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	ch, err := p.writableChannel(channel)
	if err != nil {
		return "", err
	}
	m := p.compose(ch, text)
	if thread != "" {
		root := ch.byTS[thread]
		if root == nil || root.IsReply() {
			return "", slackerr.Refusedf("there is no thread %s in %s", thread, ch.id)
		}
		m.ThreadTS, m.ParentUserID = thread, root.User
	}
	for _, o := range opts {
		o(m)
	}
	if word := commandWord().FindString(text); word != "" && !m.leadingSlash {
		return "", slackerr.Refusedf("%s is not a valid command. In Slack, all messages that start with the \"/\" character are interpreted as commands.", strings.TrimSpace(word))
	}
	if m.Text == "" && len(m.Files) == 0 && m.raw == nil {
		return "", slackerr.Refusedf("an empty message cannot be sent")
	}
	w.storeFiles(ch, m)
	w.post(ch, m)
	return m.TS, nil
}

// compose makes a message of what was typed. The caller holds mu.
func (p *Person) compose(ch *channelState, text string) *Message {
	w := p.w
	m := &Message{Type: "message", User: p.ID, TS: w.newTS(), ClientMsgID: slackid.UUID(), Team: p.TeamID}
	m.Text, m.Blocks = w.parseComposed(text)
	if ch.extShared {
		m.UserTeam, m.SourceTeam = p.TeamID, p.TeamID
	}
	if p.bot {
		m.BotID, m.AppID, m.ClientMsgID = p.botID, p.appID, ""
	}
	return m
}

// writableChannel finds a channel that this person can post in. The caller holds mu.
func (p *Person) writableChannel(channel string) (*channelState, error) {
	ch := p.w.channel(channel)
	switch {
	case ch == nil:
		return nil, slackerr.Refusedf("there is no channel %s", channel)
	case p.deleted:
		return nil, slackerr.Refusedf("%s is deactivated", p.Name)
	case !ch.hasMember(p.ID):
		return nil, slackerr.Refusedf("%s is not in %s", p.Name, channel)
	case ch.archived:
		return nil, slackerr.Refusedf("%s is archived", channel)
	}
	return ch, nil
}

// message finds a message that this person can see. The caller holds mu.
func (p *Person) visibleMessage(channel, ts string) (*channelState, *Message, error) {
	ch := p.w.channel(channel)
	if ch == nil || !ch.hasMember(p.ID) {
		return nil, nil, slackerr.Refusedf("%s is not in %s", p.Name, channel)
	}
	m := ch.byTS[ts]
	if m == nil {
		return nil, nil, slackerr.Refusedf("there is no message %s in %s", ts, channel)
	}
	return ch, m, nil
}

// Edit changes one's own message; the event is message_changed.
func (p *Person) Edit(channel, ts, text string) error {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	if m.User != p.ID {
		return slackerr.Refusedf("the message is not %s's", p.Name)
	}
	w.edit(ch, m, p.ID, func(m *Message) { m.Text, m.Blocks = w.parseComposed(text) })
	return nil
}

// Delete removes one's own message. A root with replies stays as a tombstone.
func (p *Person) Delete(channel, ts string) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	if m.User != p.ID {
		return slackerr.Refusedf("the message is not %s's", p.Name)
	}
	p.w.delete(ch, m)
	return nil
}

// React puts an emoji on a message.
func (p *Person) React(channel, ts, name string) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	return p.w.addReaction(ch, m, p.ID, name)
}

// Unreact takes it off again.
func (p *Person) Unreact(channel, ts, name string) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	return p.w.removeReaction(ch, m, p.ID, name)
}

// DeleteMessage removes anybody's message, as an admin does.
func (w *Feed) DeleteMessage(channel, ts string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil || ch.byTS[ts] == nil {
		return slackerr.Refusedf("there is no message %s in %s", ts, channel)
	}
	w.delete(ch, ch.byTS[ts])
	return nil
}

// Unfurl adds a link preview to a message: message_changed with the same text.
func (w *Feed) Unfurl(channel, ts string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channel(channel)
	if ch == nil || ch.byTS[ts] == nil {
		return slackerr.Refusedf("there is no message %s in %s", ts, channel)
	}
	w.unfurl(ch, ch.byTS[ts])
	return nil
}

// SendMessageReplied sends the hidden message_replied event of a thread.
func (w *Feed) SendMessageReplied(channel, ts string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.channel(channel); ch != nil && ch.byTS[ts] != nil {
		w.emitReplied(ch, ch.byTS[ts])
	}
}

func without(list []string, v string) []string {
	return slices.DeleteFunc(list, func(o string) bool { return o == v })
}
