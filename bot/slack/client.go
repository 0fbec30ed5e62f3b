package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"the-loop/authz"
	"the-loop/threads/chat"
)

// ClientOptions say how Slack is reached and how a text becomes a message. Renderer and Text are required.
type ClientOptions struct {
	BotToken string        // xoxb-…
	AppToken string        // xapp-…
	APIURL   string        // default https://slack.com/api/
	HTTP     *http.Client  // nil: one of its own
	Timeout  time.Duration // of one call; default 15 s
	Scopes   []string      // without which the bot cannot work, see [Client.Identify]
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
	Scrubber      Scrubber                                        // removes secrets from everything that is sent
	CheckPost     func(ctx context.Context, channel string) error // returns why nothing may be posted in a channel
	IsListed      func(id string) bool                            // reports whether a member is authorized; the names of others are not shown
	OnTokenChange func()                                          // called when Slack begins or ceases to refuse the bot token
}

// Scrubber removes secrets.
type Scrubber interface {
	Scrub(text string) string
	// ScrubJSON scrubs the strings of a JSON document, but for those under the keys that are for programs.
	ScrubJSON(data []byte, isMachineField func(key string) bool) []byte
}

// noScrubber removes nothing.
type noScrubber struct{}

func (noScrubber) Scrub(text string) string                          { return text }
func (noScrubber) ScrubJSON(data []byte, _ func(string) bool) []byte { return data }

// Self is who we are in Slack.
type Self struct {
	Team       string // T…
	TeamName   string
	Enterprise string // E…; empty: the workspace belongs to no organisation
	User       string // the bot's member id, U…
	Bot        string // the bot's id in messages, B…
	Name       string // what people type after the @
	Scopes     []string
}

// Client calls Slack's Web API. It implements the ports of package chat. Every call has a deadline, and none is repeated: the
// caller knows what may be tried again, and when.
type Client struct {
	transport *transport
	api       *slackgo.Client
	token     string
	appToken  string
	timeout   time.Duration
	scopes    []string
	renderer  Renderer
	text      TextRules
	people    *People
	clock     *chat.Clock

	hooks       atomic.Pointer[Hooks]
	self        atomic.Pointer[Self]
	tokenStatus tokenStatus
}

var (
	_ chat.History        = (*Client)(nil)
	_ chat.ReactionWriter = (*Client)(nil)
	_ chat.Poster         = (*Client)(nil)
)

// NewClient returns a client and calls nothing. An API URL that is neither https nor on a loopback address is refused.
func NewClient(o ClientOptions) (*Client, error) {
	if o.APIURL == "" {
		o.APIURL = slackgo.APIURL
	}
	w, err := newTransport(o.APIURL, o.HTTP)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Second
	}
	c := &Client{transport: w, token: o.BotToken, appToken: o.AppToken, timeout: o.Timeout, scopes: o.Scopes, renderer: o.Renderer,
		text: o.Text, clock: w.clock}
	c.SetHooks(Hooks{})
	c.tokenStatus.onChange = func() { callIf(c.hooks.Load().OnTokenChange) }
	w.scrubber = c.scrubber
	w.onResponse = func(req *http.Request, resp *http.Response, body []byte) {
		if method, ours := strings.CutPrefix(req.URL.String(), w.base.String()); ours && method != MethodOpen { // that one has the app token
			c.tokenStatus.observe(resp, body)
		}
	}
	c.api = c.apiOver(w)
	c.people = newPeople(c)
	return c, nil
}

// SetHooks replaces the client's hooks.
func (c *Client) SetHooks(h Hooks) { c.hooks.Store(&h) }

func callIf(f func()) {
	if f != nil {
		f()
	}
}

func (c *Client) scrubber() Scrubber {
	if s := c.hooks.Load().Scrubber; s != nil {
		return s
	}
	return noScrubber{}
}

// doer sends the requests of the Slack library.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

func (c *Client) apiOver(d doer) *slackgo.Client {
	return slackgo.New(c.token, slackgo.OptionAppLevelToken(c.appToken), slackgo.OptionAPIURL(c.transport.base.String()), slackgo.OptionHTTPClient(d))
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.http.CloseIdleConnections() }

// People is what the client knows of members and channels.
func (c *Client) People() *People { return c.people }

