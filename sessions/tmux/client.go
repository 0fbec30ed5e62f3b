package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"the-loop/sessions"
)

// call is one tmux client: what it is asked, and what it finds on standard input.
type call struct {
	args           []string // words of commands, with ";" between commands
	input          []byte   // nil: none
	dir            string   // its working folder; empty: /
	mayStartServer bool     // may start the server
	// startCommit is called before the client is given its input; when it fails, the client gets none. nil: nothing to wait for
	commit func() error
}

// run runs one tmux client and returns what it printed, with an error as well as without. Errors are *callError.
func (r *runner) run(ctx context.Context, c call) (string, error) {
	verb := c.args[0]
	binary, err := r.findBinary()
	if err != nil {
		return "", err
	}
	input, err := r.prepareInput(c)
	if err != nil {
		return "", &callError{verb: verb, cause: err, noEffect: true}
	}
	defer input.close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return "", &callError{verb: verb, cause: notStartedError(ctx, ctx.Err()), noEffect: true}
	}
	var stdout, stderr bytes.Buffer
	cmd := r.newClientCmd(ctx, binary, c, input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	committed := input.startCommit(c)
	if err := cmd.Start(); err != nil {
		return "", &callError{verb: verb, cause: errors.Join(notStartedError(ctx, err), committed()), noEffect: true}
	}
	withheld := input.release(c, committed)
	if err := cmd.Wait(); err != nil && withheld == nil {
		failure := r.clientError(ctx, verb, strings.TrimSpace(stderr.String()), err)
		failure.noEffect = failure.noEffect || c.input != nil && input.isUnread()
		return stdout.String(), failure
	}
	if withheld != nil {
		return "", &callError{verb: verb, cause: withheld, noEffect: true}
	}
	return stdout.String(), nil
}

func (r *runner) newClientCmd(ctx context.Context, binary string, c call, input clientInput) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, r.clientArgs(c)...)
	cmd.Env, cmd.Dir = r.environ, c.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	if input.file != nil {
		cmd.Stdin = input.file
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a key pressed in our terminal must not end it half-way
	cmd.WaitDelay = time.Second
	return cmd
}

func (r *runner) clientArgs(c call) []string {
	args := append([]string{"-u"}, r.socket...)
	if c.mayStartServer {
		args = append(args, "-f", r.configPath())
	} else {
		args = append(args, "-N")
	}
	for _, word := range c.args {
		if word != ";" {
			word = argument(word)
		}
		args = append(args, word)
	}
	return args
}

// notStartedError is the cause of a client that was never started.
func notStartedError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", sessions.ErrTerminalTimeout, ctx.Err())
	}
	return err
}

// clientError reads a client's end. Marked untouched is what cannot have had an effect whatever the command was.
func (r *runner) clientError(ctx context.Context, verb, message string, err error) *callError {
	failed := &callError{verb: verb, message: message}
	var exit *exec.ExitError
	switch exited := errors.As(err, &exit) && exit.Exited(); {
	case !exited && ctx.Err() != nil:
		failed.cause = fmt.Errorf("%w within %s: %w", sessions.ErrTerminalTimeout, r.timeout, ctx.Err())
	case !exited:
		failed.cause = fmt.Errorf("%w: its client ended: %w", sessions.ErrTerminalTimeout, err)
	case strings.HasPrefix(message, "no server running on "):
		failed.cause, failed.noEffect = errNoServer, true
	case strings.HasPrefix(message, "error connecting to ") && strings.HasSuffix(message, "(No such file or directory)"):
		failed.cause, failed.noEffect = errNoSocket, true
	case message == "no current target": // it runs and has no session, or is just ending
		failed.cause, failed.noEffect = errNoServer, true
	case strings.HasPrefix(message, "error connecting to "), strings.HasPrefix(message, "error creating "),
		strings.HasPrefix(message, "no buffer "): // the first paste found nothing to paste
		failed.noEffect = true
	case strings.HasPrefix(message, "protocol version mismatch"):
		failed.cause, failed.noEffect = ErrVersionMismatch, true
	case strings.HasPrefix(message, "server exited"), strings.HasPrefix(message, "lost server"):
		failed.cause = errServerLost
	case message == "":
		failed.message = err.Error()
	}
	return failed
}

