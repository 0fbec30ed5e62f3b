package config

import (
	"errors"
	"strings"
	"testing"
)

const (
	goodBot = "xoxb-" + "1111111111-2222222222-abcdEFGHijkl"
	goodApp = "xapp-" + "1-A1111111111-3333333333-0123456789abcdef"
)

func TestTokensAreReadFromTheNamedVariables(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "version: 1\nchannels: {slack: {botTokenEnv: B, appTokenEnv: A}}\n")
	bot, app, err := Tokens(c, func(name string) string { return map[string]string{"B": goodBot, "A": goodApp}[name] })
	if err != nil || bot != goodBot || app != goodApp {
		t.Errorf("got %q, %q, %v", bot, app, err)
	}
}

func TestATokenThatCannotBeUsedIsOneClearLineWithoutItsValue(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "version: 1\nchannels: {slack: {botTokenEnv: B, appTokenEnv: A}}\n")
	for _, tt := range []struct{ name, bot, app, want string }{
		{"missing", "", goodApp, "$B is not set, or is empty — set it to the app's bot token (xoxb-…); the app's page OAuth & Permissions shows it"},
		{"blank", goodBot, " \t", "$A is not set, or is empty — set it to the app's app-level token (xapp-…); generate one with connections:write on the app's page Basic Information"},
		{"swapped", goodApp, goodBot, "$B and $A hold each other's token — swap the two"},
		{"user token", "xoxp-" + goodBot[5:], goodApp, "$B holds a user token, not the bot token (xoxb-…) — the app's page OAuth & Permissions shows it"},
		{"bot twice", goodBot, goodBot, "$A holds a bot token, not the app-level token (xapp-…) — generate one with connections:write on the app's page Basic Information"},
		{"rotation", "xoxe.xoxb-" + goodBot[5:], goodApp, "$B holds a token for rotation, not the bot token (xoxb-…) — the app's page OAuth & Permissions shows it"},
		{"no token", "hunter2hunter2", goodApp, "$B holds something else, not the bot token (xoxb-…) — the app's page OAuth & Permissions shows it"},
		{"quotes", `"` + goodBot + `"`, goodApp, "$B is in quotes — set it to the token alone"},
		{"curly quotes", "“" + goodBot + "”", goodApp, "$B is in quotes — set it to the token alone"},
		{"half a quote", goodBot + "'", goodApp, "$B is in quotes — set it to the token alone"},
		{"line feed", goodBot + "\n", goodApp, "$B has white space around the token — set it to the token alone"},
		{"line break inside", goodBot[:20] + "\n" + goodBot[20:], goodApp, "$B holds no complete bot token — copy it again; the app's page OAuth & Permissions shows it"},
		{"cut off", "xoxb-1111", goodApp, "$B holds no complete bot token — copy it again; the app's page OAuth & Permissions shows it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bot, app, err := Tokens(c, func(name string) string { return map[string]string{"B": tt.bot, "A": tt.app}[name] })
			if err == nil || err.Error() != tt.want || bot != "" || app != "" {
				t.Fatalf("got  %v\nwant %s", err, tt.want)
			}
			var token *TokenError
			if !errors.As(err, &token) {
				t.Errorf("not a *TokenError: %T", err)
			}
			for _, part := range []string{"1111", "2222", "abcd", "3333", "0123", "hunter"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("shows %s", part)
				}
			}
		})
	}
}

func TestBothTokensMissingIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, _, err := Tokens(mustParse(t, "version: 1\n"), noEnv)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "$THE_LOOP_SLACK_BOT_TOKEN ") || !strings.HasPrefix(lines[1], "$THE_LOOP_SLACK_APP_TOKEN ") {
		t.Errorf("got %v", err)
	}
}
