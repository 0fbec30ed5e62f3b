package sessions

import (
	"context"
	"fmt"
)

// SessionCapabilities are the capabilities of a harness, with the submit key of one session.
func SessionCapabilities(ctx context.Context, h Harness, r Record) (Capabilities, error) {
	can := h.Capabilities()
	if can.SubmitKey == nil {
		return can, nil
	}
	key, delay, err := can.SubmitKey(ctx, r.AgentConversation())
	if err != nil {
		return can, fmt.Errorf("find the agent's submit key: %w", err)
	}
	if key != "" {
		can.Submit, can.SubmitDelay = key, delay
	}
	return can, nil
}
