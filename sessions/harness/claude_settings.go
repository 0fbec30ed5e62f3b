package harness

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

// claudeSyncEvents are the hooks that are asked for and that Claude Code waits for; claudeAsyncEvents are those that it does not. While it
// waits for a Stop hook, a text that is submitted goes before those in its queue, and comes back into the box (2.1.197).
var (
	claudeSyncEvents  = []string{report.EventSessionStart, report.EventPromptSubmit, report.EventSessionEnd}
	claudeAsyncEvents = []string{report.EventStop, report.EventStopFailure, report.EventNotification}
)

// settingsPath is the session's own settings file.
func (c Claude) settingsPath(session string) (string, error) {
	if !sessions.ValidConversation(session) {
		return "", fmt.Errorf("claude: %q is no id of a session", session)
	}
	return filepath.Join(c.SettingsDir, session+".json"), nil
}

// writeSettings writes it, with whatever the operator gave by --settings in it. Claude Code adds the hooks of all its
// settings files together, so that the operator's still run.
func (c Claude) writeSettings(l sessions.Launch) error {
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
			Remedy: "mend them"}
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

// permissionTimeoutSeconds is how long a question may wait for its answer, 7 days. Claude Code takes it as it is (2.1.197); what it did not
// hear by then it goes on asking in the terminal alone.
const permissionTimeoutSeconds = 7 * 24 * 60 * 60

// buildHooks are the hooks that are asked for, by event. A hook never fails and prints nothing but an answer, whatever becomes of
// its program: one that fails is shown to the operator, and one that ends with status 2 holds the prompt back.
func (c Claude) buildHooks(reportFile string) map[string]hookGroup {
	own := map[string]hookGroup{}
	for _, event := range claudeSyncEvents {
		line := shellescape.QuoteCommand(append(slices.Clone(c.Hook), reportFile)) + " >/dev/null 2>&1 || :"
		own[event] = hookGroup{Hooks: []hookEntry{{Type: "command", Command: line, Timeout: 10}}}
	}
	for _, event := range claudeAsyncEvents {
		line := "{ " + shellescape.QuoteCommand(append(slices.Clone(c.Hook), reportFile)) + " <&3 >/dev/null 2>&1 3<&- & } 3<&0"
		own[event] = hookGroup{Hooks: []hookEntry{{Type: "command", Command: line, Timeout: 10}}}
	}
	if c.PermissionDir != "" {
		line := shellescape.QuoteCommand(append(slices.Clone(c.Hook), reportFile, c.PermissionDir)) + " 2>/dev/null || :"
		own[report.EventPermissionRequest] = hookGroup{Matcher: "*", Hooks: []hookEntry{{Type: "command", Command: line, Timeout: permissionTimeoutSeconds}}}
	}
	return own
}

func (c Claude) addHooks(settings map[string]json.RawMessage, session string) error {
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

// acceptsBypass reports whether the warning before the mode without permissions is answered. It goes into our own file,
// so that nothing is accepted for the operator's other sessions.
func (c Claude) acceptsBypass(args []string) bool {
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
