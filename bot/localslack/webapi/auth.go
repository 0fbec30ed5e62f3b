package webapi

import (
	"net/http"
	"slices"
	"strings"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

type tokenKind int

const (
	botToken tokenKind = iota
	appToken
	noToken // api.test
)

// method is one entry of the Web API.
type method struct {
	fn    func(*call) (store.Object, error)
	Tier  int // calls a minute; 0: none that matters here
	scope string
	token tokenKind
	json  bool // Slack reads a JSON body
}

// authenticate checks token and scope. The caller holds Mu.
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
	case w.Opts.BotToken:
		c.kind = botToken
		w.setScopeHeaders(c.header, w.Opts.Scopes, m.scope)
	case w.Opts.AppToken:
		c.kind = appToken
		w.setScopeHeaders(c.header, w.Opts.AppScopes, m.scope)
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
	have := w.Opts.Scopes
	if c.kind == appToken {
		have = w.Opts.AppScopes
	}
	if scope == "" || slices.Contains(have, scope) {
		return nil
	}
	return &slackerr.Error{Code: "missing_scope", Extra: store.Object{"needed": scope, "provided": strings.Join(have, ",")}}
}

func (w *API) setScopeHeaders(h http.Header, have []string, need string) {
	h.Set("X-OAuth-Scopes", strings.Join(have, ","))
	if need != "" {
		h.Set("X-Accepted-OAuth-Scopes", need)
	}
}
