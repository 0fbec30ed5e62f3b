package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"the-loop/sessions"
)

// fakeScreen is the screen of the one session that there is.
type fakeScreen struct {
	activity sessions.PaneActivity
	view     sessions.View
	reads    int
	handled  int
}

func (f *fakeScreen) ReadActivity(context.Context) (map[string]sessions.PaneActivity, error) {
	return map[string]sessions.PaneActivity{"1": f.activity}, nil
}

func (f *fakeScreen) View(context.Context, sessions.ViewRequest) (sessions.View, error) {
	f.reads++
	return f.view, nil
}

func (f *fakeScreen) Sessions() map[string]sessions.Ref {
	return map[string]sessions.Ref{"1": "standing:helper"}
}
func (f *fakeScreen) IsBound(string) bool                { return true }
func (f *fakeScreen) HandleScreen(string, sessions.View) { f.handled++ }

// readsIn is how often the screen is read in that time.
func (f *fakeScreen) readsIn(d time.Duration) int {
	before := f.reads
	time.Sleep(d) // of the bubble's time
	synctest.Wait()
	return f.reads - before
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
		if n := f.readsIn(4 * time.Minute); n != 1 || f.handled != 1 {
			t.Errorf("an idle agent's screen was read %d times in 4 minutes, and handled %d times", n, f.handled)
		}
		if n := f.readsIn(2 * screenRereadEvery); n != 2 {
			t.Errorf("an idle agent's screen was read %d times in 10 minutes", n)
		}
		f.activity.LastOutput = time.Now().Unix()
		if n := f.readsIn(time.Minute); n != 1 {
			t.Errorf("a screen with output was read %d times", n)
		}
		f.view.State = sessions.ViewDialog
		f.activity.LastOutput++
		if n := f.readsIn(time.Minute); n < 3 {
			t.Errorf("a screen with a dialog was read %d times in a minute", n)
		}
		stop()
		<-done
	})
}
