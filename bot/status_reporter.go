package bot

import (
	"context"
	"reflect"
	"time"
)

// How often the state is told: at least every statusEvery, so that its age shows that the bot lives; within a moment of a
// change that was said, and within statusCheckEvery of any other. A burst of changes is told every statusMinGap.
const (
	statusEvery      = 5 * time.Second
	statusCheckEvery = time.Second
	statusMinGap     = 250 * time.Millisecond
)

// statusReporter tells how the bot is when that changes. Its run owns last and told.
type statusReporter struct {
	current func() Status
	publish func(Status)
	wakeup  chan struct{} // of capacity one

	last     Status
	lastSent time.Time
}

func newStatusReporter(state func() Status, tell func(Status)) *statusReporter {
	return &statusReporter{current: state, publish: tell, wakeup: make(chan struct{}, 1)}
}

// wake says that the state may have changed. It never blocks.
func (r *statusReporter) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// run tells until ctx ends. The last word is for who waited for it to say.
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

// say tells the state as it is now.
func (r *statusReporter) send() {
	r.last, r.lastSent = r.current(), time.Now()
	r.publish(r.last)
}

// differs reports whether two states differ in more than the last sign of life.
func differs(a, b Status) bool {
	a.Socket.LastFrame, b.Socket.LastFrame = time.Time{}, time.Time{}
	return !reflect.DeepEqual(a, b)
}
