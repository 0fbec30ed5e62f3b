package localslack

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

func TestTokensAreChecked(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	for _, c := range []struct{ token, method, want string }{
		{"", "auth.test", "not_authed"},
		{"xoxb-wrong", "auth.test", "invalid_auth"},
		{f.AppToken(), "chat.postMessage", "not_allowed_token_type"},
		{f.BotToken(), "apps.connections.open", "not_allowed_token_type"},
		{f.BotToken(), "chat.explode", "unknown_method"},
		{f.BotToken(), "auth.test", ""},
		{f.AppToken(), "apps.connections.open", ""},
	} {
		if out, _ := f.CallAs(c.token, c.method, nil); blockkit.Str(out["error"]) != c.want {
			t.Errorf("%s with %.8s: %v, want %s", c.method, c.token, out["error"], c.want)
		}
	}
	f.RevokeToken(f.BotToken(), "token_revoked")
	f.CallFails("token_revoked", "auth.test", nil)
	f.RevokeToken(f.BotToken(), "")
	f.CallOK("auth.test", nil)
}

func TestTheTokenMayBeInTheBody(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	if out, _ := f.CallAs("", "auth.test", wiretest.Form("token", f.BotToken())); out["user_id"] != f.BotUserID() || out["bot_id"] != f.BotID() || out["team_id"] != f.TeamID() {
		t.Errorf("got %v", out)
	}
	for _, r := range f.RequestsOf("auth.test") {
		if _, there := r.Args["token"]; there {
			t.Error("the request log keeps tokens")
		}
	}
}

func TestAMissingScopeIsNamed(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) { o.Scopes = []string{"channels:history", "commands"} })
	_, _, err := f.api.PostMessageContext(f.ctx, f.ch, slack.MsgOptionText("x", false))
	var se slack.SlackErrorResponse
	if !errors.As(err, &se) || se.Err != "missing_scope" || se.Needed != "chat:write" || se.Provided != "channels:history,commands" {
		t.Errorf("got %#v", err)
	}
	f.CallFails("missing_scope", "conversations.info", wiretest.Form("channel", f.ch))
	_, res := f.Call("auth.test", nil)
	if got := res.Header.Get("X-OAuth-Scopes"); got != "channels:history,commands" {
		t.Errorf("X-OAuth-Scopes is %q", got)
	}
	f2 := startFixture(t, func(o *store.Options) { o.AppScopes = []string{} })
	if out, _ := f2.CallAs(f2.AppToken(), "apps.connections.open", nil); out["error"] != "missing_scope" || out["needed"] != "connections:write" {
		t.Errorf("got %v", out)
	}
}

func TestEveryResponseCarriesTheWorkspacesTime(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	f.clock.Advance(90 * time.Minute)
	_, res := f.Call("api.test", nil)
	if got := res.Header.Get("Date"); got != "Sun, 01 Mar 2026 10:30:00 GMT" {
		t.Errorf("Date is %q", got)
	}
}

func TestJSONIsReadOnlyWhereSlackReadsIt(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	send := func(method, body string) map[string]any {
		req := must[*http.Request](t)(http.NewRequestWithContext(f.ctx, http.MethodPost, f.APIURL()+method, strings.NewReader(body)))
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		req.Header.Set("Authorization", "Bearer "+f.BotToken())
		out, _ := f.Do(req)
		return out
	}
	if out := send("chat.postMessage", `{"channel":"`+f.ch+`","text":"x","blocks":[{"type":"divider"}]}`); out["ok"] != true {
		t.Errorf("chat.postMessage: %v", out)
	}
	if out := send("conversations.info", `{"channel":"`+f.ch+`"}`); out["ok"] == true {
		t.Error("conversations.info takes forms only")
	}
	if out := send("chat.postMessage", `{"channel":`); out["error"] == nil {
		t.Errorf("broken JSON was taken: %v", out)
	}
}
