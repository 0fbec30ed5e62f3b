package localslack

import (
	"net/http"
	"slices"
	"strings"

	"the-loop/bot/localslack/slackerr"
)

type tokenKind int

const (
	botToken tokenKind = iota
	appToken
	noToken // api.test
)

// method is one entry of the Web InjectAPI.
type method struct {
	fn    func(*call) (jsonObject, error)
	tier  int // calls a minute; 0: none that matters here
	scope string
	token tokenKind
	json  bool // Slack reads a JSON body
}

// allScopes are the bot scopes that some method of the workspace asks for.
func allScopes() []string {
	return strings.Fields(`app_mentions:read assistant:write channels:history channels:read chat:write commands
		files:read files:write groups:history groups:read im:history im:read im:write mpim:history mpim:read
		reactions:read reactions:write usergroups:read users:read`)
}

// authenticate checks token and scope. The caller holds mu.
func (w *API) authenticate(c *call, m method) error {
	if m.token == noToken {
		return nil
	}
	if c.token == "" {
		return slackerr.New("not_authed")
	}
	if e := w.tokenErrors[c.token]; e != "" {
		return slackerr.New(e)
	}
	switch c.token {
	case w.opts.BotToken:
		c.kind = botToken
		w.setScopeHeaders(c.header, w.opts.Scopes, m.scope)
	case w.opts.AppToken:
		c.kind = appToken
		w.setScopeHeaders(c.header, w.opts.AppScopes, m.scope)
	default:
		return slackerr.New("invalid_auth")
	}
	if c.kind != m.token && c.method != "auth.test" {
		return slackerr.New("not_allowed_token_type")
	}
	return w.requireScope(c, m.scope)
}

// requireScope fails with missing_scope as Slack does, naming what is needed and what is there.
func (w *API) requireScope(c *call, scope string) error {
	have := w.opts.Scopes
	if c.kind == appToken {
		have = w.opts.AppScopes
	}
	if scope == "" || slices.Contains(have, scope) {
		return nil
	}
	return &slackerr.Error{Code: "missing_scope", Extra: jsonObject{"needed": scope, "provided": strings.Join(have, ",")}}
}

func (w *API) setScopeHeaders(h http.Header, have []string, need string) {
	h.Set("X-OAuth-Scopes", strings.Join(have, ","))
	if need != "" {
		h.Set("X-Accepted-OAuth-Scopes", need)
	}
}

// scopeFor names the scope that reads a kind of conversation; what is history or read.
func scopeFor(kind ChannelKind, what string) string {
	return kindName(kind) + ":" + what
}

// kindName is how scopes and event names call a kind of conversation.
func kindName(kind ChannelKind) string {
	switch kind {
	case PublicChannel:
		return "channels"
	case PrivateChannel:
		return "groups"
	}
	return string(kind)
}
