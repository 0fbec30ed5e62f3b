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

	"the-loop/bot/slack/lenientjson"
	"the-loop/bot/slack/scrub"
	"the-loop/threads/chat"
)

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

// API calls methods of Slack's Web API with the bot's identity. Every call has a deadline, and none is repeated: the caller knows
// what may be tried again, and when.
type API struct {
	transport *transport
	lib       *slackgo.Client
	token     string
	appToken  string
	timeout   time.Duration
	scopes    []string
	text      TextRules
	clock     *chat.Clock

	hooks       atomic.Pointer[Hooks]
	self        atomic.Pointer[Self]
	tokenStatus tokenStatus
}

func newAPI(o ClientOptions) (*API, error) {
	w, err := newTransport(cmp.Or(o.APIURL, slackgo.APIURL), o.HTTP)
	if err != nil {
		return nil, err
	}
	c := &API{transport: w, token: o.BotToken, appToken: o.AppToken, timeout: cmp.Or(o.Timeout, 15*time.Second), scopes: o.Scopes,
		text: o.Text, clock: w.clock}
	c.SetHooks(Hooks{})
	c.tokenStatus.onChange = func() { callIf(c.hooks.Load().OnTokenChange) }
	w.scrubber = c.scrubber
	w.onResponse = func(req *http.Request, resp *http.Response, body []byte) {
		if method, ours := strings.CutPrefix(req.URL.String(), w.base.String()); ours && method != MethodOpen { // that one has the app token
			c.tokenStatus.observe(resp, body)
		}
	}
	c.lib = slackgo.New(c.token, slackgo.OptionAppLevelToken(c.appToken), slackgo.OptionAPIURL(w.base.String()), slackgo.OptionHTTPClient(w))
	return c, nil
}

// SetHooks replaces the client's hooks.
func (c *API) SetHooks(h Hooks) { c.hooks.Store(&h) }

func (c *API) scrubber() scrub.Scrubber {
	if s := c.hooks.Load().Scrubber; s != nil {
		return s
	}
	return noScrubber{}
}

// Close closes idle connections.
func (c *API) Close() { c.transport.http.CloseIdleConnections() }

// Self is who we are, as of the last [API.Identify]; the zero Self before the first.
func (c *API) Self() Self {
	if s := c.self.Load(); s != nil {
		return *s
	}
	return Self{}
}

