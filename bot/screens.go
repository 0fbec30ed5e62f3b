package bot

import (
	"context"
	"time"

	"the-loop/sessions"
)

// How often it is asked whose screens changed, for dialogs that no hook tells of, what one look may take, and how often each is
// looked at without a change. There is a pause between two looks, so that a thousand sessions cost no more than a hundred and
// are seen less often.
const (
	screensEvery  = 15 * time.Second
	screensAnyway = 5 * time.Minute
	screenPause   = 100 * time.Millisecond
	lookTime      = 5 * time.Second
)

// screens tells the threads what their agents' screens show. A screen is read when its pane wrote something since, and for as
// long as it shows a dialog. One goroutine owns it.
type screens struct {
	b     *Bot
	seen  map[string]screenSeen // by session id
	pause time.Duration
}

// screenSeen is what is known from the last look at a screen.
type screenSeen struct {
	at   time.Time
	sign sessions.Sign
	last bool // nothing can have come since that the sign would not tell, and nothing is open
}

func (b *Bot) watchScreens(ctx context.Context) {
	s := &screens{b: b, seen: map[string]screenSeen{}, pause: min(screenPause, b.o.Looks)}
	tick := time.NewTicker(b.o.Looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.round(ctx)
		}
	}
}

// round looks at the screens that may show something new, one after the other.
func (s *screens) round(ctx context.Context) {
	all := s.b.threads.Sessions()
	for id := range s.seen {
		if _, there := all[id]; !there {
			delete(s.seen, id)
		}
	}
	asking, cancel := context.WithTimeout(ctx, lookTime)
	signs, err := s.b.o.Core.Signs(asking)
	cancel()
	if err != nil {
		signs = nil // whose screen changed is not known: all are looked at
	}
	for id, ref := range all {
		sign, told := signs[id]
		if !s.b.threads.IsBound(id) || told && s.seen[id].unchanged(sign, time.Now()) {
			continue
		}
		if !wait(ctx, s.pause) {
			return
		}
		s.look(ctx, id, ref, sign)
	}
}

func (v screenSeen) unchanged(now sessions.Sign, at time.Time) bool {
	return v.last && v.sign == now && at.Sub(v.at) < screensAnyway
}

// look looks at one screen. A session that does not run has none. A second in which the pane wrote may not be over: its sign
// would not tell what comes next, so it is looked at once more.
func (s *screens) look(ctx context.Context, id string, ref sessions.Ref, sign sessions.Sign) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	now := time.Now()
	view, err := s.b.o.Core.View(ctx, sessions.ViewRequest{Ref: ref, ID: id})
	if err == nil {
		s.b.threads.HandleScreen(id, view)
	}
	since := now.Unix() - sign.Output
	over := sign.PID == 0 || err == nil && view.State != sessions.ViewDialog // nobody writes, or nothing is open
	s.seen[id] = screenSeen{at: now, sign: sign, last: over && (since > 1 || since < -1)}
}

// wait waits, or returns false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
