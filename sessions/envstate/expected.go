package envstate

import (
	"context"
	"maps"
	"slices"
	"time"

	"the-loop/sessions/loop"
)

// Expected is what a process should hold of what the env file declares.
type Expected struct {
	Values  map[string]string
	Started []string // the names that were declared when the process was started
}

// Names are those that count for the process: what is declared, and what was when it was started.
func (e Expected) Names() []string {
	return slices.AppendSeq(slices.Clone(e.Started), maps.Keys(e.Values))
}

// Diff returns the names whose values the process lacks, holds otherwise, or holds though they are not declared any more.
func (e Expected) Diff(actual map[string]string) []string {
	differ := Compare(e.Values, actual)
	for _, name := range e.Started {
		if _, still := e.Values[name]; !still {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return slices.Compact(append([]string{}, differ...))
}

// The pause between two reads of a process that is waited for; it doubles from the first to the longest.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// AwaitMatch reads the process until nothing differs or the limit is over. It returns what differs then; false: that cannot be
// known.
func (e Expected) AwaitMatch(ctx context.Context, pid int, limit time.Duration) (differ []string, known bool) {
	over := time.Now().Add(limit)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		actual, ok := ProcessEnviron(ctx, pid)
		if differ, known = e.Diff(actual), ok; known && len(differ) == 0 || time.Now().After(over) {
			return differ, known
		}
		if !loop.Sleep(ctx, pause) {
			return differ, known
		}
	}
}

// Passed returns those declared values that a process gets which is started with env.
func Passed(declared, env map[string]string) map[string]string {
	values := maps.Clone(declared)
	maps.DeleteFunc(values, func(name, value string) bool { got, ok := env[name]; return !ok || got != value })
	return values
}
