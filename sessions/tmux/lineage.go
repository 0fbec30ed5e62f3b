package tmux

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Lineage is where a process comes from: itself and its ancestors, and the leaders of their sessions, which a process keeps when
// its parents have ended.
type Lineage struct {
	PIDs        []int // the nearest first, without tmux servers and the first process
	MayBeInPane bool  // one of them may be the process of a pane: a tmux server started it
}

// LineageOf climbs from a process.
func LineageOf(ctx context.Context, pid int) (Lineage, error) {
	stat, known := readProcess, true
	if _, isProc := newProcessTable().(procTable); !isProc {
		all, err := psTable{}.list(ctx)
		if err != nil {
			return Lineage{}, fmt.Errorf("the list of processes: %w", err)
		}
		known = false // ps does not tell which process is a tmux server
		stat = func(pid int) (process, bool) {
			i := slices.IndexFunc(all, func(p process) bool { return p.pid == pid })
			return all[max(i, 0)], i >= 0
		}
	}
	l := walkAncestors(pid, stat)
	l.MayBeInPane = l.MayBeInPane || !known
	return l, nil
}

func readProcess(pid int) (process, bool) {
	p, err := readStat(strconv.Itoa(pid))
	return p, err == nil
}

func walkAncestors(pid int, stat func(pid int) (process, bool)) Lineage {
	var l Lineage
	add := func(pid int) {
		if pid > 1 && !slices.Contains(l.PIDs, pid) {
			l.PIDs = append(l.PIDs, pid)
		}
	}
	var leaders []int
	for seen := map[int]bool{}; pid > 1 && !seen[pid]; {
		seen[pid] = true
		p, ok := stat(pid)
		if !ok || p.isTmuxServer {
			l.MayBeInPane = l.MayBeInPane || p.isTmuxServer
			break
		}
		add(p.pid)
		leaders, pid = append(leaders, p.session), p.parent
	}
	for _, leader := range leaders {
		if p, ok := stat(leader); ok && !p.isTmuxServer {
			add(leader)
			above, _ := stat(p.parent)
			l.MayBeInPane = l.MayBeInPane || above.isTmuxServer
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
