package bot

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// refusal is the last word of Slack about the bot token, where it is no. Every answer of the Web InjectAPI says one.
type refusal struct {
	code    atomic.Pointer[string] // nil: the token is taken
	changed func()                 // told when that changes; nil: nobody
}

// tokenRefusals are the errors that are about the token and not about what was asked for.
var tokenRefusals = map[string]bool{"invalid_auth": true, "not_authed": true, "account_inactive": true, "token_revoked": true,
	"token_expired": true, "org_login_required": true, "team_disabled": true}

// heard takes up an answer to a request that carried the bot token. An answer that is no JSON of Slack's says nothing.
func (r *refusal) heard(resp *http.Response, body []byte) {
	if resp.StatusCode != http.StatusOK || !bytes.HasPrefix(bytes.TrimSpace(body), []byte(`{`)) {
		return
	}
	if !bytes.Contains(body[:min(len(body), 64)], []byte(`"ok":true`)) {
		r.judge(body)
		return
	}
	if r.code.Swap(nil) != nil {
		r.tell()
	}
}

func (r *refusal) judge(body []byte) {
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
		r.tell()
	}
}

func (r *refusal) tell() {
	if r.changed != nil {
		r.changed()
	}
}

// problem says that Slack refuses the token; empty: it does not.
func (r *refusal) problem() string {
	code := r.code.Load()
	if code == nil {
		return ""
	}
	return fatal(botTokenName, *code, "").Error() + "; nothing can be posted until it is taken again"
}
