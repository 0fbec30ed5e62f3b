package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// WorkItemEvent is something that happened to a work item, in words for its agent.
type WorkItemEvent struct {
	Ref  Ref    `json:"ref"`
	ID   string `json:"id"` // of the delivery
	Text string `json:"text"`
}

// EventSource tells what happens to work items: a receiver of webhooks, say.
type EventSource interface {
	// NextEvent waits for the next event. [io.EOF] when there will be none any more.
	NextEvent(ctx context.Context) (WorkItemEvent, error)
}

// IntakeRequest asks for the events of a source to be delivered.
type IntakeRequest struct {
	Source EventSource
	Wait   time.Duration // see [DeliverRequest]
	// Done is told what became of each event; an error of its own ends the intake.
	OnResult func(e WorkItemEvent, d DeliveryResult, err error) error
}

// Intake delivers what a source tells, one event after the other, until the source or ctx ends. An event that cannot be
// delivered does not keep the next ones.
func (c *Core) Intake(ctx context.Context, q IntakeRequest) error {
	for {
		e, err := q.Source.NextEvent(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("take in events: %w", err)
		}
		d, err := c.Deliver(ctx, DeliverRequest{Ref: e.Ref, DeliveryID: e.ID, Text: e.Text, Wait: q.Wait})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := q.OnResult(e, d, err); err != nil {
			return err
		}
	}
}
