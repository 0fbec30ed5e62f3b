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

	"github.com/google/renameio/v2"

	"the-loop/sessions"
)

// claudeEvents are the hooks that are asked for.
var claudeEvents = []string{EventSessionStart, EventPromptSubmit, EventSessionEnd}

// settingsPath is the session's own settings file.
func (c Claude) settingsPath(session string) (string, error) {
	if !sessions.ValidConversation(session) {
		return "", fmt.Errorf("claude: %q is no id of a session", session)
	}
	return filepath.Join(c.Dir, session+".json"), nil
}

// writeSettings writes it, with whatever the operator gave by --settings in it. Claude Code adds the hooks of all its
// settings files together, so that the operator's still run.
func (c Claude) writeSettings(l sessions.Launch) error {
	path, err := c.settingsPath(l.Session)
	if err != nil {
		return err
	}
	_, given, err := splitClaudeArgs(l.Args)
	if err != nil {
		return err
	}
	settings, err := givenSettings(given, l.Cwd)
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
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, append(data, '\n'), 0o600, renameio.IgnoreUmask())
}

// givenSettings reads the operator's --settings: a file, or JSON itself.
func givenSettings(given, cwd string) (map[string]json.RawMessage, error) {
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
	Matcher string     `json:"matcher,omitempty"`
	Hooks   []hookLine `json:"hooks"`
}

type hookLine struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds
}

func (c Claude) addHooks(settings map[string]json.RawMessage, session string) error {
	if len(c.Hook) == 0 {
		return nil
	}
	report, err := ReportPath(c.Reports, session)
	if err != nil {
		return err
	}
	group, err := json.Marshal(hookGroup{Hooks: []hookLine{{Type: "command", Command: hookCommand(c.Hook, report), Timeout: 10}}})
	if err != nil {
		return err
	}
	hooks := map[string][]json.RawMessage{}
	if given, ok := settings["hooks"]; ok && !bytes.Equal(given, []byte("null")) {
		if err := json.Unmarshal(given, &hooks); err != nil {
			return errors.New("the hooks in the --settings of harnessArgs do not have the shape of hooks")
		}
	}
	for _, event := range claudeEvents {
		hooks[event] = append(hooks[event], group)
	}
	settings["hooks"], err = json.Marshal(hooks)
	return err
}

// hookCommand is a line for the shell that never fails and never prints, whatever becomes of the program: a hook that
// fails is shown to the operator, and one that ends with status 2 holds the prompt back.
func hookCommand(argv []string, report string) string {
	words := make([]string, 0, len(argv)+1)
	for _, word := range append(slices.Clone(argv), report) {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ") + " >/dev/null 2>&1 || :"
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
