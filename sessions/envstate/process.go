package envstate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// psTimeout bounds one run of ps.
const psTimeout = 2 * time.Second

// ProcessEnviron returns the environment that the process was started with, or false when that cannot be known: it has
// ended, belongs to somebody else, wrote over its environment, or the platform does not tell. It asks
// /proc/<pid>/environ, and ps where there is no /proc. What ps prints has no separators: there, a value in which a
// word like NAME=… follows a blank is read as two.
func ProcessEnviron(ctx context.Context, pid int) (Values, bool) {
	return platform{proc: "/proc", ps: "ps"}.environ(ctx, pid)
}

// platform is where environments are asked for.
type platform struct{ proc, ps string }

func (p platform) environ(ctx context.Context, pid int) (Values, bool) {
	if pid <= 0 || ctx.Err() != nil {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(p.proc, strconv.Itoa(pid), "environ"))
	if err == nil {
		return parseEnviron(string(data))
	}
	if !errors.Is(err, fs.ErrNotExist) || p.hasProc() {
		return nil, false
	}
	return p.readPS(ctx, pid)
}

// hasProc tells a process that has ended from a platform without /proc.
func (p platform) hasProc() bool {
	_, err := os.Stat(filepath.Join(p.proc, "self", "environ"))
	return err == nil
}

// parseEnviron reads NAME=value strings, each with a NUL at its end. Anything else means that the process wrote over
// them (to change its title), is between fork and exec, or has ended: what it was started with is not known then.
func parseEnviron(data string) (Values, bool) {
	body, whole := strings.CutSuffix(data, "\x00")
	if !whole {
		return nil, false
	}
	values := Values{}
	for entry := range strings.SplitSeq(body, "\x00") {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, false
		}
		if _, again := values[name]; !again { // getenv returns the first
			values[name] = value
		}
	}
	return values, true
}

// readPS asks twice, without and with the environment: what the second answer has more is the environment, however the
// arguments look.
func (p platform) readPS(ctx context.Context, pid int) (Values, bool) {
	ctx, cancel := context.WithTimeout(ctx, psTimeout)
	defer cancel()
	args, err := p.runPS(ctx, "ww", pid)
	if err != nil {
		return nil, false
	}
	both, err := p.runPS(ctx, "eww", pid)
	if err != nil {
		return nil, false
	}
	environ, ok := strings.CutPrefix(both, args+" ")
	if !ok {
		return nil, false
	}
	return parsePS(environ)
}

func (p platform) runPS(ctx context.Context, flags string, pid int) (string, error) {
	cmd := exec.CommandContext(ctx, p.ps, flags, "-o", "args=", "-p", strconv.Itoa(pid))
	cmd.WaitDelay = psTimeout
	out, err := cmd.Output()
	return strings.TrimRight(string(out), "\n"), err
}

// parsePS reads NAME=value words; a word of another shape goes on with the value before it.
func parsePS(environ string) (Values, bool) {
	values := Values{}
	last := ""
	for word := range strings.SplitSeq(environ, " ") {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case ok && validName(name):
			values[name], last = value, name
		case last == "":
			return nil, false
		default:
			values[last] += " " + word
		}
	}
	return values, true
}
