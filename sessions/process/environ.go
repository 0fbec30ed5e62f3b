package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Environ returns the environment that a process was started with, or false when that cannot be known: it has ended, belongs to
// somebody else, wrote over its environment, or the machine does not tell. What ps prints has no separators: where
// there is no /proc, a value in which a word like NAME=… follows a blank is read as two.
func (r Reader) Environ(ctx context.Context, pid int) (map[string]string, bool) {
	if pid <= 0 || ctx.Err() != nil {
		return nil, false
	}
	data, err := os.ReadFile(r.file(pid, "environ"))
	switch {
	case err == nil:
		env, whole := parseEnviron(data)
		if !whole {
			return nil, false
		}
		return env, true
	case !errors.Is(err, fs.ErrNotExist), r.hasProc(): // it has ended, or is somebody else's
		return nil, false
	}
	return r.environFromPS(ctx, pid)
}

// Found is a process that was found by its environment.
type Found struct {
	PID int
	Env map[string]string // what can be read of it, also when the process wrote over a part
}

// WithVariable finds the processes that were started with a variable whose value begins with a prefix. Where there is no /proc there
// are none; known is false then.
func (r Reader) WithVariable(name, prefix string) (found []Found, known bool) {
	if !r.hasProc() {
		return nil, false
	}
	pids, err := r.pids()
	if err != nil {
		return nil, false
	}
	entry := []byte(name + "=" + prefix)
	for _, pid := range pids {
		data, err := os.ReadFile(r.file(pid, "environ"))
		if err != nil || !bytes.Contains(data, entry) {
			continue // it has ended, or is somebody else's
		}
		env, _ := parseEnviron(data)
		if value, has := env[name]; has && strings.HasPrefix(value, prefix) {
			found = append(found, Found{PID: pid, Env: env})
		}
	}
	return found, true
}

// parseEnviron reads NAME=value strings, each with a NUL at its end. Anything else means that the process wrote over
// them (to change its title), is between fork and exec, or has ended: whole is false then.
func parseEnviron(data []byte) (env map[string]string, whole bool) {
	body, whole := strings.CutSuffix(string(data), "\x00")
	env = map[string]string{}
	for entry := range strings.SplitSeq(body, "\x00") {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			whole = false
			continue
		}
		if _, again := env[name]; !again { // getenv returns the first
			env[name] = value
		}
	}
	return env, whole
}
