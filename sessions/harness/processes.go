package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sessionVariable is the name under which every process of a pane knows the id of its session.
const sessionVariable = "THE_LOOP_SESSION"

// paneProcess is a process of a session's pane, with the environment that it was started with.
type paneProcess struct {
	dir string // below /proc
	env map[string]string
}

// paneProcesses finds the processes of a session by their environment: sure also for two that start in one folder at the
// same moment. Where there is no /proc there are none; known is false then.
func paneProcesses(session string) (found []paneProcess, known bool) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		return nil, false
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, false
	}
	mark := []byte(sessionVariable + "=" + session)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, mark) {
			continue // it has ended, or is somebody else's
		}
		if env := parseEnviron(data); env[sessionVariable] == session {
			found = append(found, paneProcess{dir: filepath.Dir(file), env: env})
		}
	}
	return found, true
}

func parseEnviron(data []byte) map[string]string {
	env := map[string]string{}
	for word := range strings.SplitSeq(string(data), "\x00") {
		if name, value, ok := strings.Cut(word, "="); ok {
			env[name] = value
		}
	}
	return env
}

// flagValue is the value of the first of the flags in the process's command line: what follows it, as another word or after "=".
func (p paneProcess) flagValue(flags ...string) string {
	data, err := os.ReadFile(filepath.Join(p.dir, "cmdline"))
	if err != nil {
		return ""
	}
	words := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	for i, w := range words {
		name, value, inline := strings.Cut(w, "=")
		switch {
		case !slices.Contains(flags, name):
		case inline:
			return value
		case i+1 < len(words):
			return words[i+1]
		}
	}
	return ""
}

// openFiles are the paths of the files that the process has open. One that ended has none.
func (p paneProcess) openFiles() []string {
	links, err := os.ReadDir(filepath.Join(p.dir, "fd"))
	if err != nil {
		return nil
	}
	var open []string
	for _, l := range links {
		if target, err := os.Readlink(filepath.Join(p.dir, "fd", l.Name())); err == nil && filepath.IsAbs(target) {
			open = append(open, target)
		}
	}
	return open
}
