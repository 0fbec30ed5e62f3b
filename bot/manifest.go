package bot

import (
	"bytes"
	"fmt"

	"gopkg.in/yaml.v3"

	"the-loop/bot/command"
	"the-loop/bot/interact"
)

// The manifest of a Slack app, as far as it is used here. Its keys are Slack's.
type manifest struct {
	Display  manifestDisplay  `yaml:"display_information"`
	Features manifestFeatures `yaml:"features"`
	OAuth    manifestOAuth    `yaml:"oauth_config"`
	Settings manifestSettings `yaml:"settings"`
}

type manifestDisplay struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

type manifestFeatures struct {
	AppHome       manifestHome       `yaml:"app_home"`
	BotUser       manifestBot        `yaml:"bot_user"`
	SlashCommands []manifestCommand  `yaml:"slash_commands"`
	Shortcuts     []manifestShortcut `yaml:"shortcuts,omitempty"`
}

type manifestHome struct {
	Home             bool `yaml:"home_tab_enabled"`
	Messages         bool `yaml:"messages_tab_enabled"`
	MessagesReadOnly bool `yaml:"messages_tab_read_only_enabled"`
}

type manifestBot struct {
	DisplayName  string `yaml:"display_name"`
	AlwaysOnline bool   `yaml:"always_online"`
}

type manifestCommand struct {
	Command      string `yaml:"command"`
	Description  string `yaml:"description"`
	UsageHint    string `yaml:"usage_hint"`
	ShouldEscape bool   `yaml:"should_escape"`
}

type manifestShortcut struct {
	Name        string `yaml:"name"`
	Type        string `yaml:"type"`
	CallbackID  string `yaml:"callback_id"`
	Description string `yaml:"description"`
}

type manifestOAuth struct {
	Scopes struct {
		Bot []string `yaml:"bot"`
	} `yaml:"scopes"`
}

type manifestSettings struct {
	Events struct {
		Bot []string `yaml:"bot_events"`
	} `yaml:"event_subscriptions"`
	Interactivity struct {
		Enabled bool `yaml:"is_enabled"`
	} `yaml:"interactivity"`
	OrgDeploy     bool `yaml:"org_deploy_enabled"`
	SocketMode    bool `yaml:"socket_mode_enabled"`
	TokenRotation bool `yaml:"token_rotation_enabled"`
}

// shortcuts are the message and global shortcuts in use.
var shortcuts = []manifestShortcut{{Name: "Session", Type: "message", CallbackID: interact.ShortcutSession,
	Description: "What can be done to the session of this thread"}}

// Manifest is the YAML from which api.slack.com/apps makes the app: the scopes, events, command and shortcuts that are
// in use, and nothing else. slash is the command, with its slash; name is what the bot is called.
func Manifest(slash, name string) ([]byte, error) {
	if len(slash) < 2 || slash[0] != '/' {
		return nil, fmt.Errorf("the command %q must begin with a slash", slash)
	}
	m := manifest{
		Display: manifestDisplay{Name: name, Description: "Talk to the agents that run on your machine"},
		Features: manifestFeatures{
			AppHome: manifestHome{Home: true, Messages: true, MessagesReadOnly: true}, // the operator is written to directly
			BotUser: manifestBot{DisplayName: name, AlwaysOnline: false},
			SlashCommands: []manifestCommand{{Command: slash, Description: "What runs, and how it is",
				UsageHint: command.UsageHint(), ShouldEscape: true}},
			Shortcuts: shortcuts,
		},
	}
	m.OAuth.Scopes.Bot = Scopes()
	m.Settings.Events.Bot = Events()
	m.Settings.Interactivity.Enabled, m.Settings.SocketMode = true, true
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return b.Bytes(), enc.Close()
}

// MessageShortcuts are the app's entries in the menu of a message: their names, by callback id.
func MessageShortcuts() map[string]string {
	names := map[string]string{}
	for _, s := range shortcuts {
		if s.Type == "message" {
			names[s.CallbackID] = s.Name
		}
	}
	return names
}
