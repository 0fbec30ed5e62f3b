package localslack

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
)

const (
	maxText       = 40_000 // chat.postMessage cuts what is longer
	maxUpdateText = 4_000
	maxMetadata   = 16_000 // bytes of metadata; the documented error is metadata_too_large
)

// content is what the app says in a message, checked.
type messageContent struct {
	text        string
	blocks      json.RawMessage
	attachments json.RawMessage
	metadata    json.RawMessage
	truncated   bool
}

// content checks text, blocks, markdown_text, attachments and metadata. most is the limit of the text; when hard, a
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
func (c *call) channelToPostIn() (*channelState, error) {
	w, ref := c.w, c.arg("channel")
	if ref == "" {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: channel")
	}
	if p := w.people[ref]; p != nil && !p.bot && !p.deleted {
		if w.opts.NoMessages {
			return nil, slackerr.New("messages_tab_disabled")
		}
		return w.im(p.ID), nil
	}
	ch, err := c.visibleChannel(ref)
	switch {
	case err != nil:
		return nil, err
	case ch.archived:
		return nil, slackerr.New("is_archived")
	case !ch.hasMember(w.botUser):
		return nil, slackerr.New("not_in_channel")
	}
	return ch, nil
}

// visibleChannel finds a channel that the bot may know of: a private one only as a member.
func (c *call) visibleChannel(ref string) (*channelState, error) {
	ch := c.w.channels[ref]
	if ch == nil && strings.HasPrefix(ref, "#") {
		ch = c.w.channel(ref)
	}
	if ch == nil || ch.kind != PublicChannel && !ch.hasMember(c.w.botUser) {
		return nil, slackerr.New("channel_not_found")
	}
	return ch, nil
}

// parentMessage checks thread_ts: a message of the channel that is not a reply itself.
func (c *call) parentMessage(ch *channelState) (*Message, error) {
	ts := c.arg("thread_ts")
	if ts == "" {
		return nil, nil
	}
	root := ch.byTS[ts]
	switch {
	case root == nil:
		return nil, slackerr.New("thread_not_found")
	case root.IsReply(), root.Subtype == "channel_join":
		return nil, slackerr.New("cannot_reply_to_message")
	}
	return root, nil
}

func postMessage(c *call) (jsonObject, error) {
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
	if err := w.limitPost(ch.id); err != nil {
		return nil, err
	}
	m := w.newBotMessage(k)
	if root != nil {
		m.ThreadTS, m.ParentUserID = root.TS, root.User
		m.broadcast = c.flag("reply_broadcast")
	}
	w.post(ch, m)
	out := jsonObject{"channel": ch.id, "ts": m.TS, "message": m.clone()}
	if k.truncated {
		out["warning"] = "message_truncated"
		out["response_metadata"] = jsonObject{"warnings": []string{"message_truncated"}}
	}
	return out, nil
}

// newBotMessage is a message of the app's bot user. The caller holds mu.
func (w *API) newBotMessage(k messageContent) *Message {
	blocks := k.blocks
	if blocks == nil {
		blocks = richTextFromMrkdwn(k.text)
	}
	return &Message{Type: "message", User: w.botUser, BotID: w.botID, AppID: w.appID, Team: w.opts.TeamID,
		Text: k.text, Blocks: blocks, Attachments: k.attachments, Metadata: k.metadata, TS: w.newTS()}
}

// ownMessage finds a message by ts that the app wrote itself.
func (c *call) ownMessage(ch *channelState, refusal string) (*Message, error) {
	m := ch.byTS[c.arg("ts")]
	switch {
	case m == nil || m.Subtype == "tombstone":
		return nil, slackerr.New("message_not_found")
	case m.BotID != c.w.botID:
		return nil, slackerr.New(refusal)
	}
	return m, nil
}

func updateMessage(c *call) (jsonObject, error) {
	ch, err := c.visibleChannel(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	if ch.archived {
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
	editor := c.w.botUser
	if k.blocks != nil {
		editor = "" // an update of blocks leaves no mark of an edit
	}
	c.w.edit(ch, m, editor, func(m *Message) {
		m.Text, m.Blocks = k.text, k.blocks
		if k.blocks == nil {
			m.Blocks = richTextFromMrkdwn(k.text) // a text without blocks takes the place of blocks, buttons included
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
	return jsonObject{"channel": ch.id, "ts": m.TS, "text": m.Text, "message": m.clone()}, nil
}

func deleteMessage(c *call) (jsonObject, error) {
	ch, err := c.visibleChannel(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	m, err := c.ownMessage(ch, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	c.w.delete(ch, m)
	return jsonObject{"channel": ch.id, "ts": m.TS}, nil
}

func postEphemeral(c *call) (jsonObject, error) {
	w := c.w
	ch, err := c.channelToPostIn()
	if err != nil {
		return nil, err
	}
	user := c.arg("user")
	switch {
	case w.people[user] == nil:
		return nil, slackerr.New("user_not_found")
	case !ch.hasMember(user):
		return nil, slackerr.New("user_not_in_channel")
	}
	k, err := c.parseContent(false)
	if err != nil {
		return nil, err
	}
	e := Ephemeral{Channel: ch.id, User: user, ThreadTS: c.arg("thread_ts"), Text: k.text, Blocks: k.blocks,
		Source: "chat.postEphemeral"}
	return jsonObject{"message_ts": w.showEphemeral(e)}, nil
}

// showEphemeral shows a message to one member. The caller holds mu.
func (w *Store) showEphemeral(e Ephemeral) (ts string) {
	e.TS = w.newTS()
	w.ephemerals[e.User] = append(w.ephemerals[e.User], e)
	w.recordChange(change{kind: ephemeralChanged, user: e.User, ts: e.TS})
	w.notify()
	return e.TS
}

func getPermalink(c *call) (jsonObject, error) {
	ch, err := c.visibleChannel(c.arg("channel"))
	if err != nil {
		return nil, err
	}
	m := ch.byTS[c.arg("message_ts")]
	if m == nil {
		return nil, slackerr.New("message_not_found")
	}
	return jsonObject{"channel": ch.id, "permalink": c.w.permalink(ch, m)}, nil
}

func (w *API) permalink(ch *channelState, m *Message) string {
	link := "https://" + w.opts.TeamDomain + ".slack.com/archives/" + ch.id + "/p" + strings.ReplaceAll(m.TS, ".", "")
	if m.IsReply() {
		link += "?" + url.Values{"thread_ts": {m.ThreadTS}, "cid": {ch.id}}.Encode()
	}
	return link
}
