package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
)

// The key that submits in Claude Code's box and does nothing in its dialogs and menus, where Enter would answer. It works
// only where the operator's key bindings have it, see [Harness.AddChatKey].
const (
	chatKey      = "ctrl+x ctrl+y"
	chatKeyBytes = "\x18\x19"
	chatAction   = "chat:submit"
	chatContext  = "Chat"

	// chatDelay lies between the paste and the key. Without it a paste of more than some 800 characters is lost (2.1.197);
	// Enter waits for such a paste itself.
	chatDelay = 500 * time.Millisecond
)

// SubmitKey returns that key when the operator's bindings had it at the session's start, and Enter otherwise: a running program
// does not read them again (2.1.197).
func (c Harness) SubmitKey(_ context.Context, conv sessions.Conversation) (string, time.Duration, error) {
	bound := false
	err := c.withFacts(conv, func(facts *report.Facts, _ int64) { bound = facts.Launch != nil && facts.Launch.Payload.SubmitKey })
	switch {
	case err != nil:
		return "", 0, err
	case bound:
		return chatKeyBytes, chatDelay, nil
	}
	return "\r", 0, nil
}

// bindingsFile is the operator's key bindings.
func (c Harness) bindingsFile(env map[string]string) (string, error) {
	dir, err := c.configDir(env)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "keybindings.json"), nil
}

// keyBindings is that file's content.
type keyBindings struct {
	Bindings []struct {
		Context  string         `json:"context"`
		Bindings map[string]any `json:"bindings"`
	} `json:"bindings"`
}

func (c Harness) hasChatKey(env map[string]string) (bool, error) {
	file, err := c.bindingsFile(env)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read claude's key bindings: %w", err)
	}
	return isChatKeyBound(text), nil
}

// isChatKeyBound reports whether the bindings have the key. A file that does not parse has none for Claude Code either.
func isChatKeyBound(text []byte) bool {
	var known keyBindings
	if json.Unmarshal(text, &known) != nil {
		return false
	}
	bound := false
	for _, group := range known.Bindings {
		if action, ok := group.Bindings[chatKey]; ok && group.Context == chatContext {
			bound = action == chatAction
		}
	}
	return bound
}

// AddChatKey adds the key to Claude Code's key bindings, and reports whether it was missing. Everything else in the file
// stays as it is; a file that does not parse, or that uses the key for something else, is left alone.
func (c Harness) AddChatKey(env map[string]string) (added bool, err error) {
	file, err := c.bindingsFile(env)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(`{"bindings":[]}`), nil
	}
	if err != nil {
		return false, fmt.Errorf("read claude's key bindings: %w", err)
	}
	if isChatKeyBound(text) {
		return false, nil
	}
	changed, err := appendChatKey(text)
	if err != nil {
		return false, fmt.Errorf("%s was left alone: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return false, err
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	return true, renameio.WriteFile(file, changed, 0o600)
}

// appendChatKey returns the text with one more group of bindings at the end of the list.
func appendChatKey(text []byte) ([]byte, error) {
	var known keyBindings
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, err
	}
	for _, group := range known.Bindings {
		if _, ok := group.Bindings[chatKey]; ok && group.Context == chatContext {
			return nil, fmt.Errorf("%s is bound to something else", chatKey)
		}
	}
	_, from, to, err := findMember(text, 0, len(text), "bindings")
	if err != nil {
		return nil, err
	}
	group := []byte(`{"context":"` + chatContext + `","bindings":{"` + chatKey + `":"` + chatAction + `"}}`)
	if to == 0 {
		return setMember(text, []string{"bindings"}, slices.Concat([]byte("["), group, []byte("]")))
	}
	end := to - 1 // the closing bracket
	if text[from] != '[' || text[end] != ']' {
		return nil, errors.New("its bindings are no list")
	}
	if len(known.Bindings) > 0 {
		group = append([]byte(","), group...)
	}
	return slices.Concat(text[:end], group, text[end:]), nil
}
