// Package slackerr has the errors of the local workspace: those that Slack names in its answers, and those that people see.
package slackerr

import (
	"errors"
	"fmt"
	"time"
)

// Error is a failure that Slack names: {"ok":false,"error":code}.
type Error struct {
	Code       string
	Extra      map[string]any
	RetryAfter time.Duration // of a 429
}

// Error names the code.
func (e *Error) Error() string { return "slack: " + e.Code }

// New is an error with a code such as channel_not_found.
func New(code string) error { return &Error{Code: code} }

// WithMessages is an error with a code and what Slack says about each argument that is wrong.
func WithMessages(code string, messages ...string) error {
	return &Error{Code: code, Extra: map[string]any{"response_metadata": map[string]any{"messages": messages}}}
}

// CodeOf is the code of an error: empty for nil, internal_error for one that Slack does not name.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return "internal_error"
	}
	return ""
}

// ErrNoAnswer is what a person sees when the app did not ack a command, a click or a modal in time, or was not
// connected: Slack tries once, and never again.
var ErrNoAnswer = errors.New("the app did not respond")

// ErrRefused is what a Slack client says no to before anything is sent. The error's text is Slack's, or near it.
var ErrRefused = errors.New("slack refuses")

// Refusedf is an [ErrRefused] with what the Slack client says.
func Refusedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}
