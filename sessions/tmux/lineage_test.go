package tmux

import (
	"os"
	"slices"
	"testing"
)

func TestALineageEndsAtTheTmuxServerAndKnowsTheLeadersOfSessions(t *testing.T) {
	t.Parallel()
	table := map[int]process{
		1:  {pid: 1},
		10: {pid: 10, parent: 1, session: 10, isTmuxServer: true},
		20: {pid: 20, parent: 10, session: 20},  // a pane's
		21: {pid: 21, parent: 20, session: 20},  // its child
		22: {pid: 22, parent: 21, session: 22},  // has a session of its own
		30: {pid: 30, parent: 1, session: 20},   // has lost its parents, not its session
		40: {pid: 40, parent: 1, session: 40},   // a daemon
		41: {pid: 41, parent: 40, session: 999}, // its leader is gone
		50: {pid: 50, parent: 51, session: 50},  // a circle, which there is not
		51: {pid: 51, parent: 50, session: 50},
	}
	stat := func(pid int) (process, bool) { p, ok := table[pid]; return p, ok }
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
