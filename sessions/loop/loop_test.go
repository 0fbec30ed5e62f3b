package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"the-loop/sessions/loop"
)

func TestRunRestsBetweenSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		woken := make(chan struct{}, 1)
		began := time.Now()
		var at []time.Duration
		rests := []time.Duration{0, time.Second, -1, time.Hour, time.Hour}
		time.AfterFunc(2*time.Second, func() { loop.Wake(woken) })
		time.AfterFunc(3*time.Second, cancel)
		loop.Run(ctx, woken, func(context.Context) time.Duration {
			at = append(at, time.Since(began))
			return rests[len(at)-1]
		})
		want := []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second}
		for i := range max(len(at), len(want)) {
			if i >= len(at) || i >= len(want) || at[i] != want[i] {
				t.Fatalf("steps at %v, want %v", at, want)
			}
		}
		if past := time.Since(began); past != 3*time.Second {
			t.Errorf("it ended after %v", past)
		}
	})
}

func TestRunDoesNothingWhenItsContextHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	loop.Run(ctx, nil, func(context.Context) time.Duration { t.Error("a step"); return 0 })
	if loop.Sleep(ctx, time.Hour) {
		t.Error("it slept")
	}
}

func TestSleepTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !loop.Sleep(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("it took %v", time.Since(began))
		}
	})
}

func TestWakesBeforeTheWaitAreOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		woken := make(chan struct{}, 1)
		loop.Wake(woken)
		loop.Wake(woken)
		if !loop.Wait(t.Context(), woken, time.Hour) || time.Since(began) != 0 {
			t.Error("it was not woken")
		}
		if !loop.Wait(t.Context(), woken, time.Hour) || time.Since(began) != time.Hour {
			t.Error("it was woken twice")
		}
	})
}
