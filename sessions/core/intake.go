package core

import (
	"context"
	"errors"
	"fmt"
	"io"

	"the-loop/sessions"
)

// Intake delivers what a source tells, one event after the other, until the source or ctx ends. An event that cannot be
// delivered does not keep the next ones.
func (c *Core) Intake(ctx context.Context, q sessions.IntakeRequest) error {
	for {
		e, err := q.Source.NextEvent(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("take in events: %w", err)
		}
		d, err := c.Deliver(ctx, sessions.DeliverRequest{Ref: e.Ref, DeliveryID: e.ID, Text: e.Text, Wait: q.Wait})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := q.OnResult(e, d, err); err != nil {
			return err
		}
	}
}
