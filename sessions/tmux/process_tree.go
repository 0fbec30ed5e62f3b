package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"the-loop/sessions/process"
)

// processTable is the machine's processes; see [process.Reader].
type processTable interface {
	List(ctx context.Context) ([]process.Process, error)
	Signal(ctx context.Context, p process.Process, sig syscall.Signal) error
	Argv(pid int) []string
}

// isTmuxServer reports whether a process calls itself a tmux server. False where processes have no names.
func isTmuxServer(p process.Process) bool { return strings.HasPrefix(p.Name, "tmux: server") }

// processTree is what belongs to a pane: its first process, all descendants that were ever seen as such, and everything in a
// terminal session that one of them leads. So a descendant that starts a session of its own and loses its parents later
// still belongs to it. One that did so before the first look is not found: it has left the pane on purpose.
type processTree struct {
	serverPID int // the tmux server, which is never part of it
	known     map[int]process.Process
	sessions  map[int]bool
}

func newProcessTree(server int) *processTree {
	return &processTree{serverPID: server, known: map[int]process.Process{}, sessions: map[int]bool{}}
}

// addRoot takes the pane's first process in. It is known as the server's own child. When it has ended its number stands
// for the terminal session that it led, unless the number was given away since.
func (t *processTree) addRoot(pid int, all []process.Process) {
	for _, p := range all {
		if p.PID != pid {
			continue
		}
		if p.Parent == t.serverPID {
			t.add(p)
		}
		return
	}
	if pid > 0 {
		t.sessions[pid] = true
	}
}

func (t *processTree) add(p process.Process) {
	t.known[p.PID] = p
	if p.Session == p.PID {
		t.sessions[p.PID] = true
	}
}

// update takes in what belongs to the tree now and returns those of it that are alive.
func (t *processTree) update(all []process.Process) []process.Process {
	for _, p := range all {
		if old, ok := t.known[p.PID]; ok && old.Start != p.Start { // the number was given away: what it led is gone too
			delete(t.known, p.PID)
			delete(t.sessions, p.PID)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if _, ok := t.known[p.PID]; !ok && t.includes(p) {
				t.add(p)
				grown = true
			}
		}
	}
	var alive []process.Process
	for _, p := range all {
		if old, ok := t.known[p.PID]; ok && old.Start == p.Start && !p.Zombie {
			alive = append(alive, p)
		}
	}
	return alive
}

func (t *processTree) includes(p process.Process) bool {
	if p.PID == os.Getpid() || p.PID == t.serverPID || p.PID <= 1 || isTmuxServer(p) {
		return false
	}
	_, child := t.known[p.Parent]
	return child || t.sessions[p.Session]
}

// killTimeout is how long killed processes may take to go.
const killTimeout = 5 * time.Second

// terminate asks the pane's processes to end, kills after the grace what is left, and returns when none is alive.
func (t *processTree) terminate(ctx context.Context, table processTable, grace time.Duration) error {
	asked := map[int]string{}
	left, err := t.repeatUntilEnded(ctx, table, grace, func(p process.Process) error {
		if asked[p.PID] == p.Start {
			return nil
		}
		asked[p.PID] = p.Start
		return errors.Join(table.Signal(ctx, p, syscall.SIGTERM), table.Signal(ctx, p, syscall.SIGCONT))
	})
	if err != nil || len(left) == 0 {
		return err
	}
	left, err = t.repeatUntilEnded(ctx, table, killTimeout, func(p process.Process) error { return table.Signal(ctx, p, syscall.SIGKILL) })
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d processes of the pane do not end, the first is %d", len(left), left[0].PID)
	}
	return err
}

// repeatUntilEnded calls do on what is alive, at least once, until nothing is or the time is over; it returns what is alive then.
func (t *processTree) repeatUntilEnded(ctx context.Context, table processTable, limit time.Duration, do func(process.Process) error) ([]process.Process, error) {
	over, wait := time.Now().Add(limit), time.Millisecond
	for first := true; ; first = false {
		all, err := table.List(ctx)
		if err != nil {
			return nil, fmt.Errorf("the list of processes: %w", err)
		}
		alive := t.update(all)
		if len(alive) == 0 || !first && !time.Now().Before(over) {
			return alive, nil
		}
		for _, p := range alive {
			err = errors.Join(err, do(p))
		}
		if err != nil {
			return nil, fmt.Errorf("a process of the pane cannot be ended: %w", err)
		}
		if err := sleep(ctx, min(wait, max(time.Millisecond, time.Until(over)))); err != nil {
			return nil, err
		}
		wait = min(2*wait, 50*time.Millisecond)
	}
}
