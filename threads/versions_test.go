package threads

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// repliesIn lists the replies of a binding in one of the states.
func repliesIn(b binding.Binding, states ...binding.State) (all []string) {
	for ts, e := range b.Replies {
		if slices.Contains(states, e.State) {
			all = append(all, ts)
		}
	}
	return all
}

// editReply changes a reply and returns it as it was, and as it is.
func (w *env) editReply(ts, text string) (before, after chat.Reply) {
	before = w.slack.reply(ts)
	w.slack.edit(ts, text)
	return before, w.slack.reply(ts)
}

func (w *env) handleReplies(rs ...chat.Reply) {
	for _, r := range rs {
		w.m.HandleReply(r)
		w.wait()
	}
}

func (w *env) handleEdits(rs ...chat.Reply) {
	for _, r := range rs {
		w.m.ReplyEdited(r)
		w.wait()
	}
}

// Slack sends the first event again after message_changed, and events in any order: the newest version counts.
func TestAnEventOfAnOlderVersionNeverUndoesAnEdit(t *testing.T) {
	for name, play := range map[string]func(w *env, first, second, third chat.Reply){
		"the first event again": func(w *env, first, _, third chat.Reply) { w.handleEdits(third); w.handleReplies(first) },
		"an older edit again":   func(w *env, _, second, third chat.Reply) { w.handleEdits(third, second) },
		"the edit comes first":  func(w *env, first, second, third chat.Reply) { w.handleEdits(third); w.handleReplies(first, second) },
		"all of them, backwards": func(w *env, first, second, third chat.Reply) {
			w.handleEdits(third, second)
			w.handleReplies(second, first)
		},
		"after a restart": func(w *env, first, _, third chat.Reply) {
			w.handleEdits(third)
			w.stop()
			w.start()
			w.wait()
			w.handleReplies(first)
		},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, heard before %v", name, known), func(t *testing.T) {
				withEnv(t, func(w *env) {
					w.agent.setOnStep(failHeld)
					ts := w.slack.write(ann, "old")
					if known {
						w.deliverEvent(ts)
					}
					first, second := w.editReply(ts, "new")
					_, third := w.editReply(ts, "newest")
					play(w, first, second, third)
					w.agent.setOnStep(nil)
					w.advance(time.Minute)
					w.wantTyped("newest")
				})
			})
		}
	}
}

func failHeld(_ *managerRun, step string, _ sessions.SubmitRequest) error {
	if step == "look" {
		return &sessions.HeldError{State: sessions.ViewDialog}
	}
	return nil
}

// A page that was read before an edit is merged after the event of the edit.
func TestAReadOfAnOlderVersionNeverUndoesAnEdit(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(failHeld)
		ts := w.reply("old")
		first, second := w.editReply(ts, "new")
		w.handleEdits(second)
		at := w.m.index.of(sid)
		at.Call(context.Background(), func(ctx context.Context) {
			at.replies.merge(ctx, at.replies.readGeneration, at.B.Cursor, []chat.Reply{first}, time.Now())
		})
		w.agent.setOnStep(nil)
		w.advance(time.Minute)
		w.wantTyped("new")
	})
}

func TestAnEditWhoseReplyWasWrittenDownAndNotTypedCounts(t *testing.T) {
	withEnv(t, func(w *env) {
		tries := 0
		w.agent.setOnStep(func(_ *managerRun, step string, q sessions.SubmitRequest) error {
			if step != "intended" {
				return nil
			}
			if tries++; tries > 1 {
				return nil
			}
			_, after := w.editReply(w.slack.messages[1].ts, "new")
			w.m.ReplyEdited(after)
			<-time.After(time.Second) // it is taken in meanwhile
			return &sessions.LockedError{Key: "x"}
		})
		w.reply("old")
		w.advance(time.Minute)
		w.wantTyped("new")
		w.wantPosts() // nothing came too late
	})
}

