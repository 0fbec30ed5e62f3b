package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"the-loop/sessions/harness/permission"
)

// maxHookInput bounds what is read from an agent: a prompt has at most some 100 kB, a tool's input may have more.
const maxHookInput = 16 << 20

// Hook is what an agent's hook runs: it reports what the agent says. It needs no running bot.
type Hook struct {
	ReportFile    string     // the report file of the session
	PermissionDir string     // the folder of the sockets of hooks that wait; empty: none waits
	Out           *os.File   // where the agent reads a decision
	ParentPID     func() int // of the process that started the hook; when it changes, that process has ended

	// WatchTool returns a function that reports whether the agent used the tool of a permission request without a decision.
	// Nil: that is not known.
	WatchTool func(request json.RawMessage) (isUsed func() bool)
}

// RunHook runs a [Hook] as a program: args are the report file and, for one that waits for decisions, the folder of the sockets.
// SIGTERM, SIGHUP and SIGINT end it. Errors are dropped: what is lost then is evidence, whose absence is safe.
func RunHook(ctx context.Context, args []string, in, out *os.File, watchTool func(json.RawMessage) func() bool) {
	if len(args) == 0 {
		return
	}
	h := Hook{ReportFile: args[0], Out: out, ParentPID: os.Getppid, WatchTool: watchTool}
	if len(args) > 1 {
		h.PermissionDir = args[1]
	}
	signal.Ignore(syscall.SIGPIPE) // that nobody reads is an error of the write, not our end
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer stop()
	_ = h.Run(ctx, in, time.Now())
}

// Run reads what the agent says from in and appends it to the report file, which takes milliseconds. For a permission request it
// then waits for the decision, see [permission.Hook]. Whoever calls it exits with 0 and prints nothing whatever it returns: a
// hook must not get in the agent's way.
func (h Hook) Run(ctx context.Context, in io.Reader, now time.Time) error {
	data, err := io.ReadAll(io.LimitReader(in, maxHookInput+1))
	switch {
	case err != nil:
		return fmt.Errorf("read what the agent reports: %w", err)
	case len(data) > maxHookInput:
		return fmt.Errorf("the agent's report is longer than %d bytes", maxHookInput)
	}
	var input struct {
		Event        string `json:"hook_event_name"`
		Conversation string `json:"session_id"`
	}
	if err := json.Unmarshal(data, &input); err != nil {
		return fmt.Errorf("read what the agent reports: %w", err)
	}
	r := Report{At: now, Event: input.Event, Conversation: input.Conversation, Payload: data}
	if input.Event == EventPermissionRequest && h.PermissionDir != "" {
		return h.requestPermission(ctx, r)
	}
	return Append(h.ReportFile, r)
}

// requestPermission reports a permission request and waits for its decision.
func (h Hook) requestPermission(ctx context.Context, r Report) error {
	w := permission.Hook{Dir: h.PermissionDir, Out: h.Out, ParentPID: h.ParentPID, OnDecided: h.reportDecision, Payload: r.Payload}
	if h.WatchTool != nil {
		w.IsMoot = h.WatchTool(r.Payload)
	}
	return w.Wait(ctx, func(token string) error {
		r.Token = token
		return Append(h.ReportFile, r)
	})
}

// reportDecision reports that the agent was given a decision. It is proof for a bot that ends before it hears of it; without it
// that bot tells that it does not know.
func (h Hook) reportDecision(token string, allow bool) {
	payload, _ := json.Marshal(answeredPayload{Allow: allow}) // a bool always encodes
	_ = Append(h.ReportFile, Report{At: time.Now(), Event: EventPermissionAnswered, Token: token, Payload: payload})
}
