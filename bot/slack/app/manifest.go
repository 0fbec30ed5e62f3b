package app

import (
	"bytes"
	"fmt"

	"gopkg.in/yaml.v3"
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
	AppHome       manifestHome      `yaml:"app_home"`
	BotUser       manifestBot       `yaml:"bot_user"`
	SlashCommands []manifestCommand `yaml:"slash_commands"`
	Shortcuts     []Shortcut        `yaml:"shortcuts,omitempty"`
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

// Shortcut is an entry in the menu of a message, or of the composer.
type Shortcut struct {
	Name        string `yaml:"name"`
	Type        string `yaml:"type"` // message or global
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

// ManifestOptions are what a manifest holds beside scopes and events.
type ManifestOptions struct {
	Command   string // the slash command, with its slash
	UsageHint string // of the command
	Name      string // of the bot
	Shortcuts []Shortcut
}

// Manifest returns the YAML from which api.slack.com/apps creates the app, with exactly the scopes and events that are in use.
func Manifest(o ManifestOptions) ([]byte, error) {
	if len(o.Command) < 2 || o.Command[0] != '/' {
		return nil, fmt.Errorf("the command %q must begin with a slash", o.Command)
	}
	m := manifest{
		Display: manifestDisplay{Name: o.Name, Description: "Talk to the agents that run on your machine"},
		Features: manifestFeatures{
			AppHome: manifestHome{Home: true, Messages: true, MessagesReadOnly: true}, // the operator is written to directly
			BotUser: manifestBot{DisplayName: o.Name, AlwaysOnline: false},
			SlashCommands: []manifestCommand{{Command: o.Command, Description: "What runs, and how it is",
				UsageHint: o.UsageHint, ShouldEscape: true}},
			Shortcuts: o.Shortcuts,
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
