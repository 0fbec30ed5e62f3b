package localslack

import (
	"errors"
	"strings"
	"testing"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

const goodManifest = `
display_information: {name: Agent Bridge}
features:
  bot_user: {display_name: agent}
  app_home: {home_tab_enabled: false}
  slash_commands: [{command: /agent, description: Manage agents, should_escape: true}]
  shortcuts: [{name: Agent session, type: message, callback_id: session_menu, description: Restart or delete}]
oauth_config: {scopes: {bot: [chat:write, commands, channels:history]}}
settings:
  event_subscriptions: {bot_events: [message.channels]}
  interactivity: {is_enabled: true}
  socket_mode_enabled: true
`

func TestApplyManifestConfiguresTheApp(t *testing.T) {
	t.Parallel()
	f := startFixture(t, func(o *store.Options) {
		if err := o.ApplyManifest([]byte(goodManifest)); err != nil {
			t.Fatal(err)
		}
	})
	f.ackWith(emptyAck)
	ts := f.post("@agent hi")
	f.CallFails("missing_scope", "reactions.add", wiretest.Form("channel", f.ch, "timestamp", ts, "name", "eyes"))
	f.CallFails("not_enabled", "views.publish", wiretest.Form("user_id", f.ann.ID, "view", homeView))
	if _, err := f.ann.Slash(f.ctx, f.ch, "/other", ""); !errors.Is(err, slackerr.ErrRefused) {
		t.Errorf("a command of nobody: %v", err)
	}
	if err := f.ann.Shortcut(f.ctx, f.ch, ts, "session_menu"); err != nil {
		t.Error(err)
	}
}

func TestAnInconsistentManifestIsRefused(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"channels:history]|]":                       "message.channels requires the scope channels:history",
		"commands, |":                               "require the scope commands",
		"socket_mode_enabled: true|x: 1":            "socket_mode_enabled",
		"message.channels|message.martians":         "no event",
		"chat:write|chat:scream":                    "no scope",
		"is_enabled: true|is_enabled: false":        "is_enabled must be true for shortcuts",
		"/agent|Agent":                              "is no command",
		"bot_user: {display_name: agent}|x: 1":      "bot_user is required",
		"Agent Bridge|" + strings.Repeat("long", 9): "display_information.name",
		"type: message|type: odd":                   "neither message nor global",
		"features:|features: [":                     "read the app manifest",
	} {
		from, to, _ := strings.Cut(change, "|")
		var o store.Options
		err := o.ApplyManifest([]byte(strings.Replace(goodManifest, from, to, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", change, err, want)
		}
	}
}

func TestATextThatStartsLikeACommandIsNoMessage(t *testing.T) {
	t.Parallel()
	f := startFixture(t)
	root := f.post("root")
	if _, err := f.ann.Reply(f.ch, root, "/compact now"); !errors.Is(err, slackerr.ErrRefused) {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"/etc/passwd is a file", "use /compact", "/ alone"} {
		f.reply(root, text)
	}
	f.reply(root, "/compact", AllowLeadingSlash())
}