// Self is who we are, as of the last [Client.Identify]; the zero Self before the first.
func (c *Client) Self() Self {
	if s := c.self.Load(); s != nil {
		return *s
	}
	return Self{}
}

// Identify asks Slack who we are and which scopes the token has. It returns a [*FatalError] when Slack refuses the token, or a
// required scope is missing.
func (c *Client) Identify(ctx context.Context) (Self, error) {
	self, err := c.AuthTest(ctx)
	if err != nil {
		return Self{}, err
	}
	if missing := c.missingScopes(self.Scopes); len(missing) > 0 {
		return Self{}, newFatalError(botTokenName, "missing_scope", strings.Join(missing, ", "))
	}
	c.self.Store(&self)
	return self, nil
}

// missingScopes are the required scopes that are not among have; none when have is nil, so not known.
func (c *Client) missingScopes(have []string) (missing []string) {
	for _, s := range c.scopes {
		if have != nil && !slices.Contains(have, s) {
			missing = append(missing, s)
		}
	}
	return missing
}

// TokenProblem says that Slack refuses the bot token, and what to do; empty: it does not.
func (c *Client) TokenProblem() string { return c.tokenStatus.problem() }

// Host is the host that the Web API is called at.
func (c *Client) Host() string { return c.transport.base.Host }

// EnsureIdentified identifies us unless that was done. Without our own team every author would look like a stranger.
func (c *Client) EnsureIdentified(ctx context.Context) error {
	if c.self.Load() != nil {
		return nil
	}
	_, err := c.Identify(ctx)
	return err
}

// AuthTest asks Slack whose the bot token is. Unlike [Client.Identify] it neither checks scopes nor remembers the answer.
func (c *Client) AuthTest(ctx context.Context) (Self, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	who, err := c.api.AuthTestContext(ctx)
	if err != nil {
		return Self{}, classify(MethodAuthTest, botTokenName, false, err)
	}
	return Self{Team: who.TeamID, TeamName: who.Team, Enterprise: who.EnterpriseID, User: who.UserID, Bot: who.BotID,
		Name: who.User, Scopes: scopesOf(who.Header)}, nil
}

// SetSelf makes self who we are, as [Client.Identify] does.
func (c *Client) SetSelf(self Self) { c.self.Store(&self) }

// OpenConnection asks for the address of a Socket Mode connection, with the app token.
func (c *Client) OpenConnection(ctx context.Context) (address string, err error) {
	_, address, err = c.api.StartSocketModeContext(ctx)
	return address, classify(MethodOpen, appTokenName, false, err)
}

