package sessions

import "context"

// ANSICapturer is a [Terminal] that can also read a pane's screen with its colours.
type ANSICapturer interface {
	// CaptureANSI reads the visible screen with the escape sequences of its colours. Errors as for [ScreenReader].
	CaptureANSI(ctx context.Context, t Target) (string, error)
}
