package store

import (
	"encoding/json"
	"time"
)

// Message is a message as Slack writes it on the wire.
type Message struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype,omitempty"`
	Hidden       bool            `json:"hidden,omitempty"`
	ClientMsgID  string          `json:"client_msg_id,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	AppID        string          `json:"app_id,omitempty"`
	Username     string          `json:"username,omitempty"`
	Text         string          `json:"text"`
	TS           string          `json:"ts"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	Team         string          `json:"team,omitempty"`
	UserTeam     string          `json:"user_team,omitempty"`
	SourceTeam   string          `json:"source_team,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"` // {event_type, event_payload}
	Files        []File          `json:"files,omitempty"`
	Upload       bool            `json:"upload,omitempty"`
	Edited       *Edited         `json:"edited,omitempty"`
	ReplyCount   int             `json:"reply_count,omitempty"`
	ReplyUsers   []string        `json:"reply_users,omitempty"`
	ReplyUsersN  int             `json:"reply_users_count,omitempty"`
	LatestReply  string          `json:"latest_reply,omitempty"`
	Reactions    []Reaction      `json:"reactions,omitempty"`
	Inviter      string          `json:"inviter,omitempty"`

	Broadcast    bool            `json:"-"`
	LeadingSlash bool            `json:"-"` // starts with a slash and is no command
	Raw          json.RawMessage `json:"-"` // a hand-made inner event
}

// IsReply says whether the message is in a thread and not its root.
func (m Message) IsReply() bool { return m.ThreadTS != "" && m.ThreadTS != m.TS }

// Edited says who changed a message last, and when.
type Edited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// Reaction is one emoji on a message and the members who put it there.
type Reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
	Count int      `json:"count"`
}

// File is a file in a message. Content is served at URLPrivate to whoever shows the bot token.
type File struct {
	ID                 string   `json:"id"`
	Created            int64    `json:"created"`
	Name               string   `json:"name"`
	Title              string   `json:"title"`
	Mimetype           string   `json:"mimetype"`
	Filetype           string   `json:"filetype"`
	PrettyType         string   `json:"pretty_type"`
	User               string   `json:"user,omitempty"`
	Username           string   `json:"username"`
	Editable           bool     `json:"editable"`
	IsPublic           bool     `json:"is_public"`
	PublicURLShared    bool     `json:"public_url_shared"`
	DisplayAsBot       bool     `json:"display_as_bot"`
	ExternalType       string   `json:"external_type"`
	Channels           []string `json:"channels"`
	Groups             []string `json:"groups"`
	IMs                []string `json:"ims"`
	Size               int      `json:"size"`
	Mode               string   `json:"mode"`
	IsExternal         bool     `json:"is_external"`
	URLPrivate         string   `json:"url_private"`
	URLPrivateDownload string   `json:"url_private_download"`
	Permalink          string   `json:"permalink"`

	Content []byte `json:"-"`
}

// Ephemeral is a message that only one member sees, and only for now.
type Ephemeral struct {
	Channel  string
	User     string
	ThreadTS string
	TS       string
	Text     string
	Blocks   json.RawMessage
	Source   string // chat.postEphemeral, response_url, ack or slackbot
	Deleted  bool
}

// View is a modal or a Home tab as a member sees it.
type View struct {
	ID              string
	Type            string // modal or home
	Hash            string
	User            string
	CallbackID      string
	PrivateMetadata string
	ExternalID      string
	RootID          string
	PreviousID      string
	Title           string
	Blocks          json.RawMessage
	Raw             json.RawMessage // as the app sent it
}

// Request is one call of the Web API, of a response URL or of a file URL.
type Request struct {
	Seq    int
	Time   time.Time
	Method string            // chat.postMessage, response_url, file, upload, link (a WebSocket upgrade)
	Args   map[string]string // tokens are left out
	Status int               // HTTP status; 0 when nothing was answered
	OK     bool
	Error  string // Slack's error
	Fault  string // which fault was played
}

// Channel is a conversation. It is a copy: its state is what it was when asked for.
type Channel struct {
	ID        string
	Name      string
	Kind      ChannelKind
	ExtShared bool
	Archived  bool
	Members   []string
}

// ChannelKind is what sort of conversation a channel is; its value is Slack's channel_type.
type ChannelKind string

// The kinds of conversation.
const (
	PublicChannel  ChannelKind = "channel"
	PrivateChannel ChannelKind = "group"
	DirectMessage  ChannelKind = "im"
	GroupMessage   ChannelKind = "mpim"
)
