package harness

import (
	"slices"
	"strings"

	"the-loop/sessions/process"
)

// sessionVariable is the name under which every process of a pane knows the id of its session.
const sessionVariable = "THE_LOOP_SESSION"

// paneProcess is a process of a session's pane, with the environment that it was started with.
type paneProcess struct{ process.Found }

// paneProcesses finds the processes of a session by their environment: sure also for two that start in one folder at the
// same moment. Where there is no /proc there are none; known is false then.
func paneProcesses(session string) (found []paneProcess, known bool) {
	all, known := process.System().WithVariable(sessionVariable, session)
	for _, p := range all {
		if p.Env[sessionVariable] == session {
			found = append(found, paneProcess{p})
		}
	}
	return found, known
}

// flagValue is the value of the first of the flags in the process's command line: what follows it, as another word or after "=".
func (p paneProcess) flagValue(flags ...string) string {
	words := process.System().Argv(p.PID)
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
func (p paneProcess) openFiles() []string { return process.System().OpenFiles(p.PID) }
