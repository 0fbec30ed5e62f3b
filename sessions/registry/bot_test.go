package registry

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

func TestSecondBotIsRefusedNamingTheFirst(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	bot := startChild(t, roleBot, r.root)
	_, err := r.AcquireBot(t.Context(), BotInfo{})
	var held *BotHeldError
	if !errors.As(err, &held) {
		t.Fatalf("error %v, want a BotHeldError", err)
	}
	if held.PID != bot.Process.Pid || held.App != "A1" || time.Since(held.Started) > time.Minute {
		t.Errorf("held by %+v, want process %d", *held, bot.Process.Pid)
	}
	for _, part := range []string{r.root, "A1"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	bot.finish(t)
	release, err := r.AcquireBot(t.Context(), BotInfo{})
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	release()
}

func TestBotIsAliveAsLongAsItHasTheLock(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	bot := startChild(t, roleBot, r.root)
	state, alive, err := r.BotRunning()
	if err != nil || !alive || state.PID != bot.Process.Pid || state.Connections != 1 {
		t.Errorf("running: %+v, %v, %v", state, alive, err)
	}
	bot.kill()
	state, alive, err = r.BotRunning()
	if err != nil || alive || state.PID != bot.Process.Pid {
		t.Errorf("killed: %+v, %v, %v; want its last words and not alive", state, alive, err)
	}
}

func TestStateOfABotBeforeIsNotThatOfThisOne(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	if err := r.WriteBot(BotState{PID: 1 << 30, App: "A0", Connected: true}); err != nil {
		t.Fatal(err)
	}
	started := time.Now().UTC()
	release, err := r.AcquireBot(t.Context(), BotInfo{Started: started, App: "A1"})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	want := BotState{PID: os.Getpid(), App: "A1", Started: started}
	got, alive, err := r.BotRunning()
	if err != nil || !alive {
		t.Fatalf("%v, %v", alive, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want.Team, want.Connected, want.LastFrame, want.Written = "T1", true, started, started
	want.ConfigError = "cli-config.yaml:3: authorizedUsers"
	want.Unread, want.Problem = 2, "ratelimited"
	if err := r.WriteBot(want); err != nil {
		t.Fatal(err)
	}
	got, _, err = r.BotRunning()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadableStateIsSaidAndTheLockIsStillAsked(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	if err := r.WriteBot(BotState{PID: 1}); err != nil {
		t.Fatal(err)
	}
	write(t, r.botFile(), "{")
	var bad *sessions.UnreadableError
	if _, alive, err := r.BotRunning(); alive || !errors.As(err, &bad) {
		t.Errorf("no bot: %v, %v", alive, err)
	}
	release, err := r.AcquireBot(t.Context(), BotInfo{})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if state, alive, err := r.BotRunning(); !alive || state.PID != os.Getpid() || err != nil {
		t.Errorf("a bot: %+v, %v, %v", state, alive, err)
	}
}

// Asking whether a bot runs takes the lock for a moment. It must not cost a bot its start.
func TestAskingForTheBotDoesNotKeepOneFromStarting(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, _, err := r.BotRunning(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		release, err := r.AcquireBot(t.Context(), BotInfo{})
		if err != nil {
			t.Error(err)
			continue
		}
		release()
	}
	close(stop)
	wg.Wait()
}
