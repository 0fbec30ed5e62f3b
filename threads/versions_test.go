package threads

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
)

// inState lists the replies of a binding in one of the states.
func (b Binding) inState(states ...State) (all []string) {
	for ts, e := range b.Replies {
		if slices.Contains(states, e.State) {
			all = append(all, ts)
		}
	}
	return all
}

// edits changes a reply and returns it as it was, and as it is.
func (w *world) edits(ts, text string) (before, after Reply) {
	before = w.slack.reply(ts)
	w.slack.edit(ts, text)
	return before, w.slack.reply(ts)
}

func (w *world) heard(rs ...Reply) {
	for _, r := range rs {
		w.m.Heard(r)
		w.settle()
	}
}

func (w *world) edited(rs ...Reply) {
	for _, r := range rs {
		w.m.Edited(r)
		w.settle()
	}
}

// Slack sends the first event again after message_changed, and events in any order: the newest version counts.
func TestAnEventOfAnOlderVersionNeverUndoesAnEdit(t *testing.T) {
	for name, play := range map[string]func(w *world, first, second, third Reply){
		"the first event again":  func(w *world, first, _, third Reply) { w.edited(third); w.heard(first) },
		"an older edit again":    func(w *world, _, second, third Reply) { w.edited(third, second) },
		"the edit comes first":   func(w *world, first, second, third Reply) { w.edited(third); w.heard(first, second) },
		"all of them, backwards": func(w *world, first, second, third Reply) { w.edited(third, second); w.heard(second, first) },
		"after a restart": func(w *world, first, _, third Reply) {
			w.edited(third)
			w.stop()
			w.start()
			w.settle()
			w.heard(first)
		},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, heard before %v", name, known), func(t *testing.T) {
				run(t, func(w *world) {
					w.agent.handle(held)
					ts := w.slack.write(ann, "old")
					if known {
						w.hear(ts)
					}
					first, second := w.edits(ts, "new")
					_, third := w.edits(ts, "newest")
					play(w, first, second, third)
					w.agent.handle(nil)
					w.after(time.Minute)
					w.wantTyped("newest")
				})
			})
		}
	}
}

func held(_ *life, step string, _ sessions.SayRequest) error {
	if step == "look" {
		return &sessions.HeldError{State: sessions.ViewDialog}
	}
	return nil
}

// A page that was read before an edit is merged after the event of the edit.
func TestAReadOfAnOlderVersionNeverUndoesAnEdit(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(held)
		ts := w.say("old")
		first, second := w.edits(ts, "new")
		w.edited(second)
		at := w.m.of(sid)
		at.call(context.Background(), func(ctx context.Context) {
			at.merge(ctx, at.reading, at.b.Cursor, []Reply{first}, time.Now())
		})
		w.agent.handle(nil)
		w.after(time.Minute)
		w.wantTyped("new")
	})
}

func TestAnEditWhoseReplyWasWrittenDownAndNotTypedCounts(t *testing.T) {
	run(t, func(w *world) {
		tries := 0
		w.agent.handle(func(_ *life, step string, q sessions.SayRequest) error {
			if step != "intended" {
				return nil
			}
			if tries++; tries > 1 {
				return nil
			}
			_, after := w.edits(w.slack.messages[1].ts, "new")
			w.m.Edited(after)
			<-time.After(time.Second) // it is taken in meanwhile
			return &sessions.LockedError{Key: "x"}
		})
		w.say("old")
		w.after(time.Minute)
		w.wantTyped("new")
		w.wantPosts() // nothing came too late
	})
}

func TestARepeatedEditOfWhatWasTypedIsNotSaidToBeTooLate(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(held)
		ts := w.say("old")
		_, after := w.edits(ts, "new")
		w.edited(after)
		w.agent.handle(nil)
		w.after(10 * time.Second)
		w.wantTyped("new")
		said := len(w.slack.posted())
		w.edited(after, after)
		w.after(time.Minute)
		if posts := w.slack.posted(); len(posts) != said {
			t.Errorf("posted %q", posts[said:])
		}
		_, again := w.edits(ts, "newest")
		w.edited(again, again, after)
		w.after(time.Minute)
		if posts := w.slack.posted(); len(posts) != said+1 {
			t.Errorf("posted %q; want it said once that the edit came too late", posts[said:])
		}
	})
}

// Slack delivers events out of order: a deletion may be heard before the reply, and the reply again after it.
func TestWhatWasWithdrawnStaysWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		before bool // the reply is heard before it is deleted
		play   func(w *world)
	}{
		"heard later":                       {play: func(*world) {}},
		"heard later, after a restart":      {play: func(w *world) { w.stop(); w.start(); w.settle() }},
		"heard again":                       {before: true, play: func(*world) {}},
		"heard again, after a restart":      {before: true, play: func(w *world) { w.stop(); w.start(); w.settle() }},
		"heard again, with others between":  {before: true, play: func(w *world) { w.many(60) }},
		"heard later, with many in between": {play: func(w *world) { w.many(400); w.m.Connected(true); w.after(time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				if c.before {
					w.agent.handle(held)
				}
				ts := w.slack.write(ann, "take it back")
				first, second := w.edits(ts, "take it back v2")
				if c.before {
					w.heard(first)
				}
				w.slack.remove(ts)
				w.m.Withdrawn(channel, first.Root, ts)
				w.settle()
				w.agent.handle(nil)
				c.play(w)
				w.heard(first)
				w.edited(second)
				w.after(time.Minute)
				if slices.ContainsFunc(w.agent.typed, func(text string) bool { return text != "more" }) {
					t.Errorf("typed %q", w.agent.typed)
				}
			})
		})
	}
}

// many writes replies that are heard and typed at once.
func (w *world) many(n int) {
	w.t.Helper()
	for range n {
		w.say("more")
	}
}

// A reply that was written down to be typed is deleted, and then it is not typed after all.
func TestADeletionOfWhatWasWrittenDownAndNotTypedCounts(t *testing.T) {
	run(t, func(w *world) {
		tries := 0
		w.agent.handle(func(_ *life, step string, _ sessions.SayRequest) error {
			if step != "intended" {
				return nil
			}
			if tries++; tries > 1 {
				return nil
			}
			m := w.slack.messages[1]
			w.slack.remove(m.ts)
			w.m.Withdrawn(channel, m.root, m.ts)
			<-time.After(time.Second) // it is taken in meanwhile
			return &sessions.LockedError{Key: "x"}
		})
		w.say("old")
		w.after(time.Minute)
		w.wantTyped()
		w.wantPosts()
		if got := w.dropped(); !slices.Equal(got, []string{ReasonWithdrawn}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestAQuestionAboutAReplyThatWasDeletedIsClosed(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(inDoubt)
		ts := w.say("perhaps")
		w.after(5 * time.Second)
		root := w.slack.get(ts).root
		w.slack.remove(ts)
		w.m.Withdrawn(channel, root, ts)
		w.after(5 * time.Second)
		w.wantPosts("Deleted by its author")
		if _, buttons := w.slack.buttons(); len(buttons) != 0 {
			t.Errorf("it still has %v", buttons)
		}
	})
}
