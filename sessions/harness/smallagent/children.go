package smallagent

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// childLifetimeSeconds is how long the children of --fork live when nobody ends them.
const childLifetimeSeconds = 600

// childProcesses are what --fork starts: a child, and a grandchild in a session of its own, that ignore a hang-up. A signal that
// ends the agent leaves them behind, as agents do; when its user ends it, they go with it.
type childProcesses struct {
	pids  []int
	child *exec.Cmd
}

func startChildProcesses(ignoreTerm bool) (*childProcesses, error) {
	trap := "trap '' HUP; "
	if ignoreTerm {
		trap = "trap '' HUP TERM; "
	}
	script := fmt.Sprintf("%ssetsid sh -c 'echo $$; exec sleep %d >/dev/null' & exec >/dev/null; wait", trap, childLifetimeSeconds)
	f := &childProcesses{child: exec.Command("/bin/sh", "-c", script)}
	out, err := f.child.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	if err := f.child.Start(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(line))
	f.pids = []int{f.child.Process.Pid, pid}
	if err = errors.Join(err, bad, out.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start grandchild: %w", err), f.child.Process.Kill(), f.child.Wait())
	}
	return f, nil
}

// reap takes note of a child that has ended, without waiting for one that has not.
func (f *childProcesses) reap() {
	if f == nil || f.child == nil {
		return
	}
	if pid, err := unix.Wait4(f.pids[0], nil, unix.WNOHANG, nil); err != nil || pid == f.pids[0] {
		f.child = nil
	}
}

// end kills both. The child still waits for the grandchild, so that neither id can be another's by now.
func (f *childProcesses) end() {
	if f.reap(); f == nil || f.child == nil {
		return
	}
	// Either may have ended by itself.
	_ = unix.Kill(f.pids[1], unix.SIGKILL)
	_ = f.child.Process.Kill()
	_ = f.child.Wait()
}

// release releases them.
func (f *childProcesses) release() {
	if f != nil && f.child != nil {
		// It only forgets a number.
		_ = f.child.Process.Release()
	}
}
