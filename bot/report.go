package bot

import (
	"context"
	"reflect"
	"time"
)

// How often the state is told: at least every reportEvery, so that its age shows that the bot lives; within a moment of a
// change that was said, and within reportLook of any other. A burst of changes is told every reportGap.
const (
	reportEvery = 5 * time.Second
	reportLook  = time.Second
	reportGap   = 250 * time.Millisecond
)

// stateReporter tells how the bot is when that changes. Its run owns last and told.
type stateReporter struct {
	state   func() Report
	tell    func(Report)
	changed chan struct{} // of capacity one

	last Report
	told time.Time
}

func newStateReporter(state func() Report, tell func(Report)) *stateReporter {
	return &stateReporter{state: state, tell: tell, changed: make(chan struct{}, 1)}
}

// poke says that the state may have changed. It never blocks.
func (r *stateReporter) poke() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// run tells until ctx ends. The last word is for who waited for it to say.
func (r *stateReporter) run(ctx context.Context) {
	tick := time.NewTicker(reportLook)
	defer tick.Stop()
	for r.say(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if time.Since(r.told) < reportEvery && !differs(r.state(), r.last) {
				continue
			}
		case <-r.changed:
		}
		if !pause(ctx, reportGap-time.Since(r.told)) {
			return
		}
		r.say()
	}
}

// say tells the state as it is now.
func (r *stateReporter) say() {
	r.last, r.told = r.state(), time.Now()
	r.tell(r.last)
}

// differs reports whether two states differ in more than the last sign of life.
func differs(a, b Report) bool {
	a.Socket.LastFrame, b.Socket.LastFrame = time.Time{}, time.Time{}
	return !reflect.DeepEqual(a, b)
}
