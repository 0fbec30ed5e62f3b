package bot_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/bot"
	"the-loop/sessions"
)

// watchedCore counts how often it is asked whose screens changed, and how often one is read.
type watchedCore struct {
	bot.Core
	signs, views *atomic.Int64
}

func (c watchedCore) ReadActivity(ctx context.Context) (map[string]sessions.PaneActivity, error) {
	defer c.signs.Add(1)
	return c.Core.ReadActivity(ctx)
}

func (c watchedCore) View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error) {
	c.views.Add(1)
	return c.Core.View(ctx, q)
}

func TestTheScreenOfAnIdleAgentIsNotReadAgainAndAgain(t *testing.T) {
	t.Parallel()
	var signs, views atomic.Int64
	w := newWorld(t, func(s *setup) {
		s.options = func(o *bot.Options) {
			o.ScreenInterval, o.Core = 50*time.Millisecond, watchedCore{Core: o.Core, signs: &signs, views: &views}
		}
	})
	a := w.agent("helper")
	a.announced()
	w.until("a look at its screen", func() bool { return views.Load() > 0 })
	for quiet := int64(0); quiet < 20; { // until nobody read it for so many rounds
		read, asked := views.Load(), signs.Load()
		w.until("another round", func() bool { return signs.Load() > asked })
		if quiet++; views.Load() > read {
			quiet = 0
		}
	}
	before := views.Load()
	a.tells("do a thing")
	w.until("a look at what it wrote", func() bool { return views.Load() > before })
}
