package reconcile

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"the-loop/sessions"
)

// fakeScreen is the screen of the one session that there is.
type fakeScreen struct {
	mu       sync.Mutex // guards the fields that follow
	activity sessions.PaneActivity
	view     sessions.View
	reads    int
	handled  int
}

func (f *fakeScreen) ReadActivity(context.Context) (map[string]sessions.PaneActivity, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return map[string]sessions.PaneActivity{"1": f.activity}, nil
}

func (f *fakeScreen) View(context.Context, sessions.ViewRequest) (sessions.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	return f.view, nil
}

func (f *fakeScreen) Sessions() map[string]sessions.Ref {
	return map[string]sessions.Ref{"1": "standing:helper"}
}
func (f *fakeScreen) IsBound(string) bool { return true }
func (f *fakeScreen) HandleScreen(string, sessions.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled++
}

// show changes what the agent's screen shows, and when it had output last.
func (f *fakeScreen) show(s sessions.ViewState, output int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view.State, f.activity.LastOutput = s, output
}

func (f *fakeScreen) counts() (reads, handled int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads, f.handled
}

// readsIn is how often the screen is read in that time.
func (f *fakeScreen) readsIn(d time.Duration) int {
	before, _ := f.counts()
	time.Sleep(d) // of the bubble's time
	synctest.Wait()
	after, _ := f.counts()
	return after - before
}

func TestTheScreenOfAnIdleAgentIsNotReadAgainAndAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeScreen{activity: sessions.PaneActivity{PID: 1, LastOutput: time.Now().Add(-time.Minute).Unix()}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			NewScreenWatcher(f, f, 0).Run(ctx)
		}()
		n := f.readsIn(4 * time.Minute)
		if _, handled := f.counts(); n != 1 || handled != 1 {
			t.Errorf("an idle agent's screen was read %d times in 4 minutes, and handled %d times", n, handled)
		}
		if n := f.readsIn(2 * screenRereadEvery); n != 2 {
			t.Errorf("an idle agent's screen was read %d times in 10 minutes", n)
		}
		f.show("", time.Now().Unix())
		if n := f.readsIn(time.Minute); n != 1 {
			t.Errorf("a screen with output was read %d times", n)
		}
		f.show(sessions.ViewDialog, time.Now().Unix())
		if n := f.readsIn(time.Minute); n < 3 {
			t.Errorf("a screen with a dialog was read %d times in a minute", n)
		}
		stop()
		<-done
	})
}
