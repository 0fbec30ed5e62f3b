package slack

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// tokenStatus is whether Slack accepts the bot token, as every answer of the Web API tells.
type tokenStatus struct {
	code     atomic.Pointer[string] // the error with which it was refused last; nil: it is accepted
	onChange func()                 // called when that changes; may be nil
}

// tokenRefusals are the errors that are about the token and not about the request.
var tokenRefusals = map[string]bool{"invalid_auth": true, "not_authed": true, "account_inactive": true, "token_revoked": true,
	"token_expired": true, "org_login_required": true, "team_disabled": true}

// observe reads an answer to a request with the bot token. One that is not JSON tells nothing.
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
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || !answer.OK && answer.Error == "" {
		return
	}
	var now *string
	if tokenRefusals[answer.Error] {
		now = &answer.Error
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

// problem says that Slack refuses the token, and what to do; empty: it does not.
func (r *tokenStatus) problem() string {
	code := r.code.Load()
	if code == nil {
		return ""
	}
	return newFatalError(botTokenName, *code, "").Error() + "; until then nothing can be posted"
}
