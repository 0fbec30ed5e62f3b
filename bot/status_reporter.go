package bot

import (
	"context"
	"reflect"
	"time"
)

// How often the status is published: at least every statusEvery, so that its age shows that the bot lives; at once after wake, and
// within statusCheckEvery after any other change. During a burst of changes it is published every statusMinGap.
const (
	statusEvery      = 5 * time.Second
	statusCheckEvery = time.Second
	statusMinGap     = 250 * time.Millisecond
)

// statusReporter publishes the status when it changes. Its run owns last and lastSent.
type statusReporter struct {
	current func() Status
	publish func(Status)
	wakeup  chan struct{} // of capacity one

	last     Status
	lastSent time.Time
}

func newStatusReporter(current func() Status, publish func(Status)) *statusReporter {
	return &statusReporter{current: current, publish: publish, wakeup: make(chan struct{}, 1)}
}

// wake says that the status may have changed. It never blocks.
func (r *statusReporter) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// run publishes until ctx ends. The caller sends the last status.
func (r *statusReporter) run(ctx context.Context) {
	tick := time.NewTicker(statusCheckEvery)
	defer tick.Stop()
	for r.send(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if time.Since(r.lastSent) < statusEvery && !differs(r.current(), r.last) {
				continue
			}
		case <-r.wakeup:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(statusMinGap - time.Since(r.lastSent)):
		}
		r.send()
	}
}

// send publishes the present status.
func (r *statusReporter) send() {
	r.last, r.lastSent = r.current(), time.Now()
	r.publish(r.last)
}

// differs reports whether two statuses differ in more than the time of the last frame.
func differs(a, b Status) bool {
	a.Socket.LastFrame, b.Socket.LastFrame = time.Time{}, time.Time{}
	return !reflect.DeepEqual(a, b)
}
