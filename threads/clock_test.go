package threads

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"the-loop/threads/chat"
)

// wallClock is this machine's clock, which somebody sets.
type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

func (c *wallClock) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }

// withWallClock is run on a machine whose clock is ahead.
func withWallClock(t *testing.T, ahead time.Duration, f func(w *env, c *wallClock)) {
	t.Helper()
	c := &wallClock{}
	c.set(ahead)
	withEnvSetup(t, func(w *env) { w.clock = c.now }, func(w *env) { f(w, c) })
}

var jumps = []time.Duration{20 * time.Minute, -20 * time.Minute, 26 * time.Hour, -26 * time.Hour}

func TestALiveReplyIsTypedWhateverOurClockSays(t *testing.T) {
	for _, jump := range jumps {
		for _, dateless := range []bool{false, true} {
			t.Run(fmt.Sprintf("set by %s, no dates %v", jump, dateless), func(t *testing.T) {
				withWallClock(t, 0, func(w *env, c *wallClock) {
					w.slack.noDates = dateless
					first := w.reply("before")
					c.set(jump)
					w.reply("after")
					c.set(0)
					w.reply("back")
					w.advance(time.Minute)
					c.set(jump)
					w.reply("and again")
					w.wantTyped("before", "after", "back", "and again")
					w.wantPosts()
					w.advance(14 * time.Minute)
					w.m.Connected(true)
					w.advance(time.Second)
					last := w.reply("last")
					w.advance(time.Minute)
					if b := bindingFile(t, w); chat.CompareTS(b.Cursor, first) > 0 && !dateless || b.Cursor != b.Root && dateless {
						t.Errorf("the cursor is at %s; the replies began at %s", b.Cursor, first)
					}
					w.advance(time.Hour)
					w.m.Connected(true)
					w.advance(time.Minute)
					if b := bindingFile(t, w); b.Cursor != last && !dateless {
						t.Errorf("the cursor is at %s; want %s", b.Cursor, last)
					}
				})
			})
		}
	}
}

// How long a live reply waited is measured, not read off a clock.
func TestALiveReplyThatWaitedForTooLongIsOfferedWhateverOurClockSays(t *testing.T) {
	for _, jump := range jumps {
		t.Run(jump.String(), func(t *testing.T) {
			withWallClock(t, 0, func(w *env, c *wallClock) {
				w.agent.setOnStep(failHeld)
				w.reply("soon")
				w.advance(5 * time.Minute)
				c.set(jump)
				w.agent.setOnStep(nil)
				w.advance(time.Minute)
				w.wantTyped("soon")
				c.set(0)
				w.agent.setOnStep(failHeld)
				w.reply("late")
				w.advance(10 * time.Minute)
				c.set(jump)
				w.advance(10 * time.Minute)
				w.agent.setOnStep(nil)
				w.advance(time.Minute)
				w.wantTyped("soon")
			})
		})
	}
}

// The age of what was missed is by Slack's clock.
func TestWhatWasMissedHasItsAgeBySlacksClock(t *testing.T) {
	for _, ahead := range append(jumps, 0) {
		t.Run(ahead.String(), func(t *testing.T) {
			withWallClock(t, ahead, func(w *env, c *wallClock) {
				w.stop()
				w.slack.write(ann, "old")
				w.advance(20 * time.Minute)
				w.slack.write(ann, "new")
				c.set(-ahead) // also while the bot is away
				w.start()
				w.advance(time.Minute)
				w.wantTyped("new")
				w.wantPosts("I did not type the reply")
			})
		})
	}
}

// What Slack sends again is not new: after an hour nobody waits for it.
func TestAnEventThatSlackSendsAgainHasAnAge(t *testing.T) {
	withEnv(t, func(w *env) {
		w.reply("first")
		w.slack.setErr(errors.New("no network"))
		soon, late := w.slack.write(ann, "soon"), w.slack.write(ann, "late")
		again := func(ts string) {
			r := w.slack.reply(ts)
			r.Redelivered = true
			w.handleReplies(r)
		}
		w.advance(5 * time.Minute)
		again(soon)
		w.advance(time.Minute) // it cannot be read first
		w.wantTyped("first", "soon")
		w.advance(time.Hour)
		again(late)
		w.slack.setErr(nil)
		w.advance(time.Minute)
		w.wantTyped("first", "soon")
		w.wantPosts("I did not type the reply")
	})
}

func TestSlacksClockIsKeptByDatesAndEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c chat.Clock
		slack := func() time.Time { return time.Now().Add(-3 * time.Hour) }
		if now, known := c.Now(); known || !now.IsZero() || !c.FromLocal(time.Now()).IsZero() {
			t.Errorf("Now: %s, %v before anything was heard", now, known)
		}
		near := func(within time.Duration) {
			t.Helper()
			now, known := c.Now()
			if off := now.Sub(slack()).Abs(); !known || off > within {
				t.Errorf("it is off by %s; want at most %s", off, within)
			}
		}
		c.ObserveEvent(slack().Add(-5 * time.Minute)) // an event that was sent again
		near(5 * time.Minute)
		c.ObserveEvent(time.Time{})
		time.Sleep(700 * time.Millisecond) // the bubble's time
		c.ObserveDate(slack().Truncate(time.Second))
		near(time.Second)
		c.ObserveEvent(slack().Add(-5 * time.Minute)) // tells nothing new
		near(time.Second)
		time.Sleep(24 * time.Hour)
		near(time.Second)
		c.ObserveEvent(slack())
		near(time.Second)
		if of := c.FromLocal(time.Now().Add(-time.Hour)); of.Sub(slack().Add(-time.Hour)).Abs() > time.Second {
			t.Errorf("Of: %s", of)
		}
	})
}
