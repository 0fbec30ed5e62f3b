package tmux

import (
	"errors"
	"fmt"

	"the-loop/sessions"
)

// What callers may branch on beside the errors of package sessions.
var (
	ErrNoTmux          = errors.New("tmux is not installed; install it with: apt install tmux, dnf install tmux, or brew install tmux")
	ErrTooOld          = errors.New("tmux is too old; 3.2 or newer is needed")
	ErrVersionMismatch = errors.New("the tmux server that runs was started by another version of tmux")
	ErrInputOff        = errors.New("input to the pane is switched off (select-pane -e switches it on)")
	ErrInvalidText     = errors.New("the text holds control characters or is not UTF-8")
	ErrTooLong         = errors.New("too long")
)

// ReservedError names an environment variable that tmux sets itself in every pane.
type ReservedError struct{ Name string }

func (e *ReservedError) Error() string {
	return fmt.Sprintf("the variable %s cannot be given to a session: tmux sets it", e.Name)
}

// BinaryNotFoundError says that a program was not found where its pane would look for it.
type BinaryNotFoundError struct {
	Name string
	Path string // the PATH that was searched; empty for a name with a slash
}

func (e *BinaryNotFoundError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s is not a program that can be run", e.Name)
	}
	return fmt.Sprintf("no program %s on the session's PATH (%s)", e.Name, e.Path)
}

var (
	errNoServer   = errors.New("no tmux server is running")
	errNoSocket   = errors.New("the socket of the tmux server does not exist")
	errServerLost = fmt.Errorf("the tmux server went away: %w", sessions.ErrTerminalTimeout)
	errRefused    = errors.New("tmux refused")
)

// callError is one tmux invocation that did not go well.
type callError struct {
	verb     string
	message  string // tmux's own words; may be empty
	cause    error  // may be nil
	noEffect bool   // the server never took the command's input, so nothing that follows from it was done
}

func (e *callError) Error() string {
	switch {
	case e.cause == nil:
		return fmt.Sprintf("tmux %s: %s", e.verb, e.message)
	case e.message == "":
		return fmt.Sprintf("tmux %s: %v", e.verb, e.cause)
	}
	return fmt.Sprintf("tmux %s: %v (%s)", e.verb, e.cause, e.message)
}

func (e *callError) Unwrap() error { return e.cause }

// hadNoEffect reports that err is certain to have changed nothing.
func hadNoEffect(err error) bool {
	var call *callError
	return errors.As(err, &call) && call.noEffect
}

// wrapInDoubt adds ErrInDoubt to an error after which something may have been done.
func wrapInDoubt(err error) error {
	if err == nil || hadNoEffect(err) {
		return err
	}
	return fmt.Errorf("%w: %w", sessions.ErrInDoubt, err)
}
