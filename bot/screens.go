package bot

import (
	"context"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/loop"
)

// How often it is asked whose screens changed, for dialogs that no hook tells of, what one look may take, and how often each is
// looked at without a change. There is a pause between two looks, so that a thousand sessions cost no more than a hundred and
// are seen less often.
const (
	screenPollEvery   = 15 * time.Second
	screenRereadEvery = 5 * time.Minute
	screenPause       = 100 * time.Millisecond
	screenTimeout     = 5 * time.Second
)

// screenWatcher tells the threads what their agents' screens show. A screen is read when its pane wrote something since, and for as
// long as it shows a dialog. One goroutine owns it.
type screenWatcher struct {
	b     *Bot
	last  map[string]lastScreen // by session id
	pause time.Duration
}

// lastScreen is what is known from the last look at a screen.
type lastScreen struct {
	readAt  time.Time
	sign    sessions.PaneActivity
	isFinal bool // nothing can have come since that the sign would not tell, and nothing is open
}

func (b *Bot) watchScreens(ctx context.Context) {
	s := &screenWatcher{b: b, last: map[string]lastScreen{}, pause: min(screenPause, b.o.ScreenInterval)}
	tick := time.NewTicker(b.o.ScreenInterval)
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

// pollAll looks at the screens that may show something new, one after the other.
func (s *screenWatcher) pollAll(ctx context.Context) {
	all := s.b.threads.Sessions()
	for id := range s.last {
		if _, there := all[id]; !there {
			delete(s.last, id)
		}
	}
	asking, cancel := context.WithTimeout(ctx, screenTimeout)
	signs, err := s.b.o.Core.ReadActivity(asking)
	cancel()
	if err != nil {
		signs = nil // whose screen changed is not known: all are looked at
	}
	for id, ref := range all {
		sign, told := signs[id]
		if !s.b.threads.IsBound(id) || told && s.last[id].isUnchanged(sign, time.Now()) {
			continue
		}
		if !loop.Sleep(ctx, s.pause) {
			return
		}
		s.readScreen(ctx, id, ref, sign)
	}
}

func (v lastScreen) isUnchanged(now sessions.PaneActivity, at time.Time) bool {
	return v.isFinal && v.sign == now && at.Sub(v.readAt) < screenRereadEvery
}

// look looks at one screen. A session that does not run has none. A second in which the pane wrote may not be over: its sign
// would not tell what comes next, so it is looked at once more.
func (s *screenWatcher) readScreen(ctx context.Context, id string, ref sessions.Ref, sign sessions.PaneActivity) {
	ctx, cancel := context.WithTimeout(ctx, screenTimeout)
	defer cancel()
	now := time.Now()
	view, err := s.b.o.Core.View(ctx, sessions.ViewRequest{Ref: ref, ID: id})
	if err == nil {
		s.b.threads.HandleScreen(id, view)
	}
	since := now.Unix() - sign.LastOutput
	over := sign.PID == 0 || err == nil && view.State != sessions.ViewDialog // nobody writes, or nothing is open
	s.last[id] = lastScreen{readAt: now, sign: sign, isFinal: over && (since > 1 || since < -1)}
}
