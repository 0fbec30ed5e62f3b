package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/google/renameio/v2"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// syncEvents are the events whose hooks Claude Code waits for, and asyncEvents those whose hooks run in the background: a text that
// is submitted while it waits for a Stop hook overtakes those in its queue, and also comes back into the box (2.1.197).
var (
	syncEvents  = []string{report.EventSessionStart, report.EventPromptSubmit, report.EventSessionEnd}
	asyncEvents = []string{report.EventStop, report.EventStopFailure, report.EventNotification}
)

// settingsPath returns the session's own settings file.
func (c Harness) settingsPath(session string) (string, error) {
	if !sessions.ValidConversation(session) {
		return "", fmt.Errorf("claude: %q is no id of a session", session)
	}
	return filepath.Join(c.SettingsDir, session+".json"), nil
}

// writeSettings writes the session's settings file, with the content of the operator's --settings in it. Claude Code runs the hooks
// of all its settings files, so the operator's still run.
func (c Harness) writeSettings(l sessions.Launch) error {
	path, err := c.settingsPath(l.Session)
	if err != nil {
		return err
	}
	_, given, err := extractSettingsArg(l.Args)
	if err != nil {
		return err
	}
	settings, err := readGivenSettings(given, l.Cwd)
	if err != nil {
		return err
	}
	if err := c.addHooks(settings, l.Session); err != nil {
		return err
	}
	if c.acceptsBypass(l.Args) {
		settings["skipDangerousModePermissionPrompt"] = json.RawMessage("true")
	}
	data, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.SettingsDir, 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, append(data, '\n'), 0o600, renameio.IgnoreUmask())
}

// readGivenSettings reads the operator's --settings: a file, or JSON itself.
func readGivenSettings(given, cwd string) (map[string]json.RawMessage, error) {
	settings := map[string]json.RawMessage{}
	if given == "" {
		return settings, nil
	}
	data := []byte(given)
	if !strings.HasPrefix(strings.TrimSpace(given), "{") {
		if !filepath.IsAbs(given) {
			given = filepath.Join(cwd, given)
		}
		var err error
		if data, err = os.ReadFile(given); err != nil {
			return nil, fmt.Errorf("read the settings of harnessArgs: %w", err)
		}
	}
	if err := json.Unmarshal(data, &settings); err != nil || settings == nil {
		return nil, &sessions.Refusal{Cause: sessions.ErrRefused, What: "the --settings of harnessArgs are no JSON object",
			Remedy: "correct them"}
	}
	return settings, nil
}

// hookGroup is a group of hooks as Claude Code's settings have it.
type hookGroup struct {
	Matcher string      `json:"matcher,omitempty"`
	Hooks   []hookEntry `json:"hooks"`
}

type hookEntry struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds
}

// permissionTimeoutSeconds is how long a permission request may wait for its decision: 7 days (2.1.197 accepts that). After it the
// dialog in the terminal stays open.
const permissionTimeoutSeconds = 7 * 24 * 60 * 60

// buildHooks returns our hooks by event. Their lines never fail and print nothing but a decision, whatever becomes of the program:
// Claude Code shows the operator a hook that fails, and holds the prompt back after one that ends with status 2.
func (c Harness) buildHooks(reportFile string) map[string]hookGroup {
	own := map[string]hookGroup{}
	for _, event := range syncEvents {
		line := shellescape.QuoteCommand(append(slices.Clone(c.Hook), reportFile)) + " >/dev/null 2>&1 || :"
		own[event] = hookGroup{Hooks: []hookEntry{{Type: "command", Command: line, Timeout: 10}}}
	}
	for _, event := range asyncEvents {
		line := "{ " + shellescape.QuoteCommand(append(slices.Clone(c.Hook), reportFile)) + " <&3 >/dev/null 2>&1 3<&- & } 3<&0"
		own[event] = hookGroup{Hooks: []hookEntry{{Type: "command", Command: line, Timeout: 10}}}
	}
	if c.PermissionDir != "" {
		line := shellescape.QuoteCommand(append(slices.Clone(c.Hook), reportFile, c.PermissionDir)) + " 2>/dev/null || :"
		own[report.EventPermissionRequest] = hookGroup{Matcher: "*", Hooks: []hookEntry{{Type: "command", Command: line, Timeout: permissionTimeoutSeconds}}}
	}
	return own
}

func (c Harness) addHooks(settings map[string]json.RawMessage, session string) error {
	if len(c.Hook) == 0 {
		return nil
	}
	reportFile, err := report.Path(c.ReportDir, session)
	if err != nil {
		return err
	}
	hooks := map[string][]json.RawMessage{}
	if given, ok := settings["hooks"]; ok && !bytes.Equal(given, []byte("null")) {
		if err := json.Unmarshal(given, &hooks); err != nil {
			return errors.New("the hooks in the --settings of harnessArgs do not have the shape of hooks")
		}
	}
	for event, group := range c.buildHooks(reportFile) {
		data, err := json.Marshal(group)
		if err != nil {
			return err
		}
		hooks[event] = append(hooks[event], data)
	}
	settings["hooks"], err = json.Marshal(hooks)
	return err
}

// acceptsBypass reports whether the warning before the mode without permissions is accepted. That goes into our own file, so that
// it does not hold for the operator's other sessions.
func (c Harness) acceptsBypass(args []string) bool {
	switch c.Bypass {
	case BypassAlways:
		return true
	case BypassNever:
		return false
	}
	for i, a := range args {
		switch {
		case a == "--dangerously-skip-permissions", a == "--allow-dangerously-skip-permissions", a == "--permission-mode=bypassPermissions":
			return true
		case a == "bypassPermissions" && i > 0 && args[i-1] == "--permission-mode":
			return true
		}
	}
	return false
}
