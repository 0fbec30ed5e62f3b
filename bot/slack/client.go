package slack

import (
	"context"
	"net/http"
	"net/url"
	"time"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/slack/scrub"
	"the-loop/threads/chat"
)

// ClientOptions say how Slack is reached and how a text becomes a message. Renderer and Text are required.
type ClientOptions struct {
	BotToken string        // xoxb-…
	AppToken string        // xapp-…
	APIURL   string        // default https://slack.com/api/
	HTTP     *http.Client  // nil: one of its own
	Timeout  time.Duration // of one call; default 15 s
	Scopes   []string      // without which the bot cannot work, see [API.Identify]
	Renderer Renderer
	Text     TextRules
}

// Renderer makes Slack's blocks of texts. The texts hold no secrets any more.
type Renderer interface {
	// RenderPost returns the fallback text and the blocks of a post.
	RenderPost(p chat.Post) (text string, blocks []slackgo.Block, err error)
	// RenderEphemeral returns the text and the blocks of a message that one member sees; a short text has no blocks.
	RenderEphemeral(text string, buttons []chat.Button) (string, []slackgo.Block, error)
}

// Hooks are what the client asks and tells its user. Each may be nil.
type Hooks struct {
	Scrubber      scrub.Scrubber                                  // removes secrets from everything that is sent
	CheckPost     func(ctx context.Context, channel string) error // returns why nothing may be posted in a channel
	IsListed      func(id string) bool                            // reports whether a member is authorized; the names of others are not shown
	OnTokenChange func()                                          // called when Slack begins or ceases to refuse the bot token
}

// noScrubber removes nothing.
type noScrubber struct{}

func (noScrubber) Scrub(text string) string                          { return text }
func (noScrubber) ScrubJSON(data []byte, _ func(string) bool) []byte { return data }

// Client is the client of Slack's Web API. It implements the ports of package chat with its parts.
type Client struct {
	*API
	*Reader
	*Writer
	*Files
	people *People
}

var (
	_ chat.History        = (*Client)(nil)
	_ chat.ReactionWriter = (*Client)(nil)
	_ chat.Poster         = (*Client)(nil)
	_ chat.StatusSetter   = (*Client)(nil)
	_ chat.Channels       = (*Client)(nil)
	_ chat.Fetcher        = (*Client)(nil)
	_ chat.FileUploader   = (*Client)(nil)
)

// NewClient returns a client and calls nothing. An API URL that is neither https nor on a loopback address is refused.
func NewClient(o ClientOptions) (*Client, error) {
	api, err := newAPI(o)
	if err != nil {
		return nil, err
	}
	people := newPeople(api)
	return &Client{API: api, Reader: &Reader{API: api, people: people}, Writer: &Writer{API: api, renderer: o.Renderer},
		Files: &Files{API: api}, people: people}, nil
}

// People is what the client knows of members and channels.
func (c *Client) People() *People { return c.people }

func setIf(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}
