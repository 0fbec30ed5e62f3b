package transcript

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// AcceptTimeout is how long a text may take to appear in a transcript. Agents need a fraction of a second; a machine under load
// was seen to need three.
const AcceptTimeout = 4 * time.Second

// Home returns the home folder that an agent has: as its environment says, or a preset, or this process's.
func Home(env map[string]string, preset string) (string, error) {
	if home := cmp.Or(env["HOME"], preset); home != "" {
		return home, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the agent's home: %w", err)
	}
	return home, nil
}

// Folder returns a working folder as transcripts name it: without links.
func Folder(cwd string) string {
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		return real
	}
	return cwd
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
