package smallagent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Exit statuses. A signal that ends the agent gives 128 and its number, as a shell would say it.
const (
	StatusOK     = 0 // its user ended it
	StatusFailed = 1 // the conversation is unknown or exists already, no terminal, files that cannot be used
	StatusUsage  = 2
)

// Main runs the agent on the terminal in and out until its user, a signal or ctx ends it, restores the terminal and
// returns the exit status. It handles HUP, INT and TERM itself: a caller that wants --ignore-term to hold must not end
// ctx for a TERM. An end of ctx counts as a TERM.
func Main(ctx context.Context, args []string, in, out *os.File, errOut io.Writer, env func(string) string) int {
	o, err := parseOptions(args, env, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return StatusOK
	}
	if err != nil {
		return StatusUsage
	}
	c, err := openConversation(o, in, out)
	if err != nil {
		fmt.Fprintln(errOut, explainError(err, o))
		return StatusFailed
	}
	status, err := runAgent(ctx, o, c, in, out)
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", Program, err)
		return max(status, StatusFailed)
	}
	return status
}

func explainError(err error, o options) string {
	switch {
	case errors.Is(err, errUnknownConversation):
		return "No conversation found with session ID: " + o.resume
	case errors.Is(err, errConversationExists):
		return fmt.Sprintf("Session ID %s is already in use; go on with it: --resume %s", o.sessionID, o.sessionID)
	}
	return fmt.Sprintf("%s: %v", Program, err)
}

// openConversation opens the conversation. It makes nothing when the agent cannot run.
func openConversation(o options, in, out *os.File) (*conversation, error) {
	if err := checkConversation(o.dir, o.id(), o.resume != ""); err != nil {
		return nil, err
	}
	if !isTerminal(in) || !isTerminal(out) {
		return nil, errors.New("its input and output must be a terminal")
	}
	if o.resume != "" {
		return resumeConversation(o.dir, o.resume)
	}
	return createConversation(o.dir, o.sessionID)
}

func runAgent(ctx context.Context, o options, c *conversation, in, out *os.File) (status int, err error) {
	signals := make(chan os.Signal, 16)
	// Until the process has ended: a terminal that closes hangs up its leader twice, and the second must not kill it.
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGWINCH, unix.SIGCHLD)
	a := &agent{opts: o, conv: c, signals: signals}
	defer func() { err = errors.Join(err, a.conv.close()) }()
	if a.term, err = openTerminal(in, out, !o.noBrackets); err != nil {
		return StatusFailed, err
	}
	status, err = a.runWithInput(ctx)
	err = errors.Join(err, ignoreEIO(a.term.close()))
	if status == StatusOK && err == nil {
		fmt.Fprintf(out, "The conversation is kept. Go on with it: --resume %s\n", a.conv.id)
	}
	return status, err
}

// ignoreEIO passes over the errors of a terminal that is gone: there is nothing left to restore.
func ignoreEIO(err error) error {
	if errors.Is(err, unix.EIO) {
		return nil
	}
	return err
}

// runWithInput runs the agent with its input.
func (a *agent) runWithInput(ctx context.Context) (int, error) {
	var log io.Writer
	if a.opts.logBytes {
		f, err := os.OpenFile(BytesPath(a.opts.dir, a.conv.id), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return StatusFailed, fmt.Errorf("keep the bytes: %w", err)
		}
		defer f.Close()
		log = f
	}
	input := startInput(a.term.in, log)
	defer input.end()
	a.chunks = input.chunks
	return a.run(ctx)
}
