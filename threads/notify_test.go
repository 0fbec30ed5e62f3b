package threads

import (
	"context"
	"testing"
	"time"

	"the-loop/threads/chat"
)

func TestAThreadIsNotifiedOnceAlsoAcrossARestart(t *testing.T) {
	withEnv(t, func(w *env) {
		ctx := context.Background()
		died := Notification{Text: "It ended.", Once: "ended.1"}
		if !w.m.Notify(ctx, sid, died) || w.m.Notify(ctx, sid, died) || !w.m.WasNotified(ctx, sid, died.Once) {
			t.Error("the first telling is not the only one")
		}
		w.advance(time.Minute)
		w.stop()
		w.start()
		if w.m.Notify(ctx, sid, died) {
			t.Error("told again after a restart")
		}
		if !w.m.Notify(ctx, sid, Notification{Text: "It ended again.", Once: "ended.2"}) || w.m.WasNotified(ctx, sid, died.Once) {
			t.Error("the next one is not told")
		}
		if w.m.Notify(ctx, "nobody", died) {
			t.Error("a session without a thread was told")
		}
		w.advance(time.Minute)
		w.wantPosts("It ended.", "It ended again.")
	})
}

// The process dies between the post and the note that the thread was told.
func TestANotificationThatWasPostedBeforeACrashIsNotPostedAgain(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.setOnPost(func(l *managerRun, before bool, _ chat.Post) error {
			if before {
				return nil
			}
			w.kill(l)
			return context.Canceled
		})
		w.m.Notify(context.Background(), sid, Notification{Text: "It ended.", Once: "ended.1"})
		w.advance(time.Second)
		w.slack.setOnPost(nil)
		w.stop()
		w.start()
		w.m.index.of(sid).Call(context.Background(), func(context.Context) { w.m.index.of(sid).B.LastNotification = "" })
		w.m.Notify(context.Background(), sid, Notification{Text: "It ended.", Once: "ended.1"})
		w.advance(time.Minute)
		w.wantPosts("It ended.")
	})
}

// The process dies between the change of the announcement and the note that it was changed, and then all is as before.
func TestAnAnnouncementThatWasChangedBeforeACrashIsChangedBack(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.onUpdate = w.kill
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _ = w.m.UpdateAnnouncement(ctx, sid, chat.Post{Text: "I am stopped"}) }()
		w.wait()
		cancel()
		w.stop()
		w.slack.onUpdate = nil
		w.start()
		if err := w.m.UpdateAnnouncement(context.Background(), sid, chat.Post{Text: "I am s"}); err != nil || w.slack.messages[0].text != "I am s" {
			t.Errorf("the announcement says %q, %v", w.slack.messages[0].text, err)
		}
	})
}

func TestASessionIsFoundByItsThreadAndItsThreadByTheSession(t *testing.T) {
	withEnv(t, func(w *env) {
		at, root, ok := w.m.ThreadOf(sid)
		if !ok || at != channel {
			t.Fatalf("it is at %s %s, %v", at, root, ok)
		}
		if id, ref, ok := w.m.SessionAt(channel, root); !ok || id != sid || ref != "standing:s" {
			t.Errorf("there is %s %s, %v", id, ref, ok)
		}
		if _, _, ok := w.m.SessionAt(channel, "1.0"); ok {
			t.Error("another thread is ours")
		}
		if err := w.m.UpdateAnnouncement(context.Background(), sid, chat.Post{Text: "I am gone"}); err != nil || w.slack.messages[0].text != "I am gone" {
			t.Errorf("the announcement says %q, %v", w.slack.messages[0].text, err)
		}
		if err := w.m.UpdateAnnouncement(context.Background(), "nobody", chat.Post{Text: "x"}); err != nil {
			t.Error(err)
		}
	})
}
