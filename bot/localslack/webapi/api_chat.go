package webapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

const (
	maxText       = 40_000 // chat.postMessage cuts what is longer
	maxUpdateText = 4_000
	maxMetadata   = 16_000 // bytes of metadata; the documented error is metadata_too_large
)

// messageContent is what the app says in a message, checked.
type messageContent struct {
	text        string
	blocks      json.RawMessage
	attachments json.RawMessage
	metadata    json.RawMessage
	truncated   bool
}

// parseContent checks text, blocks, markdown_text, attachments and metadata. most is the limit of the text; when hard, a
// longer one is msg_too_long, otherwise it is cut at maxText.
func (c *call) parseContent(hard bool) (messageContent, error) {
	var out messageContent
	md, hasBlocks := c.arg("markdown_text"), isNonEmptyList(c.arg("blocks"))
	out.text = c.arg("text")
	switch {
	case md != "" && (out.text != "" || hasBlocks):
		return out, slackerr.New("markdown_text_conflict")
	case utf8.RuneCountInString(md) > blockkit.MaxMarkdown:
		return out, slackerr.New("msg_too_long")
	case md != "":
		raw, _ := json.Marshal([]blockkit.Block{{"type": "markdown", "text": md}})
		out.text, out.blocks = md, blockkit.FillIDs(string(raw))
	case hasBlocks:
		if err := blockkit.Check(c.arg("blocks"), false); err != nil {
			return out, err
		}
		out.blocks = blockkit.FillIDs(c.arg("blocks"))
	}
	if isNonEmptyList(c.arg("attachments")) {
		out.attachments = json.RawMessage(c.arg("attachments"))
		if !json.Valid(out.attachments) {
			return out, slackerr.New("invalid_attachments")
		}
	}
	if strings.TrimSpace(out.text) == "" && out.blocks == nil && out.attachments == nil {
		return out, slackerr.New("no_text")
	}
	if err := out.limitText(hard); err != nil {
		return out, err
	}
	var err error
	out.metadata, err = c.parseMetadata()
	return out, err
}

// isNonEmptyList says whether a JSON list argument holds something; Slack ignores [] and an empty string.
func isNonEmptyList(list string) bool {
	t := strings.TrimSpace(list)
	return t != "" && t != "[]" && t != "null"
}

func (k *messageContent) limitText(hard bool) error {
	n := utf8.RuneCountInString(k.text)
	switch {
	case hard && n > maxUpdateText:
		return slackerr.New("msg_too_long")
	case n > maxText:
		k.text, k.truncated = string([]rune(k.text)[:maxText]), true
	}
	return nil
}

func (c *call) parseMetadata() (json.RawMessage, error) {
	raw := c.arg("metadata")
	if raw == "" {
		return nil, nil
	}
	var m struct {
		EventType    string         `json:"event_type"`
		EventPayload map[string]any `json:"event_payload"`
	}
	if json.Unmarshal([]byte(raw), &m) != nil {
		return nil, slackerr.New("invalid_metadata_format")
	}
	if strings.TrimSpace(raw) == "{}" {
		return json.RawMessage("{}"), nil
	}
	if m.EventType == "" || m.EventPayload == nil {
		return nil, slackerr.New("invalid_metadata_schema")
	}
	if len(raw) > maxMetadata {
		return nil, slackerr.New("metadata_too_large")
	}
	return json.RawMessage(raw), nil
}

// channelToPostIn finds the channel to post to. A member's id opens the direct message.
func (c *call) channelToPostIn() (*store.ChannelState, error) {
	w, ref := c.w, c.arg("channel")
	if ref == "" {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: channel")
	}
	if p := w.MembersByID[ref]; p != nil && !p.Bot && !p.Deleted {
		if w.Opts.NoMessages {
			return nil, slackerr.New("messages_tab_disabled")
		}
		return w.Im(p.ID), nil
	}
	return c.joinedChannel(ref)
}

// joinedChannel is a channel that the bot is in and that is in use.
func (c *call) joinedChannel(ref string) (*store.ChannelState, error) {
	ch, err := c.visibleChannel(ref)
	switch {
	case err != nil:
		return nil, err
	case ch.Archived:
		return nil, slackerr.New("is_archived")
	case !ch.HasMember(c.w.BotUser):
		return nil, slackerr.New("not_in_channel")
	}
	return ch, nil
}

// visibleChannel finds a channel that the bot may know of: a private one only as a member.
func (c *call) visibleChannel(ref string) (*store.ChannelState, error) {
	ch := c.w.ChannelsByID[ref]
	if ch == nil && strings.HasPrefix(ref, "#") {
		ch = c.w.FindChannel(ref)
	}
	if ch == nil || ch.Kind != store.PublicChannel && !ch.HasMember(c.w.BotUser) {
		return nil, slackerr.New("channel_not_found")
	}
	return ch, nil
}