func TestARepeatedEditOfWhatWasTypedIsNotSaidToBeTooLate(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(failHeld)
		ts := w.reply("old")
		_, after := w.editReply(ts, "new")
		w.handleEdits(after)
		w.agent.setOnStep(nil)
		w.advance(10 * time.Second)
		w.wantTyped("new")
		said := len(w.slack.posted())
		w.handleEdits(after, after)
		w.advance(time.Minute)
		if posts := w.slack.posted(); len(posts) != said {
			t.Errorf("posted %q", posts[said:])
		}
		_, again := w.editReply(ts, "newest")
		w.handleEdits(again, again, after)
		w.advance(time.Minute)
		if posts := w.slack.posted(); len(posts) != said+1 {
			t.Errorf("posted %q; want it said once that the edit came too late", posts[said:])
		}
	})
}

// Slack delivers events out of order: a deletion may be heard before the reply, and the reply again after it.
func TestWhatWasWithdrawnStaysWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		before bool // the reply is heard before it is deleted
		play   func(w *env)
	}{
		"heard later":                       {play: func(*env) {}},
		"heard later, after a restart":      {play: func(w *env) { w.stop(); w.start(); w.wait() }},
		"heard again":                       {before: true, play: func(*env) {}},
		"heard again, after a restart":      {before: true, play: func(w *env) { w.stop(); w.start(); w.wait() }},
		"heard again, with others between":  {before: true, play: func(w *env) { w.replyMany(60) }},
		"heard later, with many in between": {play: func(w *env) { w.replyMany(400); w.m.Connected(true); w.advance(time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, func(w *env) {
				if c.before {
					w.agent.setOnStep(failHeld)
				}
				ts := w.slack.write(ann, "take it back")
				first, second := w.editReply(ts, "take it back v2")
				if c.before {
					w.handleReplies(first)
				}
				w.slack.remove(ts)
				w.m.ReplyDeleted(channel, first.Root, ts)
				w.wait()
				w.agent.setOnStep(nil)
				c.play(w)
				w.handleReplies(first)
				w.handleEdits(second)
				w.advance(time.Minute)
				if slices.ContainsFunc(w.agent.typed, func(text string) bool { return text != "more" }) {
					t.Errorf("typed %q", w.agent.typed)
				}
			})
		})
	}
}

// replyMany writes replies that are heard and typed at once.
func (w *env) replyMany(n int) {
	w.t.Helper()
	for range n {
		w.reply("more")
	}
}

// A reply that was written down to be typed is deleted, and then it is not typed after all.
func TestADeletionOfWhatWasWrittenDownAndNotTypedCounts(t *testing.T) {
	withEnv(t, func(w *env) {
		tries := 0
		w.agent.setOnStep(func(_ *managerRun, step string, _ sessions.SubmitRequest) error {
			if step != "intended" {
				return nil
			}
			if tries++; tries > 1 {
				return nil
			}
			m := w.slack.messages[1]
			w.slack.remove(m.ts)
			w.m.ReplyDeleted(channel, m.root, m.ts)
			<-time.After(time.Second) // it is taken in meanwhile
			return &sessions.LockedError{Key: "x"}
		})
		w.reply("old")
		w.advance(time.Minute)
		w.wantTyped()
		w.wantPosts()
		if got := w.droppedReasons(); !slices.Equal(got, []string{ReasonWithdrawn}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestAQuestionAboutAReplyThatWasDeletedIsClosed(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(failInDoubt)
		ts := w.reply("perhaps")
		w.advance(5 * time.Second)
		root := w.slack.get(ts).root
		w.slack.remove(ts)
		w.m.ReplyDeleted(channel, root, ts)
		w.advance(5 * time.Second)
		w.wantPosts("Deleted by its author")
		if _, buttons := w.slack.buttons(); len(buttons) != 0 {
			t.Errorf("it still has %v", buttons)
		}
	})
}
