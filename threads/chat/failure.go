package chat

import "errors"

// Failure is what a failed call of the surface means for what comes next. Whoever calls the surface branches on it, so that
// one refusal means the same everywhere.
type Failure int

// The failures, as [FailureOf] tells them apart.
const (
	FailureRetry   Failure = iota // the same call may do better soon
	FailureWait                   // the surface asks to wait, see [RateLimitedError]
	FailureMessage                // not this message, reaction or file, however often it is tried; others may pass
	FailureChannel                // nothing in this channel now; other channels are not concerned
	FailureApp                    // nothing of this kind at all, until somebody changes the app
)

// FailureOf classifies an error of the surface. What is not known may pass by itself.
func FailureOf(err error) Failure {
	var limited *RateLimitedError
	var file *FileError
	switch {
	case errors.As(err, &limited):
		return FailureWait
	case errors.Is(err, ErrDisabled):
		return FailureApp
	case errors.Is(err, ErrUnavailable):
		return FailureChannel
	case errors.Is(err, ErrRefused), errors.Is(err, ErrThreadGone), errors.Is(err, ErrReplyGone), errors.As(err, &file):
		return FailureMessage
	}
	return FailureRetry
}
