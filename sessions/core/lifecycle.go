package core

import (
	"context"
	"time"

	"the-loop/sessions"
)

// Lifecycle has the verbs that create, register, start, stop, restart and delete sessions.
type Lifecycle struct {
	records  *records
	panes    *panes
	agents   *agents
	events   *events
	starter  *starter
	store    sessions.Records
	listRows func(ctx context.Context) (rows []sessions.Row, timeoutErr, err error) // of all sessions, see [Queries.List]
	config   func() Config
	now      func() time.Time
}
