// Package eventlogtest has an event log in memory, for tests that wait for events.
package eventlogtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"the-loop/sessions"
)

// Recorder is a [sessions.Sink] that keeps the events. Its zero value is ready.
type Recorder struct {
	mu      sync.Mutex // guards the fields that follow
	events  []sessions.Event
	changed chan struct{} // closed by the next event; nil while nobody waits
}

var _ sessions.Sink = (*Recorder)(nil)

// Emit keeps the event.
func (r *Recorder) Emit(_ context.Context, e sessions.Event) {
	e.Fields = maps.Clone(e.Fields)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Events returns what was emitted so far, in order.
func (r *Recorder) Events() []sessions.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Names returns the names of what was emitted so far, in order.
func (r *Recorder) Names() []string {
	var names []string
	for _, e := range r.Events() {
		names = append(names, e.Name)
	}
	return names
}

// WaitFor asks ok about the events so far, now and after each further one, until it says yes. When ctx ends first the
// error names the events there are.
func (r *Recorder) WaitFor(ctx context.Context, ok func([]sessions.Event) bool) error {
	for {
		events, changed := r.watch()
		if ok(events) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w; events so far: %s", ctx.Err(), strings.Join(r.Names(), ", "))
		}
	}
}

// watch returns the events and what the next one closes.
func (r *Recorder) watch() ([]sessions.Event, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return slices.Clone(r.events), r.changed
}
