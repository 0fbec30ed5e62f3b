package tmux

import (
	"os"
	"slices"
	"testing"

	"the-loop/sessions/process"
)

func TestALineageEndsAtTheTmuxServerAndKnowsTheLeadersOfSessions(t *testing.T) {
	t.Parallel()
	table := map[int]process.Process{
		1:  {PID: 1},
		10: {PID: 10, Parent: 1, Session: 10, Name: "tmux: server"},
		20: {PID: 20, Parent: 10, Session: 20},  // a pane's
		21: {PID: 21, Parent: 20, Session: 20},  // its child
		22: {PID: 22, Parent: 21, Session: 22},  // has a session of its own
		30: {PID: 30, Parent: 1, Session: 20},   // has lost its parents, not its session
		40: {PID: 40, Parent: 1, Session: 40},   // a daemon
		41: {PID: 41, Parent: 40, Session: 999}, // its leader is gone
		50: {PID: 50, Parent: 51, Session: 50},  // a circle, which there is not
		51: {PID: 51, Parent: 50, Session: 50},
	}
	stat := func(pid int) (process.Process, bool) { p, ok := table[pid]; return p, ok }
	for pid, want := range map[int]Lineage{
		20: {[]int{20}, true}, 21: {[]int{21, 20}, true}, 22: {[]int{22, 21, 20}, true}, 30: {[]int{30, 20}, true},
		40: {[]int{40}, false}, 41: {[]int{41, 40}, false}, 50: {[]int{50, 51}, false}, 60: {nil, false},
	} {
		if got := walkAncestors(pid, stat); !slices.Equal(got.PIDs, want.PIDs) || got.MayBeInPane != want.MayBeInPane {
			t.Errorf("of %d: %+v, want %+v", pid, got, want)
		}
	}
	l, err := LineageOf(t.Context(), os.Getpid())
	if err != nil || !slices.Contains(l.PIDs, os.Getpid()) || !slices.Contains(l.PIDs, os.Getppid()) {
		t.Errorf("ours is %+v, %v", l, err)
	}
}
