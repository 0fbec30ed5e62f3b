package socket

import (
	"context"
	"encoding/json"
	"fmt"

	"the-loop/bot/localslack/slackerr"
)

// SendAndAwaitAck sends a payload and waits for its ack.
func (w *Hub) SendAndAwaitAck(ctx context.Context, d *Delivery) (json.RawMessage, error) {
	type answer struct {
		payload json.RawMessage
		failure string
	}
	if d.Kind == "interactive" && w.Opts.NoInteractivity {
		return nil, slackerr.Refusedf("This app is not configured to handle interactive responses.")
	}
	got := make(chan answer, 1)
	d.onAck = func(p json.RawMessage) { got <- answer{payload: p} }
	d.onFail = func(reason string) { got <- answer{failure: reason} }
	w.Mu.Lock()
	w.StartDelivery(d)
	w.Mu.Unlock()
	select {
	case a := <-got:
		if a.failure != "" {
			return nil, fmt.Errorf("%w: %s", slackerr.ErrNoAnswer, a.failure)
		}
		return a.payload, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.Ctx.Done():
		return nil, fmt.Errorf("%w: the workspace closed", slackerr.ErrNoAnswer)
	}
}
