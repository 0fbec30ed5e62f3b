package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"the-loop/sessions/process"
)

// Lineage is where a process comes from: itself and its ancestors, and the leaders of their sessions, which a process keeps when
// its parents have ended.
type Lineage struct {
	PIDs        []int // the nearest first, without tmux servers and the first process
	MayBeInPane bool  // one of them may be the process of a pane: a tmux server started it
}

// LineageOf climbs from a process.
func LineageOf(ctx context.Context, pid int) (Lineage, error) {
	find, err := process.System().Finder(ctx)
	if err != nil {
		return Lineage{}, fmt.Errorf("the list of processes: %w", err)
	}
	l := walkAncestors(pid, find)
	if self, _ := find(os.Getpid()); self.Name == "" { // nothing tells which process is a tmux server
		l.MayBeInPane = true
	}
	return l, nil
}

func walkAncestors(pid int, find func(pid int) (process.Process, bool)) Lineage {
	var l Lineage
	add := func(pid int) {
		if pid > 1 && !slices.Contains(l.PIDs, pid) {
			l.PIDs = append(l.PIDs, pid)
		}
	}
	var leaders []int
	for seen := map[int]bool{}; pid > 1 && !seen[pid]; {
		seen[pid] = true
		p, ok := find(pid)
		if !ok || isTmuxServer(p) {
			l.MayBeInPane = l.MayBeInPane || isTmuxServer(p)
			break
		}
		add(p.PID)
		leaders, pid = append(leaders, p.Session), p.Parent
	}
	for _, leader := range leaders {
		if p, ok := find(leader); ok && !isTmuxServer(p) {
			add(leader)
			above, _ := find(p.Parent)
			l.MayBeInPane = l.MayBeInPane || isTmuxServer(above)
		}
	}
	return l
}

// EnclosingPane is the pane in which a process runs.
type EnclosingPane struct {
	Mark  string // empty: somebody else made it
	Owner string // the mark for which its tmux session was made; empty: that is somebody else's too
}

// FindEnclosingPane is the pane of this server whose process is the nearest of a lineage. False: none is.
func (t *Tmux) FindEnclosingPane(ctx context.Context, l Lineage) (pane EnclosingPane, found bool, err error) {
	if len(l.PIDs) == 0 {
		return EnclosingPane{}, false, nil
	}
	words := make([]string, len(l.PIDs))
	for i, pid := range l.PIDs {
		words[i] = strconv.Itoa(pid)
	}
	out, err := t.run(ctx, call{args: []string{"list-panes", "-a", "-f", "#{m/r:^(" + strings.Join(words, "|") + ")$,#{pane_pid}}",
		"-F", "#{pane_pid}\t#{" + markOption + "}\t#{" + ownerOption + "}"}})
	if errors.Is(err, errNoServer) || errors.Is(err, errNoSocket) {
		return EnclosingPane{}, false, nil
	}
	if err != nil {
		return EnclosingPane{}, false, err
	}
	panes := map[string]EnclosingPane{}
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 3 {
			panes[f[0]] = EnclosingPane{Mark: f[1], Owner: f[2]}
		}
	}
	for _, pid := range words {
		if pane, ok := panes[pid]; ok {
			return pane, true, nil
		}
	}
	return EnclosingPane{}, false, nil
}

// SocketOf is the server's socket in a value of the variable TMUX; empty when there is none.
func SocketOf(variable string) string {
	socket, _, _ := strings.Cut(variable, ",")
	if !filepath.IsAbs(socket) {
		return ""
	}
	return socket
}
