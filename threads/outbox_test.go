package threads

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/threads/chat"
)

// outboxSizes is how many messages wait, in memory and on disk.
func (w *env) outboxSizes() (memory, disk int) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.root, "outbox", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.m.outbox.Len(), len(files)
}

func (w *env) wantOutbox(n int) {
	w.t.Helper()
	if memory, disk := w.outboxSizes(); memory != n || disk != n {
		w.t.Errorf("%d messages wait in memory and %d on disk; want %d", memory, disk, n)
	}
}

// failedPosts are the reasons in the event log.
func (w *env) failedPosts() (reasons []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Name == EventPostFailed {
			reasons = append(reasons, e.Fields["reason"].(string))
		}
	}
	return reasons
}

func (w *env) notify(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if !w.m.Notify(context.Background(), sid, Notification{Text: text, Buttons: []chat.Button{{Label: "Yes", Action: chat.ActionSend, Value: "x"}}}) {
			w.t.Fatalf("not told: %q", text)
		}
	}
}

// refusePosts has posts refused in the thread of the session that have that text.
func refusePosts(text string, also func(p chat.Post) bool, err error) func(*managerRun, bool, chat.Post) error {
	return func(_ *managerRun, before bool, p chat.Post) error {
		if before && strings.Contains(p.Text, text) && also(p) {
			return err
		}
		return nil
	}
}

func anyPost(chat.Post) bool { return true }

func TestAMessageThatSlackRefusesIsPostedAsAPlainText(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.setOnPost(refusePosts("bad", func(p chat.Post) bool { return !p.Plain }, chat.ErrRefused))
		w.notify("bad blocks", "next")
		w.advance(10 * time.Second)
		w.wantPosts("bad blocks", "next")
		w.wantOutbox(0)
	})
}

func TestAMessageThatSlackRefusesInAnyFormIsDroppedWithAnEvent(t *testing.T) {
	withEnv(t, func(w *env) {
		var tries atomic.Int32
		w.slack.setOnPost(refusePosts("bad", func(chat.Post) bool { tries.Add(1); return true }, chat.ErrRefused))
		w.notify("bad blocks", "next")
		w.advance(10 * time.Second)
		w.wantPosts("next")
		w.wantOutbox(0)
		if got := w.failedPosts(); tries.Load() != 2 || !slices.Equal(got, []string{chat.ErrRefused.Error()}) {
			t.Errorf("%d tries, and the event log says %q", tries.Load(), got)
		}
	})
}

// What Slack says of one thread or of one channel is no reason for others to wait.
func TestAChannelThatTakesNothingHoldsUpNoOther(t *testing.T) {
	withEnv(t, func(w *env) {
		w.announceSecond("id-2", "C2", 0)
		var shut atomic.Bool
		shut.Store(true)
		w.slack.setOnPost(refusePosts("to C2", func(chat.Post) bool { return shut.Load() }, chat.ErrUnavailable))
		w.m.Notify(context.Background(), "id-2", Notification{Text: "to C2"})
		w.wait()
		w.notify("one", "two")
		w.advance(4 * time.Second)
		w.wantPosts("one", "two")
		shut.Store(false)
		w.m.ChannelOpened("C2")
		w.advance(2 * time.Second)
		w.wantPosts("one", "two", "to C2")
	})
}

// Of a session that was deleted nothing is posted any more but that, and that is tried once.
func TestTheOutboxOfADeletedSessionIsEmptied(t *testing.T) {
	for name, refusal := range map[string]error{"refused": chat.ErrRefused, "an archived channel": chat.ErrUnavailable, "in trouble": errors.New("internal_error")} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, func(w *env) {
				w.slack.setOnPost(refusePosts("bad", anyPost, errors.New("internal_error")))
				w.notify("bad one", "two", "three")
				w.advance(10 * time.Second)
				w.wantOutbox(3)
				w.slack.setOnPost(refusePosts("", anyPost, refusal))
				if err := w.m.Unbind(context.Background(), sid); err != nil {
					t.Fatal(err)
				}
				w.advance(time.Minute)
				w.slack.setOnPost(nil)
				w.advance(2 * time.Minute)
				w.wantOutbox(0)
				if got := strings.Join(w.slack.posted(), "|"); strings.Contains(got, "bad") || strings.Contains(got, "two") {
					t.Errorf("posted %q", got)
				}
			})
		})
	}
}

// An earlier version of the bot kept the messages of sessions that it had deleted.
func TestMessagesOfASessionThatIsGoneEndWithTheNextStart(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.setErr(errors.New("away"))
		w.notify("stays")
		w.wait()
		w.stop()
		old := `{"seq":70,"post":{"channel":"C1","root":"1.0","text":"of the past","nonce":"n","session":"gone"}}`
		if err := os.WriteFile(filepath.Join(w.root, "outbox", "000000000070.json"), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		w.slack.setErr(nil)
		w.start()
		w.advance(10 * time.Second)
		w.wantPosts("stays")
		w.wantOutbox(0)
	})
}

// Without its rights the app posts nothing, and asks now and then.
func TestAnAppThatMayPostNothingAsksNowAndThen(t *testing.T) {
	withEnv(t, func(w *env) {
		var tries atomic.Int32
		w.slack.setOnPost(refusePosts("", func(chat.Post) bool { return tries.Add(1) < 10 }, chat.ErrDisabled))
		w.notify("one")
		w.advance(5 * time.Minute)
		if n := tries.Load(); n < 3 || n > 6 {
			t.Errorf("%d tries in five minutes", n)
		}
		w.advance(10 * time.Minute)
		w.wantPosts("one")
	})
}

func TestAnAnnouncementThatSlackRefusesIsAPlainText(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.setOnPost(refusePosts("I am id-2", func(p chat.Post) bool { return !p.Plain }, chat.ErrRefused))
		w.announceSecond("id-2", "C2", 0)
		if !w.m.IsBound("id-2") {
			t.Error("it has no thread")
		}
	})
}
