package sessions

import "context"

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
