package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// manifest is the part of an app manifest that the workspace acts on.
type manifest struct {
	Display struct {
		Name string `yaml:"name"`
	} `yaml:"display_information"`
	Features struct {
		BotUser struct {
			DisplayName string `yaml:"display_name"`
		} `yaml:"bot_user"`
		AppHome struct {
			HomeTab  bool `yaml:"home_tab_enabled"`
			Messages bool `yaml:"messages_tab_enabled"`
		} `yaml:"app_home"`
		Commands []struct {
			Command     string `yaml:"command"`
			Description string `yaml:"description"`
			Escape      bool   `yaml:"should_escape"`
			URL         string `yaml:"url"`
		} `yaml:"slash_commands"`
		Shortcuts []struct {
			Name        string `yaml:"name"`
			Type        string `yaml:"type"`
			CallbackID  string `yaml:"callback_id"`
			Description string `yaml:"description"`
		} `yaml:"shortcuts"`
	} `yaml:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `yaml:"bot"`
		} `yaml:"scopes"`
	} `yaml:"oauth_config"`
	Settings struct {
		Events struct {
			Bot []string `yaml:"bot_events"`
		} `yaml:"event_subscriptions"`
		Interactivity struct {
			Enabled bool `yaml:"is_enabled"`
		} `yaml:"interactivity"`
		SocketMode bool `yaml:"socket_mode_enabled"`
	} `yaml:"settings"`
}

// eventScopes are the bot events of the workspace with the scope that Slack wants for each.
var eventScopes = map[string]string{
	"message.channels": "channels:history", "message.groups": "groups:history", "message.im": "im:history",
	"message.mpim": "mpim:history", "app_mention": "app_mentions:read", "app_home_opened": "",
	"member_joined_channel": "channels:read", "member_left_channel": "channels:read", "channel_archive": "channels:read",
	"channel_unarchive": "channels:read", "group_unarchive": "groups:read", "channel_shared": "channels:read", "channel_unshared": "channels:read",
	"channel_rename": "channels:read", "group_rename": "groups:read",
	"channel_id_changed": "channels:read", "group_archive": "groups:read", "reaction_added": "reactions:read",
	"reaction_removed": "reactions:read", "tokens_revoked": "", "app_uninstalled": "",
}

// ApplyManifest makes the options those of an app with this manifest, YAML or JSON: its scopes, events, commands, shortcuts
// and Home tab, and no others. It refuses what Slack refuses to install.
func (o *Options) ApplyManifest(raw []byte) error {
	var m manifest
	if err := yaml.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("read the app manifest: %w", err)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("install the app manifest: %w", err)
	}
	o.Scopes, o.Events = slices.Clone(m.OAuth.Scopes.Bot), append([]string{}, m.Settings.Events.Bot...)
	o.Commands, o.Shortcuts = []string{}, []string{}
	for _, c := range m.Features.Commands {
		o.Commands = append(o.Commands, c.Command)
		o.RawCommands = !c.Escape
	}
	for _, s := range m.Features.Shortcuts {
		o.Shortcuts = append(o.Shortcuts, s.CallbackID)
	}
	o.NoHome, o.NoMessages = !m.Features.AppHome.HomeTab, !m.Features.AppHome.Messages
	o.NoInteractivity = !m.Settings.Interactivity.Enabled
	if m.Features.BotUser.DisplayName != "" {
		o.BotName = m.Features.BotUser.DisplayName
	}
	return nil
}

func (m *manifest) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if n := utf8.RuneCountInString(m.Display.Name); n == 0 || n > 35 {
		wrong("display_information.name must have 1 to 35 characters")
	}
	if len(m.OAuth.Scopes.Bot) > 0 && m.Features.BotUser.DisplayName == "" {
		wrong("features.bot_user is required for bot scopes")
	}
	if !m.Settings.SocketMode {
		wrong("settings.socket_mode_enabled must be true: nothing else reaches an app without a public URL")
	}
	m.checkScopes(wrong)
	m.checkFeatures(wrong)
	return errors.Join(errs...)
}

func (m *manifest) checkScopes(wrong func(string, ...any)) {
	have := m.OAuth.Scopes.Bot
	for _, s := range have {
		if !slices.Contains(allScopes(), s) {
			wrong("oauth_config.scopes.bot: %s is no scope that this workspace knows", s)
		}
	}
	for _, e := range m.Settings.Events.Bot {
		scope, known := eventScopes[e]
		if !known {
			wrong("settings.event_subscriptions.bot_events: %s is no event that this workspace knows", e)
		}
		if scope != "" && !slices.Contains(have, scope) {
			wrong("settings.event_subscriptions.bot_events: %s requires the scope %s", e, scope)
		}
	}
	if len(m.Features.Commands)+len(m.Features.Shortcuts) > 0 && !slices.Contains(have, "commands") {
		wrong("commands and shortcuts require the scope commands")
	}
}

func (m *manifest) checkFeatures(wrong func(string, ...any)) {
	for _, c := range m.Features.Commands {
		if !strings.HasPrefix(c.Command, "/") || c.Command != strings.ToLower(c.Command) || strings.Contains(c.Command, " ") || len(c.Command) > 32 || c.Command == "/" {
			wrong("features.slash_commands: %q is no command", c.Command)
		}
		if c.Description == "" {
			wrong("features.slash_commands: %s needs a description", c.Command)
		}
	}
	for _, s := range m.Features.Shortcuts {
		if s.Type != "message" && s.Type != "global" {
			wrong("features.shortcuts: type %q is neither message nor global", s.Type)
		}
		if s.Name == "" || utf8.RuneCountInString(s.Name) > 24 || s.CallbackID == "" || s.Description == "" {
			wrong("features.shortcuts: %q needs a name of at most 24 characters, a callback_id and a description", s.Name)
		}
	}
	if len(m.Features.Shortcuts) > 0 && !m.Settings.Interactivity.Enabled {
		wrong("settings.interactivity.is_enabled must be true for shortcuts")
	}
}