// Identify asks Slack who we are and which scopes the token has. It returns a [*FatalError] when Slack refuses the token, or a
// required scope is missing.
func (c *API) Identify(ctx context.Context) (Self, error) {
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
func (c *API) missingScopes(have []string) (missing []string) {
	for _, s := range c.scopes {
		if have != nil && !slices.Contains(have, s) {
			missing = append(missing, s)
		}
	}
	return missing
}

// TokenProblem says that Slack refuses the bot token, and what to do; empty: it does not.
func (c *API) TokenProblem() string { return c.tokenStatus.problem() }

// Host is the host that the Web API is called at.
func (c *API) Host() string { return c.transport.base.Host }

// EnsureIdentified identifies us unless that was done. Without our own team every author would look like a stranger.
func (c *API) EnsureIdentified(ctx context.Context) error {
	if c.self.Load() != nil {
		return nil
	}
	_, err := c.Identify(ctx)
	return err
}

// AuthTest asks Slack whose the bot token is. Unlike [API.Identify] it neither checks scopes nor remembers the answer.
func (c *API) AuthTest(ctx context.Context) (Self, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	who, err := c.lib.AuthTestContext(ctx)
	if err != nil {
		return Self{}, classify(MethodAuthTest, botTokenName, false, err)
	}
	return Self{Team: who.TeamID, TeamName: who.Team, Enterprise: who.EnterpriseID, User: who.UserID, Bot: who.BotID,
		Name: who.User, Scopes: scopesOf(who.Header)}, nil
}

// SetSelf makes self who we are, as [API.Identify] does.
func (c *API) SetSelf(self Self) { c.self.Store(&self) }

// OpenConnection asks for the address of a Socket Mode connection, with the app token.
func (c *API) OpenConnection(ctx context.Context) (address string, err error) {
	_, address, err = c.lib.StartSocketModeContext(ctx)
	return address, classify(MethodOpen, appTokenName, false, err)
}

// call calls a method that may be repeated.
func (c *API) call(ctx context.Context, method string, args url.Values) (apiResponse, error) {
	return c.callWithEffect(ctx, method, false, args)
}

// callWithEffect calls a method; effect says that it does something that must not be done twice.
func (c *API) callWithEffect(ctx context.Context, method string, effect bool, args url.Values) (apiResponse, error) {
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

func (c *API) decodeResponse(resp *http.Response) (apiResponse, error) {
	a := apiResponse{date: responseDate(resp.Header)}
	if resp.StatusCode == http.StatusTooManyRequests {
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		return a, errors.Join(err, &slackgo.RateLimitedError{RetryAfter: time.Duration(after) * time.Second})
	}
	if resp.StatusCode != http.StatusOK {
		return a, slackgo.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
	}
	if err := json.NewDecoder(resp.Body).Decode(&a.Object); err != nil {
		return a, fmt.Errorf("the answer is not JSON: %w", err)
	}
	if !a.IsTrue("ok") {
		return a, slackgo.SlackErrorResponse{Err: cmp.Or(a.Str("error"), codeNoAnswer), Needed: a.Str("needed")}
	}
	return a, nil
}

// Clock is Slack's clock, as its answers and events tell it.
func (c *API) Clock() *chat.Clock { return c.clock }

func callIf(f func()) {
	if f != nil {
		f()
	}
}

// apiResponse is the answer of a method, and its time by Slack's clock.
type apiResponse struct {
	lenientjson.Object
	date time.Time // zero: the answer had no Date
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

// plainNames knows no names.
func (c *API) plainNames() nameLookup { return nameLookup{TextRules: c.text} }

// DecodeText returns a text as it was typed: Slack's tokens and entities undone, people and channels by their ids.
func (c *API) DecodeText(text string) string { return decodeText(text, c.plainNames()) }

// Joined implements [chat.Channels].
func (c *API) Joined(ctx context.Context) ([]string, error) {
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

// ChannelInfo asks Slack for a channel. The errors are those of [chat.History].
func (c *API) ChannelInfo(ctx context.Context, id string) (ChannelInfo, error) {
	a, err := c.call(ctx, MethodChannel, url.Values{"channel": {id}})
	if err != nil {
		return ChannelInfo{}, err
	}
	ch := a.Obj("channel")
	return ChannelInfo{Name: cmp.Or(ch.Str("name"), id), Archived: ch.IsTrue("is_archived"), Member: ch.IsTrue("is_member"),
		Shared: ch.IsTrue("is_ext_shared") || ch.IsTrue("is_pending_ext_shared")}, nil
}

// ChannelInfo is what Slack says of a channel.
type ChannelInfo struct {
	Name     string // without the #
	Archived bool
	Member   bool // the bot is in it
	Shared   bool // with another organisation, or about to be
}

// lacksScope reports whether the token is known to lack a scope.
func (c *API) lacksScope(scope string) bool {
	have := c.Self().Scopes
	return have != nil && !slices.Contains(have, scope)
}

// findOwn returns the ts of the first message of ours that matches; empty when there is none.
func (c *API) findOwn(ctx context.Context, method string, args url.Values, matches func(message) bool) (string, error) {
	for {
		a, err := c.call(ctx, method, args)
		if err != nil {
			return "", err
		}
		for _, o := range a.Objects("messages") {
			if m := (message{Object: o}); m.isFrom(c.Self()) && matches(m) {
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

// checkMayPost returns why nothing may be posted in a channel.
func (c *API) checkMayPost(ctx context.Context, channel string) error {
	if check := c.hooks.Load().CheckPost; check != nil {
		return check(ctx, channel)
	}
	return nil
}

// scrubText removes secrets from a text.
func (c *API) scrubText(text string) string { return c.scrubber().Scrub(text) }

// ScrubAck removes secrets from the payload of an ack, in JSON.
func (c *API) ScrubAck(payload []byte) []byte {
	return c.scrubber().ScrubJSON(payload, scrub.IsMachineField)
}

// The page sizes that Slack recommends are at most 200.
const pageSize = "200"
