package reconcile

import (
	"context"
	"time"

	"the-loop/sessions"
)

// How often the activity of panes is read, how often a screen is read without a change, and what one read may take. There is a pause
// between two reads, so that a thousand sessions cost no more than a hundred and are read less often.
const (
	screenPollEvery   = 15 * time.Second
	screenRereadEvery = 5 * time.Minute
	screenPause       = 100 * time.Millisecond
	screenTimeout     = 5 * time.Second
)

// ScreenReader reads the screens of sessions.
type ScreenReader interface {
	ReadActivity(ctx context.Context) (map[string]sessions.PaneActivity, error)
	View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error)
}

// ScreenHandler is given the screens of sessions that have a thread.
type ScreenHandler interface {
	Sessions() map[string]sessions.Ref
	IsBound(id string) bool
	HandleScreen(id string, v sessions.View)
}

// ScreenWatcher reads the screens of agents for dialogs that no hook reports. A screen is read when its pane had output since the last
// read, and for as long as it shows a dialog. One goroutine owns it.
type ScreenWatcher struct {
	screens  ScreenReader
	handler  ScreenHandler
	interval time.Duration
	last     map[string]lastScreen // by session id
}

// NewScreenWatcher returns a watcher that [ScreenWatcher.Run] starts. An interval of 0 means 15 s.
func NewScreenWatcher(screens ScreenReader, handler ScreenHandler, interval time.Duration) *ScreenWatcher {
	if interval == 0 {
		interval = screenPollEvery
	}
	return &ScreenWatcher{screens: screens, handler: handler, interval: interval, last: map[string]lastScreen{}}
}

// lastScreen is the result of the last read of a screen.
type lastScreen struct {
	readAt   time.Time
	activity sessions.PaneActivity
	isFinal  bool // the activity tells of all later output, and no dialog is open
}

// Run reads screens until ctx ends.
func (s *ScreenWatcher) Run(ctx context.Context) {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.pollAll(ctx)
		}
	}
}

// pollAll reads the screens that may have changed, one after the other.
func (s *ScreenWatcher) pollAll(ctx context.Context) {
	all := s.handler.Sessions()
	for id := range s.last {
		if _, there := all[id]; !there {
			delete(s.last, id)
		}
	}
	callCtx, cancel := context.WithTimeout(ctx, screenTimeout)
	activities, err := s.screens.ReadActivity(callCtx)
	cancel()
	if err != nil {
		activities = nil // not known, so all are read
	}
	for id, ref := range all {
		activity, known := activities[id]
		if !s.handler.IsBound(id) || known && s.last[id].isUnchanged(activity, time.Now()) {
			continue
		}
		if !sleepOrDone(ctx, min(screenPause, s.interval)) {
			return
		}
		s.readScreen(ctx, id, ref, activity)
	}
}

func (v lastScreen) isUnchanged(now sessions.PaneActivity, at time.Time) bool {
	return v.isFinal && v.activity == now && at.Sub(v.readAt) < screenRereadEvery
}

// readScreen reads one screen, if the session runs. Activity is counted in seconds: a pane with output in the present second is read
// once more.
func (s *ScreenWatcher) readScreen(ctx context.Context, id string, ref sessions.Ref, activity sessions.PaneActivity) {
	ctx, cancel := context.WithTimeout(ctx, screenTimeout)
	defer cancel()
	now := time.Now()
	view, err := s.screens.View(ctx, sessions.ViewRequest{Ref: ref, ID: id})
	if err == nil {
		s.handler.HandleScreen(id, view)
	}
	since := now.Unix() - activity.LastOutput
	over := activity.PID == 0 || err == nil && view.State != sessions.ViewDialog // no agent, or no dialog
	s.last[id] = lastScreen{readAt: now, activity: activity, isFinal: over && (since > 1 || since < -1)}
}

// sleepOrDone waits for d, and reports false when ctx ends first.
func sleepOrDone(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
