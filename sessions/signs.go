package sessions

import (
	"context"
	"errors"
)

// Sign is what a pane tells of itself without its screen being read.
type Sign struct {
	Output int64 // Unix seconds of the last output
	PID    int   // of the process that runs in it; 0: it has ended
}

// SignReader is a [Terminal] that knows when its panes wrote something last.
type SignReader interface {
	// Signs are those of every pane of ours, by its mark. Errors as of [ScreenReader.MayBeInPane].
	Signs(ctx context.Context) (map[string]Sign, error)
}

// Signs are those of the sessions on our server, by id, with one look at tmux. [errors.ErrUnsupported] when the terminal cannot
// tell.
func (c *Core) Signs(ctx context.Context) (map[string]Sign, error) {
	r, ok := c.o.Terminal.(SignReader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return r.Signs(ctx)
}
