package sessions

import (
	"errors"
	"fmt"
)

// What callers branch on. Text that a person reads comes from the errors that wrap these.
var (
	ErrNotRecorded     = errors.New("no such session")
	ErrNotRunning      = errors.New("session is not running")
	ErrReplaced        = errors.New("the session was deleted and made again under the same name")
	ErrPaneGone        = errors.New("no pane belongs to the session")
	ErrPaneDead        = errors.New("the agent in the pane has ended")
	ErrTerminalTimeout = errors.New("tmux did not answer")
	ErrInDoubt         = errors.New("cannot tell whether it arrived")
	ErrNameTaken       = errors.New("a tmux session of that name exists")
	ErrCannotResume    = errors.New("this harness cannot resume a conversation")
	ErrEmptyText       = errors.New("there is no text to send")
	ErrRefused         = errors.New("refused")
	ErrEnvFile         = errors.New("the env file cannot be used")
)

// Refusal is an error that tells a person what to do about it. It is the core's own words on every surface.
type Refusal struct {
	Cause  error  // one of the sentinels above
	What   string // what is wrong, naming it
	Remedy string // what to do; may be empty
}

func (e *Refusal) Error() string {
	if e.Remedy == "" {
		return e.What
	}
	return e.What + ": " + e.Remedy
}

func (e *Refusal) Unwrap() error { return e.Cause }

// HeldError says that a text was not typed now because the agent's screen would not take it as text. It can be tried
// again later.
type HeldError struct {
	State ViewState
	Draft bool     // somebody's unsubmitted text stands in the box
	Lines []string // of the dialog
}

func (e *HeldError) Error() string {
	switch {
	case e.Draft:
		return "unsent text stands in the agent's input box"
	case e.State == ViewStarting:
		return "the agent is still starting"
	case e.State == ViewMenu:
		return "the agent shows a menu"
	case e.State == ViewWorking:
		return "the agent is at work, and takes no other text for the moment"
	}
	return "the agent asks a question in its terminal"
}

// LockedError says who holds a session's lock.
type LockedError struct {
	Key  string
	PID  int    // 0: not known
	Verb string // what the holder is at
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return e.Key + " is busy: another process works on it"
	}
	return fmt.Sprintf("%s is busy: process %d is at %q", e.Key, e.PID, e.Verb)
}

// UnreadableError names a state file that exists and cannot be used. It is left as it is.
type UnreadableError struct {
	Path string
	Ref  Ref    // the session it belongs to, when that is known from its name
	Slug string // of that session, when only that is
	Err  error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s cannot be used: %v; fix it or move it away", e.Path, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// IsTransient reports whether nothing was typed for a reason that passes by itself.
func IsTransient(err error) bool {
	var held *HeldError
	var locked *LockedError
	return errors.As(err, &held) || errors.As(err, &locked) || errors.Is(err, ErrTerminalTimeout) && !errors.Is(err, ErrInDoubt)
}