// clientInput is a client's standard input. Either it is complete before the client starts, or it is handed over with one write
// into a pipe that takes it at once: were it fed bit by bit, a feeder that died would look like the end of the text, and
// half of it would be typed and submitted. A client that finds none at all types nothing: an empty load-buffer makes no
// buffer, and the paste fails (tmux 3.3a).
type clientInput struct {
	file     *os.File // nil: none
	size     int
	withheld *os.File // the other end of the pipe, while the input is withheld; nil: it is all there
}

// pipeSize is what an ordinary pipe takes at once on Linux; on others a write that does not fit is seen.
const pipeSize = 64 << 10

// prepareInput puts input into a pipe when it fits, and else into a file in our folder that has no name any more. Input that must
// wait for a commit waits outside of the pipe, so that the client starts meanwhile; one that does not fit waits here.
func (r *runner) prepareInput(c call) (clientInput, error) {
	switch {
	case c.input == nil:
		return clientInput{}, nil
	case c.commit != nil && len(c.input) <= pipeSize:
		r, w, err := os.Pipe()
		if err == nil && fitsInPipe(w, len(c.input)) {
			return clientInput{file: r, size: len(c.input), withheld: w}, nil
		}
		if err == nil {
			_, _ = r.Close(), w.Close() // nothing was put into it
		}
		fallthrough
	case c.commit != nil:
		if err := c.commit(); err != nil {
			return clientInput{}, err
		}
	case len(c.input) <= pipeSize:
		if file, err := newFilledPipe(c.input); err == nil {
			return clientInput{file: file, size: len(c.input)}, nil
		}
	}
	file, err := r.newFilledFile(c.input)
	return clientInput{file: file, size: len(c.input)}, err
}

// startCommit has what input waits for done while the client starts, and returns what waits for it.
func (s *clientInput) startCommit(c call) (committed func() error) {
	if s.withheld == nil {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- c.commit() }()
	return func() error { return <-done }
}

// release gives the client the input that was withheld, once the commit is done. An error means that it got nothing.
func (s *clientInput) release(c call, committed func() error) error {
	if s.withheld == nil {
		return nil
	}
	defer func() {
		_ = s.withheld.Close() // nothing is buffered in it; the client sees the end
		s.withheld = nil
	}()
	if err := committed(); err != nil {
		return err
	}
	return writeAtOnce(s.withheld, c.input)
}

var errPipeFull = errors.New("the pipe does not take it at once")

func newFilledPipe(input []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }() // nothing is buffered in it
	if err := writeAtOnce(w, input); err != nil {
		_ = r.Close() // the error that matters is at hand
		return nil, err
	}
	return r, nil
}

// writeAtOnce writes without waiting: os.Pipe's ends do not block.
func writeAtOnce(w *os.File, input []byte) error {
	raw, err := w.SyscallConn()
	if err != nil {
		return err
	}
	n := 0
	failed := raw.Write(func(fd uintptr) bool { n, err = syscall.Write(int(fd), input); return true })
	if err = errors.Join(err, failed); err == nil && n < len(input) {
		err = errPipeFull
	}
	return err
}

func (r *runner) newFilledFile(input []byte) (*os.File, error) {
	if err := r.makeDir(); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(r.dir, ".input-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(input)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close() // the error that matters is at hand
		return nil, err
	}
	return file, nil
}

// isUnread reports, once the client has ended, that it never read a byte. The reader's place is shared with the client,
// be it a pipe or a file, and the only writer is closed.
func (s clientInput) isUnread() bool {
	if s.size == 0 {
		return false
	}
	rest, err := io.ReadAll(s.file)
	return err == nil && len(rest) == s.size
}

func (s clientInput) close() {
	if s.file != nil {
		_ = s.file.Close() // it was only read
	}
	if s.withheld != nil {
		_ = s.withheld.Close() // the client was never started
	}
}
