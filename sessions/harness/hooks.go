package harness

import (
	"context"
	"os"

	"the-loop/sessions/harness/claude"
	"the-loop/sessions/harness/report"
)

// RunHook runs an agent's hook as a program: args are the session's report file and, for a hook that waits for decisions, the
// folder of the sockets. SIGTERM, SIGHUP and SIGINT end it.
func RunHook(ctx context.Context, args []string, in, out *os.File) {
	report.RunHook(ctx, args, in, out, claude.WatchTool)
}
