package bot

import (
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

	"github.com/slack-go/slack"

	"the-loop/authz"
	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/chat"
)

// ClientOptions says how Slack is reached.
type ClientOptions struct {
	BotToken string        // xoxb-…
	AppToken string        // xapp-…
	APIURL   string        // default https://slack.com/api/
	HTTP     *http.Client  // nil: one of its own
	Timeout  time.Duration // of one call; default 15 s
}

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

// Client talks to Slack's Web InjectAPI. It implements [threads.History], [threads.Receipts] and [threads.Sender]. Every
// call has a deadline, and none is repeated here: what may be tried again, and when, is the caller's to know.
type Client struct {
	transport *transport
	api       *slack.Client
	token     string
	appToken  string
	timeout   time.Duration
	people    *People

	scrub     atomic.Pointer[func(string) string]                             // what is posted goes through it; nil: as it is
	postGuard atomic.Pointer[func(ctx context.Context, channel string) error] // says why nothing may be posted in a channel; nil: it may
	isListed  atomic.Pointer[func(id string) bool]                            // who is on the list; nil: nobody
	self      atomic.Pointer[Self]
	clock     *chat.Clock // of Slack, as every answer tells it

	tokenStatus tokenStatus
}

var (
	_ chat.History        = (*Client)(nil)
	_ chat.ReactionWriter = (*Client)(nil)
	_ chat.Poster         = (*Client)(nil)
)

// NewClient makes a client; it calls nothing yet. An InjectAPI URL that is neither https nor on a loopback address is refused.
func NewClient(o ClientOptions) (*Client, error) {
	if o.APIURL == "" {
		o.APIURL = slack.APIURL
	}
	w, err := newTransport(o.APIURL, o.HTTP)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Second
	}
	c := &Client{transport: w, token: o.BotToken, appToken: o.AppToken, timeout: o.Timeout, clock: w.clock}
	w.scrub = c.scrubText
	w.onResponse = func(req *http.Request, resp *http.Response, body []byte) {
		if method, ours := strings.CutPrefix(req.URL.String(), w.base.String()); ours && method != methodOpen { // that one has the app token
			c.tokenStatus.observe(resp, body)
		}
	}
	c.api = c.apiOver(w)
	c.people = newPeople(c)
	return c, nil
}

// doer is what the Slack library sends requests with.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

func (c *Client) apiOver(d doer) *slack.Client {
	return slack.New(c.token, slack.OptionAppLevelToken(c.appToken), slack.OptionAPIURL(c.transport.base.String()), slack.OptionHTTPClient(d))
}

// Close lets go of idle connections.
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

// Identify asks Slack who we are and which scopes the token has. A [*FatalError] when it does not let us in, or when a
// scope is missing that the app uses.
func (c *Client) Identify(ctx context.Context) (Self, error) {
	self, err := c.authTest(ctx)
	if err != nil {
		return Self{}, err
	}
	if missing := missingScopes(self.Scopes); len(missing) > 0 {
		return Self{}, newFatalError(botTokenName, "missing_scope", strings.Join(missing, ", "))
	}
	c.self.Store(&self)
	return self, nil
}

// known makes sure that we know who we are before anything is read that must be judged by it: without our own team
// every author would look like a stranger.
func (c *Client) ensureIdentified(ctx context.Context) error {
	if c.self.Load() != nil {
		return nil
	}
	_, err := c.Identify(ctx)
	return err
}

func (c *Client) authTest(ctx context.Context) (Self, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	who, err := c.api.AuthTestContext(ctx)
	if err != nil {
		return Self{}, classify(methodAuthTest, botTokenName, false, err)
	}
	return Self{Team: who.TeamID, TeamName: who.Team, Enterprise: who.EnterpriseID, User: who.UserID, Bot: who.BotID,
		Name: who.User, Scopes: scopesOf(who.Header)}, nil
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

// answer is what a method said, raw, and when by Slack's clock.
type apiResponse struct {
	rawObject
	date time.Time // zero: the answer had no Date
}

// call calls a reading method with our own decoding.
func (c *Client) call(ctx context.Context, method string, args url.Values) (apiResponse, error) {
	return c.callWithEffect(ctx, method, false, args)
}

// callWithEffect is call, for a method that may do something that must not be done twice.
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
		return a, errors.Join(err, &slack.RateLimitedError{RetryAfter: time.Duration(after) * time.Second})
	}
	if resp.StatusCode != http.StatusOK {
		return a, slack.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
	}
	if err := json.NewDecoder(resp.Body).Decode(&a.rawObject); err != nil {
		return a, fmt.Errorf("the answer is not JSON: %w", err)
	}
	if !a.isTrue("ok") {
		return a, slack.SlackErrorResponse{Err: firstNonEmpty(a.str("error"), codeNoAnswer), Needed: a.str("needed")}
	}
	return a, nil
}

// Clock is what is known of Slack's clock.
func (c *Client) Clock() *chat.Clock { return c.clock }

// The page sizes that Slack recommends are at most 200.
const pageSize = "200"

