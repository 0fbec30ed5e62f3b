package core

import (
	"context"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// pollMin is the first pause between two reads that wait for a change; it doubles up to [pollMax].
const (
	pollMin = 5 * time.Millisecond
	pollMax = 100 * time.Millisecond
)

// awaitEvidence reads the agent's transcript until it shows the text, or until the time. isLast is called before each read that is
// not the last one, and may make it the last one; nil: nothing does.
func awaitEvidence(ctx context.Context, w sessions.InputVerifier, c sessions.Conversation, i sessions.Intent, until time.Time,
	isLast func() (bool, error)) (bool, error) {
	c.ID = i.Conversation
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
		last := !time.Now().Before(until)
		if isLast != nil && !last {
			var err error
			if last, err = isLast(); err != nil {
				return false, err
			}
		}
		if accepted, err := w.Accepted(ctx, c, i.Offset, i.Sum); err != nil || accepted || last {
			return accepted, err
		}
		if !loop.Sleep(ctx, min(pause, time.Until(until))) {
			return false, ctx.Err()
		}
	}
}
