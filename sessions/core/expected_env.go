package core

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
	"the-loop/sessions/loop"
)

// expectedEnv is what the process of one session should hold of what the env file declares.
type expectedEnv struct{ values map[string]string }

// expectedEnv leaves out the names that the product or the session's harness gives another value.
func (rs *Restarts) expectedEnv(ctx context.Context, rec sessions.Record, declared map[string]string) expectedEnv {
	var own map[string]string
	if h, err := rs.agents.harness(rec.Definition.Harness); err == nil {
		cmd, err := h.Command(sessions.Launch{Conversation: rec.Conversation, Resume: true, Args: rec.Definition.HarnessArgs, Cwd: rec.Definition.Cwd})
		if err == nil {
			own = cmd.Env
		}
	}
	return expectedEnv{passedValues(declared, rs.config().paneEnvironment(rec, declared, own))}
}

// names are those that count for the pane's process: what is declared, and what was when it was started.
func (w expectedEnv) names(p sessions.Pane) []string {
	names := declaredNames(p)
	for name := range w.values {
		names = append(names, name)
	}
	return names
}

// diff are the names whose values the process lacks, holds otherwise, or holds though they are declared no more.
func (w expectedEnv) diff(p sessions.Pane, actual map[string]string) []string {
	differ := envstate.Compare(w.values, actual)
	for _, name := range declaredNames(p) {
		if _, still := w.values[name]; !still {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return slices.Compact(append([]string{}, differ...))
}

// settle looks until nothing differs, or the time is over; false: it cannot be known.
func (w expectedEnv) awaitMatch(ctx context.Context, p sessions.Pane, limit time.Duration) (differ []string, known bool) {
	over := time.Now().Add(limit)
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
		actual, ok := envstate.ProcessEnviron(ctx, p.PID)
		if differ, known = w.diff(p, actual), ok; known && len(differ) == 0 || time.Now().After(over) {
			return differ, known
		}
		if !loop.Sleep(ctx, pause) {
			return differ, known
		}
	}
}

func declaredNames(p sessions.Pane) []string { return strings.Fields(p.Declared) }

// passedValues is what of the declared values a pane gets: the product's own names, and those of its harness, win.
func passedValues(declared, env map[string]string) map[string]string {
	values := maps.Clone(declared)
	maps.DeleteFunc(values, func(name, value string) bool { got, ok := env[name]; return !ok || got != value })
	return values
}
