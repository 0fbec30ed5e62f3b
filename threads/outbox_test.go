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
)

// inOutbox is how many messages wait, in memory and on disk.
func (w *world) inOutbox() (memory, disk int) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.root, "outbox", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.m.outbox.waiting(), len(files)
}

func (w *world) wantOutbox(n int) {
	w.t.Helper()
	if memory, disk := w.inOutbox(); memory != n || disk != n {
		w.t.Errorf("%d messages wait in memory and %d on disk; want %d", memory, disk, n)
	}
}

// failedPosts are the reasons in the event log.
func (w *world) failedPosts() (reasons []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Name == EventPostFailed {
			reasons = append(reasons, e.Fields["reason"].(string))
		}
	}
	return reasons
}

func (w *world) tells(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if !w.m.Tell(context.Background(), sid, Telling{Text: text, Buttons: []Button{{Label: "Yes", Action: ActionSend, Value: "x"}}}) {
			w.t.Fatalf("not told: %q", text)
		}
	}
}

// refusing has posts refused in the thread of the session that have that text.
func refusing(text string, also func(p Post) bool, err error) func(*life, bool, Post) error {
	return func(_ *life, before bool, p Post) error {
		if before && strings.Contains(p.Text, text) && also(p) {
			return err
		}
		return nil
	}
}

func always(Post) bool { return true }

func TestAMessageThatSlackRefusesIsPostedAsAPlainText(t *testing.T) {
	run(t, func(w *world) {
		w.slack.hook(refusing("bad", func(p Post) bool { return !p.Plain }, ErrRefused))
		w.tells("bad blocks", "next")
		w.after(10 * time.Second)
		w.wantPosts("bad blocks", "next")
		w.wantOutbox(0)
	})
}

func TestAMessageThatSlackRefusesInAnyFormIsDroppedWithAnEvent(t *testing.T) {
	run(t, func(w *world) {
		var tries atomic.Int32
		w.slack.hook(refusing("bad", func(Post) bool { tries.Add(1); return true }, ErrRefused))
		w.tells("bad blocks", "next")
		w.after(10 * time.Second)
		w.wantPosts("next")
		w.wantOutbox(0)
		if got := w.failedPosts(); tries.Load() != 2 || !slices.Equal(got, []string{ErrRefused.Error()}) {
			t.Errorf("%d tries, and the event log says %q", tries.Load(), got)
		}
	})
}

// What Slack says of one thread or of one channel is no reason for others to wait.
func TestAChannelThatTakesNothingHoldsUpNoOther(t *testing.T) {
	run(t, func(w *world) {
		w.second("id-2", "C2", 0)
		var shut atomic.Bool
		shut.Store(true)
		w.slack.hook(refusing("to C2", func(Post) bool { return shut.Load() }, ErrUnavailable))
		w.m.Tell(context.Background(), "id-2", Telling{Text: "to C2"})
		w.settle()
		w.tells("one", "two")
		w.after(4 * time.Second)
		w.wantPosts("one", "two")
		shut.Store(false)
		w.m.ChannelOpened("C2")
		w.after(2 * time.Second)
		w.wantPosts("one", "two", "to C2")
	})
}

// Of a session that was deleted nothing is posted any more but that, and that is tried once.
func TestTheOutboxOfADeletedSessionIsEmptied(t *testing.T) {
	for name, refusal := range map[string]error{"refused": ErrRefused, "an archived channel": ErrUnavailable, "in trouble": errors.New("internal_error")} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.slack.hook(refusing("bad", always, errors.New("internal_error")))
				w.tells("bad one", "two", "three")
				w.after(10 * time.Second)
				w.wantOutbox(3)
				w.slack.hook(refusing("", always, refusal))
				if err := w.m.Unbind(context.Background(), sid); err != nil {
					t.Fatal(err)
				}
				w.after(time.Minute)
				w.slack.hook(nil)
				w.after(2 * time.Minute)
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
	run(t, func(w *world) {
		w.slack.fail(errors.New("away"))
		w.tells("stays")
		w.settle()
		w.stop()
		old := `{"seq":70,"post":{"channel":"C1","root":"1.0","text":"of the past","nonce":"n","session":"gone"}}`
		if err := os.WriteFile(filepath.Join(w.root, "outbox", "000000000070.json"), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		w.slack.fail(nil)
		w.start()
		w.after(10 * time.Second)
		w.wantPosts("stays")
		w.wantOutbox(0)
	})
}

// Without its rights the app posts nothing, and asks now and then.
func TestAnAppThatMayPostNothingAsksNowAndThen(t *testing.T) {
	run(t, func(w *world) {
		var tries atomic.Int32
		w.slack.hook(refusing("", func(Post) bool { return tries.Add(1) < 10 }, ErrDisabled))
		w.tells("one")
		w.after(5 * time.Minute)
		if n := tries.Load(); n < 3 || n > 6 {
			t.Errorf("%d tries in five minutes", n)
		}
		w.after(10 * time.Minute)
		w.wantPosts("one")
	})
}

func TestAnAnnouncementThatSlackRefusesIsAPlainText(t *testing.T) {
	run(t, func(w *world) {
		w.slack.hook(refusing("I am id-2", func(p Post) bool { return !p.Plain }, ErrRefused))
		w.second("id-2", "C2", 0)
		if !w.m.Bound("id-2") {
			t.Error("it has no thread")
		}
	})
}