// parentMessage checks thread_ts: a message of the channel that is not a reply itself.
func (c *call) parentMessage(ch *store.ChannelState) (*store.Message, error) {
	ts := c.arg("thread_ts")
	if ts == "" {
		return nil, nil
	}
	root := ch.ByTS[ts]
	switch {
	case root == nil:
		return nil, slackerr.New("thread_not_found")
	case root.IsReply(), root.Subtype == "channel_join":
		return nil, slackerr.New("cannot_reply_to_message")
	}
	return root, nil
}

func postMessage(c *call) (store.Object, error) {
	w := c.w
	ch, err := c.channelToPostIn()
	if err != nil {
		return nil, err
	}
	k, err := c.parseContent(false)
	if err != nil {
		return nil, err
	}
	root, err := c.parentMessage(ch)
	if err != nil {
		return nil, err
	}
	if err := w.limitPost(ch.ID); err != nil {
		return nil, err
	}
	m := w.newBotMessage(k)
	if root != nil {
		m.ThreadTS, m.ParentUserID = root.TS, root.User
		m.Broadcast = c.flag("reply_broadcast")
	}
	w.Post(ch, m)
	out := store.Object{"channel": ch.ID, "ts": m.TS, "message": m.Clone()}
	if k.truncated {
		out["warning"] = "message_truncated"
		out["response_metadata"] = store.Object{"warnings": []string{"message_truncated"}}
	}
	return out, nil
}

// newBotMessage is a message of the app's bot user. The caller holds Mu.
func (w *API) newBotMessage(k messageContent) *store.Message {
	blocks := k.blocks
	if blocks == nil {
		blocks = store.RichTextFromMrkdwn(k.text)
	}
	return &store.Message{Type: "message", User: w.BotUser, BotID: w.BotID(), AppID: w.AppID(), Team: w.Opts.TeamID,
		Text: k.text, Blocks: blocks, Attachments: k.attachments, Metadata: k.metadata, TS: w.NewTS()}
}

// ownMessage finds a message by ts that the app wrote itself.
func (c *call) ownMessage(ch *store.ChannelState, refusal string) (*store.Message, error) {
	m := ch.ByTS[c.arg("ts")]
	switch {
	case m == nil || m.Subtype == "tombstone":
		return nil, slackerr.New("message_not_found")
	case m.BotID != c.w.BotID():
		return nil, slackerr.New(refusal)
	}
	return m, nil
}

func updateMessage(c *call) (store.Object, error) {
	ch, err := c.visibleChannel(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	if ch.Archived {
		return nil, slackerr.New("is_inactive")
	}
	m, err := c.ownMessage(ch, "cant_update_message")
	if err != nil {
		return nil, err
	}
	k, err := c.parseContent(true)
	if err != nil {
		return nil, err
	}
	editor := c.w.BotUser
	if k.blocks != nil {
		editor = "" // an update of blocks leaves no mark of an edit
	}
	c.w.Edit(ch, m, editor, func(m *store.Message) {
		m.Text, m.Blocks = k.text, k.blocks
		if k.blocks == nil {
			m.Blocks = store.RichTextFromMrkdwn(k.text) // a text without blocks takes the place of blocks, buttons included
		}
		if _, given := c.args["attachments"]; given {
			m.Attachments = k.attachments
		}
		switch {
		case string(k.metadata) == "{}":
			m.Metadata = nil
		case k.metadata != nil:
			m.Metadata = k.metadata
		}
	})
	return store.Object{"channel": ch.ID, "ts": m.TS, "text": m.Text, "message": m.Clone()}, nil
}

func deleteMessage(c *call) (store.Object, error) {
	ch, err := c.visibleChannel(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	m, err := c.ownMessage(ch, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	c.w.Delete(ch, m)
	return store.Object{"channel": ch.ID, "ts": m.TS}, nil
}

func postEphemeral(c *call) (store.Object, error) {
	w := c.w
	ch, err := c.channelToPostIn()
	if err != nil {
		return nil, err
	}
	user := c.arg("user")
	switch {
	case w.MembersByID[user] == nil:
		return nil, slackerr.New("user_not_found")
	case !ch.HasMember(user):
		return nil, slackerr.New("user_not_in_channel")
	}
	k, err := c.parseContent(false)
	if err != nil {
		return nil, err
	}
	e := store.Ephemeral{Channel: ch.ID, User: user, ThreadTS: c.arg("thread_ts"), Text: k.text, Blocks: k.blocks,
		Source: "chat.postEphemeral"}
	return store.Object{"message_ts": w.ShowEphemeral(e)}, nil
}

func getPermalink(c *call) (store.Object, error) {
	ch, err := c.visibleChannel(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	m := ch.ByTS[c.arg("message_ts")]
	if m == nil {
		return nil, slackerr.New("message_not_found")
	}
	return store.Object{"channel": ch.ID, "permalink": c.w.permalink(ch, m)}, nil
}

func (w *API) permalink(ch *store.ChannelState, m *store.Message) string {
	link := "https://" + w.Opts.TeamDomain + ".slack.com/archives/" + ch.ID + "/p" + strings.ReplaceAll(m.TS, ".", "")
	if m.IsReply() {
		link += "?" + url.Values{"thread_ts": {m.ThreadTS}, "cid": {ch.ID}}.Encode()
	}
	return link
}