// Replies implements [threads.History]. Only what people wrote is returned: no root, no bots, no joins. Page.Now is
// zero when the answer had no Date.
func (c *Client) Replies(ctx context.Context, channel, root, oldest, cursor string) (chat.Page, error) {
	if err := c.ensureIdentified(ctx); err != nil {
		return chat.Page{}, err
	}
	args := url.Values{"channel": {channel}, "ts": {root}, "limit": {pageSize}}
	setIf(args, "oldest", oldest)
	setIf(args, "cursor", cursor)
	a, err := c.call(ctx, methodReplies, args)
	if err != nil {
		return chat.Page{}, err
	}
	page := chat.Page{Next: a.obj("response_metadata").str("next_cursor"), Now: a.date}
	for _, o := range a.objects("messages") {
		m := message{rawObject: o, channel: channel}
		if m.ts() == root && m.subtype() == subtypeTombstone {
			return chat.Page{}, fmt.Errorf("%s: the root was deleted: %w", methodReplies, chat.ErrThreadGone)
		}
		if r, drop := c.readReply(m); drop == "" && r.Root == root && isAfter(r.TS, oldest) {
			page.Replies = append(page.Replies, r)
		}
	}
	slices.SortStableFunc(page.Replies, func(a, b chat.Reply) int { return chat.CompareTS(a.TS, b.TS) })
	return page, nil
}

// Reply implements [threads.History].
func (c *Client) Reply(ctx context.Context, channel, root, ts string) (chat.Reply, error) {
	if err := c.ensureIdentified(ctx); err != nil {
		return chat.Reply{}, err
	}
	a, err := c.call(ctx, methodReplies, url.Values{"channel": {channel}, "ts": {root}, "oldest": {ts}, "latest": {ts},
		"inclusive": {"true"}, "limit": {"10"}})
	if err != nil {
		return chat.Reply{}, err
	}
	for _, o := range a.objects("messages") {
		m := message{rawObject: o, channel: channel}
		if m.ts() != ts {
			continue
		}
		if r, drop := c.readReply(m); drop == "" {
			return r, nil
		}
	}
	return chat.Reply{}, fmt.Errorf("%s: %w", methodReplies, chat.ErrReplyGone)
}

// FindPost implements [threads.History]. The search begins a minute before since.
func (c *Client) FindPost(ctx context.Context, channel, root, nonce string, since time.Time) (string, error) {
	if err := c.ensureIdentified(ctx); err != nil {
		return "", err
	}
	method, args := methodHistory, url.Values{"channel": {channel}}
	if !since.IsZero() {
		args.Set("oldest", chat.TimeTS(since.Add(-time.Minute)))
	}
	if root != "" {
		method = methodReplies
		args.Set("ts", root)
	} else if !since.IsZero() {
		args.Set("latest", chat.TimeTS(since.Add(3*time.Minute)))
	}
	args.Set("include_all_metadata", "true")
	args.Set("limit", pageSize)
	return c.findOwn(ctx, method, args, func(m message) bool { return m.nonce() == nonce })
}

// findOwn looks for a message of ours that is the one.
func (c *Client) findOwn(ctx context.Context, method string, args url.Values, is func(message) bool) (string, error) {
	for {
		a, err := c.call(ctx, method, args)
		if err != nil {
			return "", err
		}
		for _, o := range a.objects("messages") {
			if m := (message{rawObject: o}); m.isFrom(c.Self()) && is(m) {
				return m.ts(), nil
			}
		}
		next := a.obj("response_metadata").str("next_cursor")
		if next == "" || next == args.Get("cursor") {
			return "", nil
		}
		args.Set("cursor", next)
	}
}

// Post implements [threads.Sender]. A reply whose root was deleted meanwhile would stand in the channel itself: Slack
// posts it there. It is taken back, and the error is [threads.ErrThreadGone].
func (c *Client) Post(ctx context.Context, p chat.Post) (string, error) {
	if err := c.checkMayPost(ctx, p.Channel); err != nil {
		return "", err
	}
	options, err := c.messageOptions(p)
	if err != nil {
		return "", fmt.Errorf("post in %s: %w", p.Channel, err)
	}
	if p.Root != "" {
		options = append(options, slack.MsgOptionTS(p.Root))
	}
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, ts, posted, err := c.api.PostMessageWithResponseContext(callCtx, p.Channel, options...)
	if err != nil {
		return "", classify(methodPost, botTokenName, true, err)
	}
	if p.Root != "" && posted.Timestamp != "" && posted.ThreadTimestamp != p.Root {
		return "", errors.Join(fmt.Errorf("%s: the root was deleted: %w", methodPost, chat.ErrThreadGone), c.Delete(ctx, p.Channel, ts))
	}
	return ts, nil
}

// Update implements [threads.Sender].
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
	return classify(methodUpdate, botTokenName, false, err)
}

// checkMayPost is asked before anything is shown in a channel that others than one member see.
func (c *Client) checkMayPost(ctx context.Context, channel string) error {
	if guard := c.postGuard.Load(); guard != nil {
		return (*guard)(ctx, channel)
	}
	return nil
}

