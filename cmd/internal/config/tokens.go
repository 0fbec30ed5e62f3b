package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// TokenError is a Slack token that is missing or cannot be one. It never holds any part of the value.
type TokenError struct {
	Variable string
	Message  string // what is wrong — what to do
}

// Error names the variable.
func (e *TokenError) Error() string { return "$" + e.Variable + " " + e.Message }

// tokenKind is one of the two tokens that Socket Mode needs.
type tokenKind struct{ name, prefix, howToGet string }

var (
	botToken = tokenKind{"bot token", "xoxb-", "the app's page OAuth & Permissions shows it"}
	appToken = tokenKind{"app-level token", "xapp-", "generate one with connections:write on the app's page Basic Information"}
)

// ReadTokens reads the two Slack tokens from the variables that the configuration names. Each token that cannot be used gives
// a [TokenError], a line each.
func ReadTokens(c *Config, env func(string) string) (bot, app string, err error) {
	bot, app = env(c.Slack.BotTokenEnv), env(c.Slack.AppTokenEnv)
	if strings.HasPrefix(bot, appToken.prefix) && strings.HasPrefix(app, botToken.prefix) {
		return "", "", &TokenError{c.Slack.BotTokenEnv, fmt.Sprintf("and $%s hold each other's token — swap the two", c.Slack.AppTokenEnv)}
	}
	err = errors.Join(botToken.check(c.Slack.BotTokenEnv, bot), appToken.check(c.Slack.AppTokenEnv, app))
	if err != nil {
		return "", "", err
	}
	return bot, app, nil
}

var tokenPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9-]+$`) })

// check gives an error without any part of the value.
func (k tokenKind) check(variable, value string) error {
	fault := func(format string, args ...any) error {
		return &TokenError{variable, fmt.Sprintf(format, args...)}
	}
	trimmed := strings.TrimSpace(value)
	switch {
	case trimmed == "":
		return fault("is not set, or is empty — set it to the app's %s (%s…); %s", k.name, k.prefix, k.howToGet)
	case strings.Trim(trimmed, "'\"`“”‘’") != trimmed:
		return fault("is in quotes — set it to the token alone")
	case trimmed != value:
		return fault("has white space around the token — set it to the token alone")
	}
	if wrong := k.otherKind(value); wrong != "" {
		return fault("holds %s, not the %s (%s…) — %s", wrong, k.name, k.prefix, k.howToGet)
	}
	if !tokenPattern().MatchString(value) || len(value) < len(k.prefix)+8 {
		return fault("does not hold a complete %s — copy it again; %s", k.name, k.howToGet)
	}
	return nil
}

// otherKind says what else a value is; nothing when it is of this kind.
func (k tokenKind) otherKind(value string) string {
	others := []struct{ prefix, name string }{
		{botToken.prefix, "a bot token"},
		{appToken.prefix, "an app-level token"},
		{"xoxp-", "a user token"},
		{"xoxe", "a token for rotation"},
		{"xoxs-", "a session token"}, {"xoxc-", "a session token"}, {"xoxd-", "a session token"},
	}
	if strings.HasPrefix(value, k.prefix) {
		return ""
	}
	for _, o := range others {
		if strings.HasPrefix(value, o.prefix) {
			return o.name
		}
	}
	return "something else"
}
