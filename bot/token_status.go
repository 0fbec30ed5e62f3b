package bot

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// tokenStatus is the last word of Slack about the bot token, where it is no. Every answer of the Web InjectAPI says one.
type tokenStatus struct {
	code     atomic.Pointer[string] // nil: the token is taken
	onChange func()                 // told when that changes; nil: nobody
}

// tokenRefusals are the errors that are about the token and not about what was asked for.
var tokenRefusals = map[string]bool{"invalid_auth": true, "not_authed": true, "account_inactive": true, "token_revoked": true,
	"token_expired": true, "org_login_required": true, "team_disabled": true}

// heard takes up an answer to a request that carried the bot token. An answer that is no JSON of Slack's says nothing.
func (r *tokenStatus) observe(resp *http.Response, body []byte) {
	if resp.StatusCode != http.StatusOK || !bytes.HasPrefix(bytes.TrimSpace(body), []byte(`{`)) {
		return
	}
	if !bytes.Contains(body[:min(len(body), 64)], []byte(`"ok":true`)) {
		r.observeError(body)
		return
	}
	if r.code.Swap(nil) != nil {
		r.notify()
	}
}

func (r *tokenStatus) observeError(body []byte) {
	var said struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil || !said.OK && said.Error == "" {
		return
	}
	var now *string
	if tokenRefusals[said.Error] {
		now = &said.Error
	}
	if before := r.code.Swap(now); (before == nil) != (now == nil) {
		r.notify()
	}
}

func (r *tokenStatus) notify() {
	if r.onChange != nil {
		r.onChange()
	}
}

// problem says that Slack refuses the token; empty: it does not.
func (r *tokenStatus) problem() string {
	code := r.code.Load()
	if code == nil {
		return ""
	}
	return newFatalError(botTokenName, *code, "").Error() + "; nothing can be posted until it is taken again"
}
