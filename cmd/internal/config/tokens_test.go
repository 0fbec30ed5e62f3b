package config

import (
	"errors"
	"strings"
	"testing"
)

const (
	validBotToken = "xoxb-" + "1111111111-2222222222-abcdEFGHijkl"
	validAppToken = "xapp-" + "1-A1111111111-3333333333-0123456789abcdef"
)

func TestTokensAreReadFromTheNamedVariables(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "version: 1\nchannels: {slack: {botTokenEnv: B, appTokenEnv: A}}\n")
	bot, app, err := ReadTokens(c, func(name string) string { return map[string]string{"B": validBotToken, "A": validAppToken}[name] })
	if err != nil || bot != validBotToken || app != validAppToken {
		t.Errorf("got %q, %q, %v", bot, app, err)
	}
}

func TestATokenThatCannotBeUsedIsOneClearLineWithoutItsValue(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "version: 1\nchannels: {slack: {botTokenEnv: B, appTokenEnv: A}}\n")
	for _, tt := range []struct{ name, bot, app, want string }{
		{"missing", "", validAppToken, "$B is not set, or is empty — set it to the app's bot token (xoxb-…); the app's page OAuth & Permissions shows it"},
		{"blank", validBotToken, " \t", "$A is not set, or is empty — set it to the app's app-level token (xapp-…); generate one with connections:write on the app's page Basic Information"},
		{"swapped", validAppToken, validBotToken, "$B and $A hold each other's token — swap the two"},
		{"user token", "xoxp-" + validBotToken[5:], validAppToken, "$B holds a user token, not the bot token (xoxb-…) — the app's page OAuth & Permissions shows it"},
		{"bot twice", validBotToken, validBotToken, "$A holds a bot token, not the app-level token (xapp-…) — generate one with connections:write on the app's page Basic Information"},
		{"rotation", "xoxe.xoxb-" + validBotToken[5:], validAppToken, "$B holds a token for rotation, not the bot token (xoxb-…) — the app's page OAuth & Permissions shows it"},
		{"no token", "hunter2hunter2", validAppToken, "$B holds something else, not the bot token (xoxb-…) — the app's page OAuth & Permissions shows it"},
		{"quotes", `"` + validBotToken + `"`, validAppToken, "$B is in quotes — set it to the token alone"},
		{"curly quotes", "“" + validBotToken + "”", validAppToken, "$B is in quotes — set it to the token alone"},
		{"half a quote", validBotToken + "'", validAppToken, "$B is in quotes — set it to the token alone"},
		{"line feed", validBotToken + "\n", validAppToken, "$B has white space around the token — set it to the token alone"},
		{"line break inside", validBotToken[:20] + "\n" + validBotToken[20:], validAppToken, "$B does not hold a complete bot token — copy it again; the app's page OAuth & Permissions shows it"},
		{"cut off", "xoxb-1111", validAppToken, "$B does not hold a complete bot token — copy it again; the app's page OAuth & Permissions shows it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bot, app, err := ReadTokens(c, func(name string) string { return map[string]string{"B": tt.bot, "A": tt.app}[name] })
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

func TestBothMissingTokensAreReportedTogether(t *testing.T) {
	t.Parallel()
	_, _, err := ReadTokens(mustParse(t, "version: 1\n"), noEnv)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "$THE_LOOP_SLACK_BOT_TOKEN ") || !strings.HasPrefix(lines[1], "$THE_LOOP_SLACK_APP_TOKEN ") {
		t.Errorf("got %v", err)
	}
}
