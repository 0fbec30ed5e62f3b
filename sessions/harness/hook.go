package harness

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// RunHook is a [Hook] as a program: args are the report file and, for one that waits for answers, the folder of the sockets.
// It ends with a signal that asks it to. What goes wrong is not told: what is lost then is evidence, whose absence is safe.
func RunHook(ctx context.Context, args []string, in, out *os.File) {
	if len(args) == 0 {
		return
	}
	h := Hook{ReportFile: args[0], Out: out, ParentPID: os.Getppid}
	if len(args) > 1 {
		h.PermissionDir = args[1]
	}
	signal.Ignore(syscall.SIGPIPE) // that nobody reads is an error of the write, not our end
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer stop()
	_ = h.Run(ctx, in, time.Now())
}
