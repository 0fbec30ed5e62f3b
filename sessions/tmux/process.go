package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is one process. Its start tells it from a later one that was given the same pid.
type process struct {
	pid, parent, session int
	start                string
	isZombie             bool // a zombie: gone but for its parent's notice
	isTmuxServer         bool // a tmux server
}

// processTable is the system's list of processes.
type processTable interface {
	list(ctx context.Context) ([]process, error)
	// signal does nothing when the process is not there any more, or is another one.
	signal(ctx context.Context, p process, sig syscall.Signal) error
	// argv is a process's argv; empty where it cannot be had.
	argv(pid int) []string
}

func newProcessTable() processTable {
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return procTable{}
	}
	return psTable{}
}

// procTable reads Linux's /proc.
type procTable struct{}

func (procTable) list(context.Context) ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, err := readStat(name); err == nil { // else it ended meanwhile
			all = append(all, p)
		}
	}
	return all, nil
}

// readStat reads /proc/PID/stat: pid (name) state ppid pgrp session … starttime is the 22nd. The name may hold anything.
func readStat(pid string) (process, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return process{}, err
	}
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || shut < open {
		return process{}, fmt.Errorf("cannot read %q", stat)
	}
	fields := strings.Fields(string(stat[shut+1:]))
	if len(fields) < 20 {
		return process{}, fmt.Errorf("cannot read %q", stat)
	}
	p := process{start: fields[19], isZombie: fields[0] == "Z" || fields[0] == "X"}
	p.isTmuxServer = strings.HasPrefix(string(stat[open+1:shut]), "tmux: server")
	var bad [3]error
	p.pid, bad[0] = strconv.Atoi(pid)
	p.parent, bad[1] = strconv.Atoi(fields[1])
	p.session, bad[2] = strconv.Atoi(fields[3])
	return p, errors.Join(bad[:]...)
}

func (procTable) signal(_ context.Context, p process, sig syscall.Signal) error {
	handle, err := os.FindProcess(p.pid) // a pidfd: what it stands for does not change any more
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }() // nothing to lose
	now, err := readStat(strconv.Itoa(p.pid))
	if err != nil || now.start != p.start {
		return nil
	}
	return ignoreGone(handle.Signal(sig))
}

func (procTable) argv(pid int) []string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// gone takes the end of a process for the success of a signal to it.
func ignoreGone(err error) error {
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// psTable asks ps, where there is no /proc (macOS). It knows starts to the second and no sessions, so that a process whose
// parents have all ended is not found.
type psTable struct{}

func (psTable) list(ctx context.Context) ([]process, error) {
	cmd := exec.CommandContext(ctx, "ps", "-axo", "pid=,ppid=,stat=,lstart=")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var all []process
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		pid, err1 := strconv.Atoi(f[0])
		parent, err2 := strconv.Atoi(f[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("ps: %w", err)
		}
		all = append(all, process{pid: pid, parent: parent, isZombie: f[2][0] == 'Z', start: strings.Join(f[3:], " ")})
	}
	return all, nil
}

func (t psTable) signal(ctx context.Context, p process, sig syscall.Signal) error {
	all, err := t.list(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(q process) bool { return q.pid == p.pid && q.start == p.start }) {
		return nil
	}
	return ignoreGone(syscall.Kill(p.pid, sig))
}

func (psTable) argv(int) []string { return nil }
