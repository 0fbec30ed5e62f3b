// Package process reads the processes of this machine: from /proc, and where there is none from ps, which tells less.
package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Process is one process. Its start tells it from a later one that was given the same pid.
type Process struct {
	PID, Parent int
	Session     int    // the pid of the leader of its terminal session; 0: ps does not tell, or it is outside of our container
	Start       string // when it started, in the words of the reader
	Name        string // of its program, or what it calls itself; empty: ps does not tell
	Zombie      bool   // it has ended, and its parent has not noticed
}

// Reader reads processes. It may be copied, and used by many goroutines.
type Reader struct {
	proc string // where /proc is; empty: nowhere
	ps   string // the program
}

// System is the reader of this machine.
func System() Reader { return Reader{proc: "/proc", ps: "ps"} }

// WithoutProc is the reader of a machine that has no /proc.
func WithoutProc() Reader { return Reader{ps: "ps"} }

// hasProc reports whether there is a /proc.
func (r Reader) hasProc() bool {
	if r.proc == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(r.proc, "self", "stat"))
	return err == nil
}

// List returns the processes of the machine.
func (r Reader) List(ctx context.Context) ([]Process, error) {
	if r.hasProc() {
		return r.listProc()
	}
	return r.listPS(ctx, "-ax")
}

// Finder returns a function that finds a process by its pid; false when it is not there. It may not see what changed since
// Finder was called.
func (r Reader) Finder(ctx context.Context) (func(pid int) (Process, bool), error) {
	if r.hasProc() {
		return func(pid int) (Process, bool) {
			p, err := r.readStat(pid)
			return p, err == nil
		}, nil
	}
	all, err := r.listPS(ctx, "-ax")
	if err != nil {
		return nil, err
	}
	return func(pid int) (Process, bool) { return find(all, pid) }, nil
}

func find(all []Process, pid int) (Process, bool) {
	i := slices.IndexFunc(all, func(p Process) bool { return p.PID == pid })
	if i < 0 {
		return Process{}, false
	}
	return all[i], true
}

// IsRunning reports whether a process is there and has not ended.
func (r Reader) IsRunning(ctx context.Context, pid int) bool {
	p, there, err := r.read(ctx, pid)
	return err == nil && there && !p.Zombie
}

// read returns one process; false: it is not there.
func (r Reader) read(ctx context.Context, pid int) (Process, bool, error) {
	if r.hasProc() {
		p, err := r.readStat(pid)
		return p, err == nil, nil
	}
	all, err := r.listPS(ctx, "-p", strconv.Itoa(pid))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // there is none
		return Process{}, false, nil
	}
	p, there := find(all, pid)
	return p, there, err
}

// Signal sends a signal to a process. It does nothing when the process is not there any more, or is another one.
func (r Reader) Signal(ctx context.Context, p Process, sig syscall.Signal) error {
	handle, err := os.FindProcess(p.PID) // on Linux a pidfd: what it stands for does not change any more
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }() // nothing to lose
	now, there, err := r.read(ctx, p.PID)
	if err != nil || !there || now.Start != p.Start {
		return err
	}
	err = handle.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
