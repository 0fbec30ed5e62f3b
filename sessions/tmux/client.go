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
	args  []string // words of commands, with ";" between commands
	input []byte   // nil: none
	dir   string   // its working folder; empty: /
	start bool     // may start the server
	// commit is called before the client is given its input; when it fails, the client gets none. nil: nothing to wait for
	commit func() error
}

// run runs one tmux client and returns what it printed, with an error as well as without. Errors are *callError.
func (t *Tmux) run(ctx context.Context, c call) (string, error) {
	verb := c.args[0]
	binary, err := t.program()
	if err != nil {
		return "", err
	}
	input, err := t.stage(c)
	if err != nil {
		return "", &callError{verb: verb, cause: err, untouched: true}
	}
	defer input.close()
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return "", &callError{verb: verb, cause: unstarted(ctx, ctx.Err()), untouched: true}
	}
	var stdout, stderr bytes.Buffer
	cmd := t.command(ctx, binary, c, input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	committed := input.commit(c)
	if err := cmd.Start(); err != nil {
		return "", &callError{verb: verb, cause: errors.Join(unstarted(ctx, err), committed()), untouched: true}
	}
	withheld := input.hand(c, committed)
	if err := cmd.Wait(); err != nil && withheld == nil {
		failure := t.failure(ctx, verb, strings.TrimSpace(stderr.String()), err)
		failure.untouched = failure.untouched || c.input != nil && input.unread()
		return stdout.String(), failure
	}
	if withheld != nil {
		return "", &callError{verb: verb, cause: withheld, untouched: true}
	}
	return stdout.String(), nil
}

func (t *Tmux) command(ctx context.Context, binary string, c call, input staged) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, t.arguments(c)...)
	cmd.Env, cmd.Dir = t.environ, c.dir
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

func (t *Tmux) arguments(c call) []string {
	args := append([]string{"-u"}, t.socket...)
	if c.start {
		args = append(args, "-f", t.configPath())
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

// unstarted is the cause of a client that was never started.
func unstarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", sessions.ErrSilent, ctx.Err())
	}
	return err
}

// failure reads a client's end. Marked untouched is what cannot have had an effect whatever the command was.
func (t *Tmux) failure(ctx context.Context, verb, message string, err error) *callError {
	failed := &callError{verb: verb, message: message}
	var exit *exec.ExitError
	switch exited := errors.As(err, &exit) && exit.Exited(); {
	case !exited && ctx.Err() != nil:
		failed.cause = fmt.Errorf("%w within %s: %w", sessions.ErrSilent, t.timeout, ctx.Err())
	case !exited:
		failed.cause = fmt.Errorf("%w: its client ended: %w", sessions.ErrSilent, err)
	case strings.HasPrefix(message, "no server running on "):
		failed.cause, failed.untouched = errNoServer, true
	case strings.HasPrefix(message, "error connecting to ") && strings.HasSuffix(message, "(No such file or directory)"):
		failed.cause, failed.untouched = errNoSocket, true
	case message == "no current target": // it runs and has no session, or is just ending
		failed.cause, failed.untouched = errNoServer, true
	case strings.HasPrefix(message, "error connecting to "), strings.HasPrefix(message, "error creating "),
		strings.HasPrefix(message, "no buffer "): // the first paste found nothing to paste
		failed.untouched = true
	case strings.HasPrefix(message, "protocol version mismatch"):
		failed.cause, failed.untouched = ErrMismatch, true
	case strings.HasPrefix(message, "server exited"), strings.HasPrefix(message, "lost server"):
		failed.cause = errLost
	case message == "":
		failed.message = err.Error()
	}
	return failed
}

// staged is a client's standard input. Either it is complete before the client starts, or it is handed over with one write
// into a pipe that takes it at once: were it fed bit by bit, a feeder that died would look like the end of the text, and
// half of it would be typed and submitted. A client that finds none at all types nothing: an empty load-buffer makes no
// buffer, and the paste fails (tmux 3.3a).
type staged struct {
	file *os.File // nil: none
	size int
	gate *os.File // the other end of the pipe, while the input is withheld; nil: it is all there
}

// pipeSize is what an ordinary pipe takes at once on Linux; on others a write that does not fit is seen.
const pipeSize = 64 << 10

// stage puts input into a pipe when it fits, and else into a file in our folder that has no name any more. Input that must
// wait for a commit waits outside of the pipe, so that the client starts meanwhile; one that does not fit waits here.
func (t *Tmux) stage(c call) (staged, error) {
	switch {
	case c.input == nil:
		return staged{}, nil
	case c.commit != nil && len(c.input) <= pipeSize:
		r, w, err := os.Pipe()
		if err == nil && takes(w, len(c.input)) {
			return staged{file: r, size: len(c.input), gate: w}, nil
		}
		if err == nil {
			_, _ = r.Close(), w.Close() // nothing was put into it
		}
		fallthrough
	case c.commit != nil:
		if err := c.commit(); err != nil {
			return staged{}, err
		}
	case len(c.input) <= pipeSize:
		if file, err := filledPipe(c.input); err == nil {
			return staged{file: file, size: len(c.input)}, nil
		}
	}
	file, err := t.filledFile(c.input)
	return staged{file: file, size: len(c.input)}, err
}

// commit has what input waits for done while the client starts, and returns what waits for it.
func (s *staged) commit(c call) (committed func() error) {
	if s.gate == nil {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- c.commit() }()
	return func() error { return <-done }
}

// hand gives the client the input that was withheld, once the commit is done. An error means that it got nothing.
func (s *staged) hand(c call, committed func() error) error {
	if s.gate == nil {
		return nil
	}
	defer func() {
		_ = s.gate.Close() // nothing is buffered in it; the client sees the end
		s.gate = nil
	}()
	if err := committed(); err != nil {
		return err
	}
	return writeAtOnce(s.gate, c.input)
}

var errPipeFull = errors.New("the pipe does not take it at once")

func filledPipe(input []byte) (*os.File, error) {
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

func (t *Tmux) filledFile(input []byte) (*os.File, error) {
	if err := t.makeDir(); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(t.dir, ".input-")
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

// unread reports, once the client has ended, that it never read a byte. The reader's place is shared with the client,
// be it a pipe or a file, and the only writer is closed.
func (s staged) unread() bool {
	if s.size == 0 {
		return false
	}
	rest, err := io.ReadAll(s.file)
	return err == nil && len(rest) == s.size
}

func (s staged) close() {
	if s.file != nil {
		_ = s.file.Close() // it was only read
	}
	if s.gate != nil {
		_ = s.gate.Close() // the client was never started
	}
}
