package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// psTimeout bounds how long ps is waited for when it is asked for an environment.
const psTimeout = 2 * time.Second

// listPS asks ps. It knows starts to the second and no sessions, so that a process whose parents have all ended is not found.
func (r Reader) listPS(ctx context.Context, which ...string) ([]Process, error) {
	cmd := exec.CommandContext(ctx, r.ps, append([]string{"-o", "pid=,ppid=,stat=,lstart="}, which...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = psTimeout
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var all []Process
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
		all = append(all, Process{PID: pid, Parent: parent, Zombie: f[2][0] == 'Z', Start: strings.Join(f[3:], " ")})
	}
	return all, nil
}

// environFromPS asks twice, without and with the environment: what the second answer has more is the environment, however the
// arguments look.
func (r Reader) environFromPS(ctx context.Context, pid int) (map[string]string, bool) {
	ctx, cancel := context.WithTimeout(ctx, psTimeout)
	defer cancel()
	args, err := r.psArgs(ctx, "ww", pid)
	if err != nil {
		return nil, false
	}
	both, err := r.psArgs(ctx, "eww", pid)
	if err != nil {
		return nil, false
	}
	environ, ok := strings.CutPrefix(both, args+" ")
	if !ok {
		return nil, false
	}
	return parsePS(environ)
}

func (r Reader) psArgs(ctx context.Context, flags string, pid int) (string, error) {
	cmd := exec.CommandContext(ctx, r.ps, flags, "-o", "args=", "-p", strconv.Itoa(pid))
	cmd.WaitDelay = psTimeout
	out, err := cmd.Output()
	return strings.TrimRight(string(out), "\n"), err
}

// parsePS reads NAME=value words; a word of another shape goes on with the value before it.
func parsePS(environ string) (map[string]string, bool) {
	env := map[string]string{}
	last := ""
	for word := range strings.SplitSeq(environ, " ") {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case ok && isName(name):
			env[name], last = value, name
		case last == "":
			return nil, false
		default:
			env[last] += " " + word
		}
	}
	return env, true
}

// maxName is the length of a name in bytes above which it is none.
const maxName = 256

// isName reports whether a name may be that of an environment variable.
func isName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}
