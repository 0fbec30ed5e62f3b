package demo

import (
	"context"
	"fmt"
	"sync"

	"the-loop/bot/localslack/page"
	"the-loop/sessions/eventlog"
)

// eventsShown is how many events the page shows.
const eventsShown = 6

// recentEvents reads the last events of a log, each time from where it stopped before.
type recentEvents struct {
	path string

	mu       sync.Mutex // guards the fields that follow
	position eventlog.Position
	entries  []eventlog.Entry
}

// facts returns the last events, the newest first, each with its outcome or reason.
func (r *recentEvents) facts(ctx context.Context) page.FactGroup {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, err := eventlog.Read(ctx, r.path, r.position, func(e eventlog.Entry) error {
		r.entries = append(r.entries[max(0, len(r.entries)-eventsShown+1):], e)
		return nil
	})
	f := page.FactGroup{Title: "Event log", Wide: true}
	if err != nil {
		f.Lines = append(f.Lines, markedFact("log", oneLine(err), false))
		return f
	}
	r.position = at
	for i := len(r.entries) - 1; i >= 0; i-- {
		f.Lines = append(f.Lines, eventFact(r.entries[i]))
	}
	return f
}

func eventFact(e eventlog.Entry) page.Fact {
	text := e.Name
	for _, field := range []string{"outcome", "reason", "verdict"} {
		if v, given := e.Fields[field]; given {
			text += fmt.Sprintf(" · %v", v)
		}
	}
	return plainFact(clockTime(e.Time), text)
}
