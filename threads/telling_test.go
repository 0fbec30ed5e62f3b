package threads

import (
	"context"
	"testing"
	"time"
)

func TestAThreadIsToldOnceAlsoAcrossARestart(t *testing.T) {
	run(t, func(w *world) {
		ctx := context.Background()
		died := Telling{Text: "It ended.", Once: "ended.1"}
		if !w.m.Tell(ctx, sid, died) || w.m.Tell(ctx, sid, died) || !w.m.Knows(ctx, sid, died.Once) {
			t.Error("the first telling is not the only one")
		}
		w.after(time.Minute)
		w.stop()
		w.start()
		if w.m.Tell(ctx, sid, died) {
			t.Error("told again after a restart")
		}
		if !w.m.Tell(ctx, sid, Telling{Text: "It ended again.", Once: "ended.2"}) || w.m.Knows(ctx, sid, died.Once) {
			t.Error("the next one is not told")
		}
		if w.m.Tell(ctx, "nobody", died) {
			t.Error("a session without a thread was told")
		}
		w.after(time.Minute)
		w.wantPosts("It ended.", "It ended again.")
	})
}

// The process dies between the post and the note that the thread was told.
func TestATellingThatWasPostedBeforeACrashIsNotPostedAgain(t *testing.T) {
	run(t, func(w *world) {
		w.slack.hook(func(l *life, before bool, _ Post) error {
			if before {
				return nil
			}
			w.kill(l)
			return context.Canceled
		})
		w.m.Tell(context.Background(), sid, Telling{Text: "It ended.", Once: "ended.1"})
		w.after(time.Second)
		w.slack.hook(nil)
		w.stop()
		w.start()
		w.m.of(sid).call(context.Background(), func(context.Context) { w.m.of(sid).b.Told = "" })
		w.m.Tell(context.Background(), sid, Telling{Text: "It ended.", Once: "ended.1"})
		w.after(time.Minute)
		w.wantPosts("It ended.")
	})
}

// The process dies between the change of the announcement and the note that it was changed, and then all is as before.
func TestAnAnnouncementThatWasChangedBeforeACrashIsChangedBack(t *testing.T) {
	run(t, func(w *world) {
		w.slack.onUpdate = w.kill
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _ = w.m.Show(ctx, sid, Post{Text: "I am stopped"}) }()
		w.settle()
		cancel()
		w.stop()
		w.slack.onUpdate = nil
		w.start()
		if err := w.m.Show(context.Background(), sid, Post{Text: "I am s"}); err != nil || w.slack.messages[0].text != "I am s" {
			t.Errorf("the announcement says %q, %v", w.slack.messages[0].text, err)
		}
	})
}

func TestASessionIsFoundByItsThreadAndItsThreadByTheSession(t *testing.T) {
	run(t, func(w *world) {
		at, root, ok := w.m.Where(sid)
		if !ok || at != channel {
			t.Fatalf("it is at %s %s, %v", at, root, ok)
		}
		if id, ref, ok := w.m.At(channel, root); !ok || id != sid || ref != "standing:s" {
			t.Errorf("there is %s %s, %v", id, ref, ok)
		}
		if _, _, ok := w.m.At(channel, "1.0"); ok {
			t.Error("another thread is ours")
		}
		if err := w.m.Show(context.Background(), sid, Post{Text: "I am gone"}); err != nil || w.slack.messages[0].text != "I am gone" {
			t.Errorf("the announcement says %q, %v", w.slack.messages[0].text, err)
		}
		if err := w.m.Show(context.Background(), "nobody", Post{Text: "x"}); err != nil {
			t.Error(err)
		}
	})
}
