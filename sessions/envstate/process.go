package envstate

import (
	"context"

	"the-loop/sessions/process"
)

// ProcessEnviron returns the environment that a process was started with, or false when that cannot be known; see
// [process.Reader.Environ].
func ProcessEnviron(ctx context.Context, pid int) (Values, bool) {
	env, known := process.System().Environ(ctx, pid)
	return env, known
}
