package process

import (
	"slices"
	"strings"
)

// WithValue finds the processes that were started with a variable of exactly that value. Where there is no /proc there are none;
// known is false then.
func (r Reader) WithValue(name, value string) (found []Found, known bool) {
	all, known := r.WithVariable(name, value)
	return slices.DeleteFunc(all, func(f Found) bool { return f.Env[name] != value }), known
}

// FlagValue returns the value of the first of the flags in the arguments of a process: what follows it, as another argument or
// after "=".
func (r Reader) FlagValue(pid int, flags ...string) string {
	argv := r.Argv(pid)
	for i, a := range argv {
		name, value, inline := strings.Cut(a, "=")
		switch {
		case !slices.Contains(flags, name):
		case inline:
			return value
		case i+1 < len(argv):
			return argv[i+1]
		}
	}
	return ""
}
