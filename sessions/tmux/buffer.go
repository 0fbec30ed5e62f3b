package tmux

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"
)

// bufferPrefix begins the names of all our buffers. Names are global in a server: two deliveries that shared one would
// put one session's text into the other's pane.
const bufferPrefix = "the-loop-"

// bufferMaxAge is after how long a buffer of ours has been forgotten. It is more than [MaxDelay] and any call's time-out.
const bufferMaxAge = 2 * time.Minute

func newBufferName() string { return bufferPrefix + strings.ToLower(rand.Text()) }

// parseStaleBuffer reads a buffer's name and when it was made from a line of a list.
func parseStaleBuffer(line string, now time.Time) (name string, stale bool) {
	f := strings.Split(line, "\t")
	if len(f) != 2 || !strings.HasPrefix(f[0], bufferPrefix) {
		return "", false
	}
	created, err := strconv.ParseInt(f[1], 10, 64)
	return f[0], err == nil && now.Sub(time.Unix(created, 0)) > bufferMaxAge
}

// deleteStaleBuffers deletes buffers that a client left behind when it died at a bad moment. Failing is no harm: the next look tries
// again.
func (t *Tmux) deleteStaleBuffers(ctx context.Context, names []string) {
	for _, name := range names {
		if _, err := t.run(ctx, call{args: []string{"delete-buffer", "-b", name}}); err != nil {
			t.log.WarnContext(ctx, "a stale paste buffer stays", "error", err)
			return
		}
	}
}