// Delete takes a message of ours back. One that is gone is no error.
func (c *Client) Delete(ctx context.Context, channel, ts string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, _, err := c.api.DeleteMessageContext(ctx, channel, ts)
	if err = classify(methodDelete, botTokenName, false, err); errors.Is(err, chat.ErrReplyGone) {
		return nil
	}
	return err
}

// PostEphemeral posts what only one member sees, in a thread when root is set.
func (c *Client) PostEphemeral(ctx context.Context, channel, root, user, text string, buttons ...render.Button) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	m, err := c.composeEphemeral(text, buttons)
	if err != nil {
		return fmt.Errorf("%s: %w", methodEphemeral, err)
	}
	options := []slack.MsgOption{slack.MsgOptionText(m.Fallback, false)}
	if len(m.Blocks) > 0 {
		options = append(options, slack.MsgOptionBlocks(m.Blocks...))
	}
	if root != "" {
		options = append(options, slack.MsgOptionTS(root))
	}
	_, err = c.api.PostEphemeralContext(ctx, channel, user, options...)
	return classify(methodEphemeral, botTokenName, false, err)
}

// spoken is a message without metadata. It has blocks only where a text alone would not do.
func (c *Client) composeEphemeral(text string, buttons []render.Button) (render.Message, error) {
	text = c.scrubText(text)
	if len(buttons) == 0 && render.Cut(text, render.MaxText) == text {
		return render.Message{Fallback: text}, nil
	}
	return render.Post{Text: text, Buttons: buttons}.Render()
}

// clean takes out of a text what must not be posted.
func (c *Client) scrubText(text string) string {
	if scrub := c.scrub.Load(); scrub != nil {
		return (*scrub)(text)
	}
	return text
}

// respond answers through a response URL, for the eyes of the one who acted.
func (c *Client) respond(ctx context.Context, to, root, text string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	m, err := c.composeEphemeral(text, nil)
	if err != nil {
		return fmt.Errorf("answer to the response URL: %w", err)
	}
	body := map[string]any{"response_type": "ephemeral", "replace_original": false, "text": m.Fallback}
	if len(m.Blocks) > 0 {
		body["blocks"] = m.Blocks
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

// AddReaction implements [threads.Receipts].
func (c *Client) AddReaction(ctx context.Context, channel, ts, emoji string) error {
	if err := c.checkMayPost(ctx, channel); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.api.AddReactionContext(ctx, strings.Trim(emoji, ":"), slack.NewRefToMessage(channel, ts))
	return ignoreCode("already_reacted", classify(methodReact, botTokenName, false, err))
}

// RemoveReaction implements [threads.Receipts].
func (c *Client) RemoveReaction(ctx context.Context, channel, ts, emoji string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.api.RemoveReactionContext(ctx, strings.Trim(emoji, ":"), slack.NewRefToMessage(channel, ts))
	return ignoreCode("no_reaction", classify(methodUnreact, botTokenName, false, err))
}

func ignoreCode(fine string, err error) error {
	if errorCode(err) == fine {
		return nil
	}
	return err
}

func (c *Client) messageOptions(p chat.Post) ([]slack.MsgOption, error) {
	buttons := make([]render.Button, 0, len(p.Buttons))
	for _, b := range p.Buttons {
		buttons = append(buttons, render.Button(b))
	}
	post := render.Post{Text: c.scrubText(p.Text), Buttons: buttons, Session: p.Session, Nonce: p.Nonce}
	compose := post.Render
	if p.Plain {
		compose = post.Plain
	}
	m, err := compose()
	if err != nil { // it is our own doing, and the same the next time
		return nil, fmt.Errorf("%w: %w", chat.ErrRefused, err)
	}
	return []slack.MsgOption{slack.MsgOptionText(m.Fallback, false), slack.MsgOptionBlocks(m.Blocks...),
		slack.MsgOptionMetadata(m.Metadata), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()}, nil
}

// readReply reads a message of a thread; drop is the reason when it is none that a person wrote for the thread.
func (c *Client) readReply(m message) (r chat.Reply, drop string) {
	self := c.Self()
	if drop = m.dropReason(self); drop != "" {
		return chat.Reply{}, drop
	}
	actor := m.actor(self)
	return chat.Reply{Channel: m.channel, Root: m.thread(), TS: m.ts(), Edited: m.obj("edited").str("ts"), Actor: actor, Command: m.mentionCommand(self, nameLookup{}),
		Load: func(ctx context.Context) (chat.Content, error) { return c.loadContent(ctx, m, actor) }}, ""
}

// loadContent completes a reply: who wrote it, and what it says with the names of the people and channels in it.
func (c *Client) loadContent(ctx context.Context, m message, actor authz.Actor) (chat.Content, error) {
	actor, person, err := c.people.ResolveActor(ctx, actor)
	if err != nil {
		return chat.Content{}, err
	}
	text, missing := m.read(c.people.nameLookup(ctx))
	return chat.Content{Actor: actor, Speaker: firstNonEmpty(sessions.DisplayName(person.Name), actor.User), Text: text, Unreadable: missing, Files: m.files()}, nil
}

// later reports a message after oldest; every one is after none.
func isAfter(ts, oldest string) bool { return oldest == "" || chat.CompareTS(ts, oldest) > 0 }

func setIf(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}
