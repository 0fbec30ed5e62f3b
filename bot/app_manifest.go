package bot

import (
	"the-loop/bot/command"
	"the-loop/bot/interact"
	"the-loop/bot/slack/app"
)

// shortcuts are those of the app.
var shortcuts = []app.Shortcut{{Name: "Session", Type: "message", CallbackID: interact.ShortcutSession,
	Description: "What can be done to the session of this thread"}}

// AppManifest returns the manifest of the Slack app for a slash command, which begins with a slash, and a bot's name.
func AppManifest(slash, name string) ([]byte, error) {
	return app.Manifest(app.ManifestOptions{Command: slash, UsageHint: command.UsageHint(), Name: name, Shortcuts: shortcuts})
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
