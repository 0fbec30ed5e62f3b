package localslack

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/store"
)

// Person is a member, a guest or a stranger, and acts as one does in a Slack client.
type Person struct {
	*store.Member
	w *Workspace
}

// AddUser adds somebody; name is what others type after the @.
func (w *Workspace) AddUser(name string, opts ...store.UserOption) *Person {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	p := &store.Member{ID: w.NewID("U"), Name: name, RealName: name, DisplayName: name, TeamID: w.Opts.TeamID, HomeTeam: w.Opts.TeamID}
	for _, o := range opts {
		o(p)
	}
	if p.Bot {
		p.BotID, p.AppID = w.NewID("B"), w.NewID("A")
	}
	w.MembersByID[p.ID] = p
	w.PeopleOrder = append(w.PeopleOrder, p.ID)
	w.RecordChange(store.Change{Kind: store.DirectoryChanged})
	w.Notify()
	return &Person{Member: p, w: w}
}

// PostOption changes how a message is posted.
type PostOption func(*store.Message)

// Broadcast also sends a reply to the channel: its event is a thread_broadcast instead of a plain message.
func Broadcast() PostOption { return func(m *store.Message) { m.Broadcast = true } }

// WithFiles attaches files; only Name and Content are needed. The event is a file_share.
func WithFiles(files ...store.File) PostOption {
	return func(m *store.Message) {
		m.Files, m.Subtype, m.Upload = files, "file_share", true
		m.ClientMsgID, m.Team = "", "" // this event comes without
	}
}

// WithoutBlocks leaves the rich_text out, as old clients and some integrations do.
func WithoutBlocks() PostOption { return func(m *store.Message) { m.Blocks = nil } }

// WithBlocks replaces the rich_text, and WithText the text, for what the composer of this workspace does not make.
func WithBlocks(blocks json.RawMessage) PostOption {
	return func(m *store.Message) { m.Blocks = blocks }
}

// WithText replaces the text as it goes over the wire.
func WithText(text string) PostOption { return func(m *store.Message) { m.Text = text } }

// MalformedBlocks makes blocks that no client can decode. They stay in the history, so a page of it is hit as well.
func MalformedBlocks() PostOption {
	return WithBlocks(json.RawMessage(`[{"type":"rich_text","block_id":17,"elements":{"type":"nonsense"}}]`))
}

// RawMessage sends a hand-made inner event instead; the message is stored as usual.
func RawMessage(inner json.RawMessage) PostOption { return func(m *store.Message) { m.Raw = inner } }

// AsApp marks a post that an app made with the person's own token: it looks human but for bot_id and app_id.
func AsApp(botID, appID string) PostOption {
	return func(m *store.Message) { m.BotID, m.AppID, m.ClientMsgID = botID, appID, "" }
}

// AsBotMessage posts as an incoming webhook does: subtype bot_message, a username, and no user at all.
func AsBotMessage(username string) PostOption {
	return func(m *store.Message) {
		m.Subtype, m.Username, m.BotID = "bot_message", username, "B0WEBHOOK1"
		m.User, m.ClientMsgID, m.Team = "", "", ""
	}
}

// AsMeMessage is /me: subtype me_message.
func AsMeMessage() PostOption {
	return func(m *store.Message) { m.Subtype, m.ClientMsgID, m.Blocks, m.Team = "me_message", "", nil, "" }
}

// AllowLeadingSlash sends a text that starts with a slash and would be a command: mobile clients and other apps can.
func AllowLeadingSlash() PostOption { return func(m *store.Message) { m.LeadingSlash = true } }

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
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch, err := p.writableChannel(channel)
	if err != nil {
		return "", err
	}
	m := p.compose(ch, text)
	if thread != "" {
		root := ch.ByTS[thread]
		if root == nil || root.IsReply() {
			return "", slackerr.Refusedf("there is no thread %s in %s", thread, ch.ID)
		}
		m.ThreadTS, m.ParentUserID = thread, root.User
	}
	for _, o := range opts {
		o(m)
	}
	if word := commandWord().FindString(text); word != "" && !m.LeadingSlash {
		return "", slackerr.Refusedf("%s is not a valid command. In Slack, all messages that start with the \"/\" character are interpreted as commands.", strings.TrimSpace(word))
	}
	if m.Text == "" && len(m.Files) == 0 && m.Raw == nil {
		return "", slackerr.Refusedf("an empty message cannot be sent")
	}
	w.StoreFiles(ch, m)
	w.Post(ch, m)
	return m.TS, nil
}

// compose makes a message of what was typed. The caller holds Mu.
func (p *Person) compose(ch *store.ChannelState, text string) *store.Message {
	w := p.w
	m := &store.Message{Type: "message", User: p.ID, TS: w.NewTS(), ClientMsgID: slackid.UUID(), Team: p.TeamID}
	m.Text, m.Blocks = w.ParseComposed(text)
	if ch.ExtShared {
		m.UserTeam, m.SourceTeam = p.TeamID, p.TeamID
	}
	if p.Bot {
		m.BotID, m.AppID, m.ClientMsgID = p.BotID, p.AppID, ""
	}
	return m
}

// writableChannel finds a channel that this person can post in. The caller holds Mu.
func (p *Person) writableChannel(channel string) (*store.ChannelState, error) {
	ch := p.w.FindChannel(channel)
	switch {
	case ch == nil:
		return nil, slackerr.Refusedf("there is no channel %s", channel)
	case p.Deleted:
		return nil, slackerr.Refusedf("%s is deactivated", p.Name)
	case !ch.HasMember(p.ID):
		return nil, slackerr.Refusedf("%s is not in %s", p.Name, channel)
	case ch.Archived:
		return nil, slackerr.Refusedf("%s is archived", channel)
	}
	return ch, nil
}

// visibleMessage finds a message that this person can see. The caller holds Mu.
func (p *Person) visibleMessage(channel, ts string) (*store.ChannelState, *store.Message, error) {
	ch := p.w.FindChannel(channel)
	if ch == nil || !ch.HasMember(p.ID) {
		return nil, nil, slackerr.Refusedf("%s is not in %s", p.Name, channel)
	}
	m := ch.ByTS[ts]
	if m == nil {
		return nil, nil, slackerr.Refusedf("there is no message %s in %s", ts, channel)
	}
	return ch, m, nil
}

// Edit changes one's own message; the event is message_changed.
func (p *Person) Edit(channel, ts, text string) error {
	w := p.w
	w.Mu.Lock()
	defer w.Mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	if m.User != p.ID {
		return slackerr.Refusedf("the message is not %s's", p.Name)
	}
	w.Edit(ch, m, p.ID, func(m *store.Message) { m.Text, m.Blocks = w.ParseComposed(text) })
	return nil
}

// Delete removes one's own message. A root with replies stays as a tombstone.
func (p *Person) Delete(channel, ts string) error {
	p.w.Mu.Lock()
	defer p.w.Mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	if m.User != p.ID {
		return slackerr.Refusedf("the message is not %s's", p.Name)
	}
	p.w.Delete(ch, m)
	return nil
}

// React puts an emoji on a message.
func (p *Person) React(channel, ts, name string) error {
	p.w.Mu.Lock()
	defer p.w.Mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	return p.w.AddReaction(ch, m, p.ID, name)
}

// Unreact takes it off again.
func (p *Person) Unreact(channel, ts, name string) error {
	p.w.Mu.Lock()
	defer p.w.Mu.Unlock()
	ch, m, err := p.visibleMessage(channel, ts)
	if err != nil {
		return err
	}
	return p.w.RemoveReaction(ch, m, p.ID, name)
}
