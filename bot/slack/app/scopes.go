package app

import (
	"slices"

	"the-loop/bot/slack"
)

// methodScopes are the bot scopes that each method needs for public and private channels.
var methodScopes = map[string][]string{
	slack.MethodAuthTest:  nil,
	slack.MethodPost:      {"chat:write"},
	slack.MethodUpdate:    {"chat:write"},
	slack.MethodDelete:    {"chat:write"},
	slack.MethodEphemeral: {"chat:write"},
	slack.MethodReplies:   {"channels:history", "groups:history"},
	slack.MethodHistory:   {"channels:history", "groups:history"},
	slack.MethodChannel:   {"channels:read", "groups:read"},
	slack.MethodJoined:    {"channels:read", "groups:read"},
	slack.MethodUser:      {"users:read"},
	slack.MethodReact:     {"reactions:write"},
	slack.MethodUnreact:   {"reactions:write"},
	slack.MethodStatus:    {"chat:write"}, // since March 2026; where it is not so yet, statuses are done without

	slack.MethodViewOpen:   nil,
	slack.MethodViewPush:   nil,
	slack.MethodViewUpdate: nil,
	slack.MethodHome:       nil,
	slack.MethodUploadURL:  {slack.ScopeUpload},
	slack.MethodUpload:     {slack.ScopeUpload},
	slack.MethodFile:       {slack.ScopeFetch},
}

// optionalScopes are the scopes that the bot works without, and what is missing then.
var optionalScopes = map[string]string{
	slack.ScopeUpload: "agents post no files, long answers are cut, and a shared screen has no picture",
	slack.ScopeFetch:  "agents get no files of replies",
}

// subscription is an event that the app subscribes to: its name there, the type that it arrives with, and its scopes.
type subscription struct {
	event     string
	innerType string
	scopes    []string
}

// subscriptions are the events in use. app_mention is not among them: a mention in a channel that the bot is in comes
// as a message too, with all its fields.
var subscriptions = []subscription{
	{"message.channels", "message", []string{"channels:history"}},
	{"message.groups", "message", []string{"groups:history"}},
	{"channel_archive", "channel_archive", []string{"channels:read"}},
	{"group_archive", "group_archive", []string{"groups:read"}},
	{"channel_unarchive", "channel_unarchive", []string{"channels:read"}},
	{"group_unarchive", "group_unarchive", []string{"groups:read"}},
	{"channel_shared", "channel_shared", []string{"channels:read", "groups:read"}},
	{"channel_unshared", "channel_unshared", []string{"channels:read", "groups:read"}},
	{"channel_rename", "channel_rename", []string{"channels:read"}},
	{"group_rename", "group_rename", []string{"groups:read"}},
	{"member_joined_channel", "member_joined_channel", []string{"channels:read", "groups:read"}},
	{"member_left_channel", "member_left_channel", []string{"channels:read", "groups:read"}},
	{"channel_id_changed", "channel_id_changed", []string{"channels:read", "groups:read"}},
	{"tokens_revoked", "tokens_revoked", nil},
	{"app_uninstalled", "app_uninstalled", nil},
	{"app_home_opened", "app_home_opened", nil},
}

// featureScopes are the scopes that no method and no event needs.
var featureScopes = []string{"commands"}

// Scopes are the bot scopes in use, sorted.
func Scopes() []string {
	scopes := slices.Clone(featureScopes)
	for _, s := range methodScopes {
		scopes = append(scopes, s...)
	}
	for _, s := range subscriptions {
		scopes = append(scopes, s.scopes...)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// Events are the bot events in use, sorted.
func Events() []string {
	events := make([]string, 0, len(subscriptions))
	for _, s := range subscriptions {
		events = append(events, s.event)
	}
	slices.Sort(events)
	return events
}

// RequiredScopes are the scopes without which nothing works, sorted.
func RequiredScopes() []string {
	return slices.DeleteFunc(Scopes(), func(s string) bool { return optionalScopes[s] != "" })
}
