package threads

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/binding"
	"the-loop/threads/relay"
)

// A full disk: replies wait, with a receipt and one message in the thread that says so, and none of that needs the disk. When
// there is room again each is typed once, and what is on disk is what is true.
func TestOnAFullDiskRepliesWaitAndTheThreadIsTold(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.diskFull = true })
		first := w.reply("one")
		second := w.reply("two")
		w.advance(10 * time.Second)
		w.wantTyped()
		w.wantReceipt(first, "hourglass")
		w.wantReceipt(second, "eyes")
		w.wantPosts("no space left on device")
		if got := w.m.Status().Unstored; got != syscall.ENOSPC.Error() {
			t.Errorf("the status says %q", got)
		}
		w.advance(5 * time.Minute)
		w.wantPosts("no space left on device")
		w.locked(func() { w.diskFull = false })
		w.advance(10 * time.Second)
		w.wantTyped("one", "two")
		w.wantReceipt(first, "white_check_mark")
		w.wantReceipt(second, "white_check_mark")
		w.wantPosts("no space left on device")
		w.wantOutbox(0)
		if got := w.m.Status().Unstored; got != "" {
			t.Errorf("the status says %q", got)
		}
		if e := bindingFile(t, w).Replies[second]; e.Outcome != binding.OutcomeAccepted {
			t.Errorf("on disk it is %+v", e)
		}
	})
}

// What was typed before the disk was full and settled after it is stored when there is room, without anything else happening.
func TestWhatCouldNotBeStoredIsStoredWhenThereIsRoom(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = time.Second
		ts := w.reply("one")
		w.locked(func() { w.diskFull = true })
		w.advance(10 * time.Second)
		w.wantReceipt(ts, "white_check_mark")
		if e := bindingFile(t, w).Replies[ts]; e.State != binding.StateInflight {
			t.Errorf("on disk it is %+v", e)
		}
		w.locked(func() { w.diskFull = false })
		w.advance(5 * time.Second)
		if e := bindingFile(t, w).Replies[ts]; e.State != binding.StateSettled || !e.IsComplete() {
			t.Errorf("on disk it is %+v", e)
		}
	})
}

// The bot dies while the disk is full: nothing was typed, so that nothing is lost, doubled or in doubt.
func TestABotThatDiesOnAFullDiskTypesOnceAfterwards(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.diskFull = true })
		w.reply("one")
		w.advance(10 * time.Second)
		w.stop()
		w.locked(func() { w.diskFull = false })
		w.start()
		w.advance(10 * time.Second)
		w.wantTyped("one")
	})
}

// The answer of an agent is posted once, though it cannot be stored.
func TestAnAnswerIsPostedOnceOnAFullDisk(t *testing.T) {
	withEnvSetup(t, func(w *env) { w.answerMode = relay.AnswersAll }, func(w *env) {
		w.locked(func() { w.diskFull = true })
		w.agent.addMessage("said", true)
		for range 5 {
			if _, err := w.m.Relay(context.Background(), sid); !binding.IsDiskFull(err) {
				t.Errorf("relayed: %v", err)
			}
			w.advance(5 * time.Second)
		}
		w.locked(func() { w.diskFull = false })
		if _, err := w.m.Relay(context.Background(), sid); err != nil {
			t.Error(err)
		}
		w.advance(5 * time.Second)
		w.wantPosts("said")
		w.wantOutbox(0)
	})
}

// A full disk may also show only when a session's own folder or record is written.
func TestAReplyWaitsWhereverTheDiskIsFull(t *testing.T) {
	full := &sessionError{errors.Join(errors.New("write the record"), syscall.EDQUOT)}
	withEnv(t, func(w *env) {
		var broken atomic.Bool
		broken.Store(true)
		w.agent.setOnStep(func(_ *managerRun, step string, _ sessions.SubmitRequest) error {
			if broken.Load() && step == "look" {
				return full
			}
			return nil
		})
		w.reply("one")
		w.advance(time.Minute)
		w.wantTyped()
		w.wantPosts("Make room on it")
		broken.Store(false)
		w.advance(5 * time.Second)
		w.wantTyped("one")
	})
}

type sessionError struct{ error }

func (e *sessionError) Unwrap() error { return e.error }

func TestTheReasonNamesNoPath(t *testing.T) {
	t.Parallel()
	s := binding.NewDisk(slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), strings.Repeat("x", 300))
	err := s.Save(path, func() error { return os.WriteFile(path, nil, 0o600) })
	if err == nil || s.Problem() != syscall.ENAMETOOLONG.Error() {
		t.Errorf("%v: %q", err, s.Problem())
	}
}
