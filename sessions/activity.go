package sessions

import (
	"context"
)

// PaneActivity is what a pane tells of itself without its screen being read.
type PaneActivity struct {
	LastOutput int64 // Unix seconds of the last output
	PID        int   // of the process that runs in it; 0: it has ended
}

// ActivityReader is a [Terminal] that knows when its panes wrote something last.
type ActivityReader interface {
	// ReadActivity are those of every pane of ours, by its mark. Errors as of [PaneReader.Panes].
	ReadActivity(ctx context.Context) (map[string]PaneActivity, error)
}