// scopesOf reads the header in which Slack lists a token's scopes; nil when there is none.
func scopesOf(h http.Header) []string {
	var scopes []string
	for _, s := range strings.Split(h.Get("X-OAuth-Scopes"), ",") {
		if s = strings.TrimSpace(s); s != "" {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// apiResponse is the answer of a method, and its time by Slack's clock.
type apiResponse struct {
	RawObject
	date time.Time // zero: the answer had no Date
}

// call calls a method that may be repeated.
func (c *Client) call(ctx context.Context, method string, args url.Values) (apiResponse, error) {
	return c.callWithEffect(ctx, method, false, args)
}

// callWithEffect calls a method; effect says that it does something that must not be done twice.
func (c *Client) callWithEffect(ctx context.Context, method string, effect bool, args url.Values) (apiResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	resp, err := c.transport.postForm(ctx, method, c.token, args)
	if err != nil {
		return apiResponse{}, classify(method, botTokenName, effect, err)
	}
	a, err := c.decodeResponse(resp)
	if err != nil {
		return apiResponse{}, classify(method, botTokenName, effect, err)
	}
	return a, nil
}

func (c *Client) decodeResponse(resp *http.Response) (apiResponse, error) {
	a := apiResponse{date: responseDate(resp.Header)}
	if resp.StatusCode == http.StatusTooManyRequests {
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		return a, errors.Join(err, &slackgo.RateLimitedError{RetryAfter: time.Duration(after) * time.Second})
	}
	if resp.StatusCode != http.StatusOK {
		return a, slackgo.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
	}
	if err := json.NewDecoder(resp.Body).Decode(&a.RawObject); err != nil {
		return a, fmt.Errorf("the answer is not JSON: %w", err)
	}
	if !a.IsTrue("ok") {
		return a, slackgo.SlackErrorResponse{Err: cmp.Or(a.Str("error"), codeNoAnswer), Needed: a.Str("needed")}
	}
	return a, nil
}

// Clock is Slack's clock, as its answers and events tell it.
func (c *Client) Clock() *chat.Clock { return c.clock }

// The page sizes that Slack recommends are at most 200.
const pageSize = "200"

// Replies implements [chat.History]. Only what people wrote is returned: no root, no bots, no joins. Page.Now is
// zero when the answer had no Date.
func (c *Client) Replies(ctx context.Context, channel, root, oldest, cursor string) (chat.Page, error) {
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
		m := message{RawObject: o, channel: channel}
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
func (c *Client) Reply(ctx context.Context, channel, root, ts string) (chat.Reply, error) {
	if err := c.EnsureIdentified(ctx); err != nil {
		return chat.Reply{}, err
	}
	a, err := c.call(ctx, MethodReplies, url.Values{"channel": {channel}, "ts": {root}, "oldest": {ts}, "latest": {ts},
		"inclusive": {"true"}, "limit": {"10"}})
	if err != nil {
		return chat.Reply{}, err
	}
	for _, o := range a.Objects("messages") {
		m := message{RawObject: o, channel: channel}
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
func (c *Client) FindPost(ctx context.Context, channel, root, nonce string, since time.Time) (string, error) {
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

// findOwn returns the ts of the first message of ours that matches; empty when there is none.
func (c *Client) findOwn(ctx context.Context, method string, args url.Values, matches func(message) bool) (string, error) {
	for {
		a, err := c.call(ctx, method, args)
		if err != nil {
			return "", err
		}
		for _, o := range a.Objects("messages") {
			if m := (message{RawObject: o}); m.isFrom(c.Self()) && matches(m) {
				return m.ts(), nil
			}
		}
		next := a.Obj("response_metadata").Str("next_cursor")
		if next == "" || next == args.Get("cursor") {
			return "", nil
		}
		args.Set("cursor", next)
	}
}

// Post implements [chat.Poster]. A reply whose root was deleted meanwhile would stand in the channel itself: Slack
// posts it there. It is deleted, and the error is [chat.ErrThreadGone].
func (c *Client) Post(ctx context.Context, p chat.Post) (string, error) {
	if err := c.checkMayPost(ctx, p.Channel); err != nil {
		return "", err
	}
	options, err := c.messageOptions(p)
	if err != nil {
		return "", fmt.Errorf("post in %s: %w", p.Channel, err)
	}
	if p.Root != "" {
		options = append(options, slackgo.MsgOptionTS(p.Root))
	}
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, ts, posted, err := c.api.PostMessageWithResponseContext(callCtx, p.Channel, options...)
	if err != nil {
		return "", classify(MethodPost, botTokenName, true, err)
	}
	if p.Root != "" && posted.Timestamp != "" && posted.ThreadTimestamp != p.Root {
		return "", errors.Join(fmt.Errorf("%s: the root was deleted: %w", MethodPost, chat.ErrThreadGone), c.Delete(ctx, p.Channel, ts))
	}
	return ts, nil
}

// Update implements [chat.Poster].
func (c *Client) Update(ctx context.Context, ts string, p chat.Post) error {
	if err := c.checkMayPost(ctx, p.Channel); err != nil {
		return err
	}
	options, err := c.messageOptions(p)
	if err != nil {
		return fmt.Errorf("update in %s: %w", p.Channel, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, _, _, err = c.api.UpdateMessageContext(ctx, p.Channel, ts, options...)
	return classify(MethodUpdate, botTokenName, false, err)
}

// checkMayPost returns why nothing may be posted in a channel.
func (c *Client) checkMayPost(ctx context.Context, channel string) error {
	if check := c.hooks.Load().CheckPost; check != nil {
		return check(ctx, channel)
	}
	return nil
}

// Delete deletes a message of ours. One that is gone is no error.
func (c *Client) Delete(ctx context.Context, channel, ts string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, _, err := c.api.DeleteMessageContext(ctx, channel, ts)
	if err = classify(MethodDelete, botTokenName, false, err); errors.Is(err, chat.ErrReplyGone) {
		return nil
	}
	return err
}

// PostEphemeral posts what only one member sees, in a thread when root is set.
func (c *Client) PostEphemeral(ctx context.Context, channel, root, user, text string, buttons ...chat.Button) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	text, blocks, err := c.renderer.RenderEphemeral(c.scrubText(text), buttons)
	if err != nil {
		return fmt.Errorf("%s: %w", MethodEphemeral, err)
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionText(text, false)}
	if len(blocks) > 0 {
		options = append(options, slackgo.MsgOptionBlocks(blocks...))
	}
	if root != "" {
		options = append(options, slackgo.MsgOptionTS(root))
	}
	_, err = c.api.PostEphemeralContext(ctx, channel, user, options...)
	return classify(MethodEphemeral, botTokenName, false, err)
}

// scrubText removes secrets from a text.
func (c *Client) scrubText(text string) string { return c.scrubber().Scrub(text) }

// ScrubAck removes secrets from the payload of an ack, in JSON.
func (c *Client) ScrubAck(payload []byte) []byte {
	return c.scrubber().ScrubJSON(payload, isMachineField)
}

// Respond answers through a response URL, for the member who acted only.
func (c *Client) Respond(ctx context.Context, to, root, text string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	text, blocks, err := c.renderer.RenderEphemeral(c.scrubText(text), nil)
	if err != nil {
		return fmt.Errorf("answer to the response URL: %w", err)
	}
	body := map[string]any{"response_type": "ephemeral", "replace_original": false, "text": text}
	if len(blocks) > 0 {
		body["blocks"] = blocks
	}
	if root != "" {
		body["thread_ts"] = root
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.transport.postResponse(ctx, to, raw)
}

// AddReaction implements [chat.ReactionWriter].
func (c *Client) AddReaction(ctx context.Context, channel, ts, emoji string) error {
	if err := c.checkMayPost(ctx, channel); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.api.AddReactionContext(ctx, strings.Trim(emoji, ":"), slackgo.NewRefToMessage(channel, ts))
	return ignoreCode("already_reacted", classify(MethodReact, botTokenName, false, err))
}

// RemoveReaction implements [chat.ReactionWriter].
func (c *Client) RemoveReaction(ctx context.Context, channel, ts, emoji string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.api.RemoveReactionContext(ctx, strings.Trim(emoji, ":"), slackgo.NewRefToMessage(channel, ts))
	return ignoreCode("no_reaction", classify(MethodUnreact, botTokenName, false, err))
}

// ignoreCode returns err unless it is the error that Slack names so.
func ignoreCode(code string, err error) error {
	if ErrorCode(err) == code {
		return nil
	}
	return err
}

func (c *Client) messageOptions(p chat.Post) ([]slackgo.MsgOption, error) {
	p.Text = c.scrubText(p.Text)
	text, blocks, err := c.renderer.RenderPost(p)
	if err != nil { // the next try would fail too
		return nil, fmt.Errorf("%w: %w", chat.ErrRefused, err)
	}
	markNonce(blocks, p.Nonce)
	return []slackgo.MsgOption{slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(blocks...),
		slackgo.MsgOptionMetadata(metadataOf(p)), slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}, nil
}

// readReply reads a message of a thread; drop is the reason when it is not a person's reply.
func (c *Client) readReply(m message) (r chat.Reply, drop string) {
	self := c.Self()
	if drop = m.dropReason(self); drop != "" {
		return chat.Reply{}, drop
	}
	actor := m.actor(self)
	return chat.Reply{Channel: m.channel, Root: m.thread(), TS: m.ts(), Edited: m.Obj("edited").Str("ts"), Actor: actor, Command: m.mentionCommand(self, c.plainNames()),
		Load: func(ctx context.Context) (chat.Content, error) { return c.loadContent(ctx, m, actor) }}, ""
}

// loadContent completes a reply: who wrote it, and what it says with the names of the people and channels in it.
func (c *Client) loadContent(ctx context.Context, m message, actor authz.Actor) (chat.Content, error) {
	actor, person, err := c.people.ResolveActor(ctx, actor)
	if err != nil {
		return chat.Content{}, err
	}
	text, missing := m.read(c.people.nameLookup(ctx))
	return chat.Content{Actor: actor, Speaker: cmp.Or(c.text.DisplayName(person.Name), actor.User), Text: text, Unreadable: missing, Files: m.files()}, nil
}

// isAfter reports whether a message is newer than oldest; with an empty oldest every message is.
func isAfter(ts, oldest string) bool { return oldest == "" || chat.CompareTS(ts, oldest) > 0 }

func setIf(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}
