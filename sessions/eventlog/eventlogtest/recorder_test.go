package eventlogtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"the-loop/sessions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitForSeesEveryEvent(t *testing.T) {
	t.Parallel()
	var r Recorder
	const emitters, each, waiters = 4, 50, 3
	var wg sync.WaitGroup
	for n := range waiters {
		wg.Go(func() {
			want := emitters * each * (n + 1) / waiters
			if err := r.WaitFor(t.Context(), func(e []sessions.Event) bool { return len(e) >= want }); err != nil {
				t.Error(err)
			}
		})
	}
	for range emitters {
		wg.Go(func() {
			for range each {
				r.Emit(t.Context(), sessions.Event{Name: "x"})
			}
		})
	}
	wg.Wait()
	if got := len(r.Events()); got != emitters*each {
		t.Errorf("%d events", got)
	}
}

func TestWaitForNamesWhatThereIsWhenItGivesUp(t *testing.T) {
	t.Parallel()
	var r Recorder
	fields := map[string]any{"k": "v"}
	r.Emit(t.Context(), sessions.Event{Name: "a", Fields: fields})
	r.Emit(t.Context(), sessions.Event{Name: "b"})
	fields["k"] = "changed"
	if got := r.Events()[0].Fields["k"]; got != "v" {
		t.Errorf("the field became %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.WaitFor(ctx, func(e []sessions.Event) bool { return len(e) > 2 })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("error %v", err)
	}
	if err := r.WaitFor(ctx, func(e []sessions.Event) bool { return len(e) == 2 }); err != nil {
		t.Errorf("what is there already: %v", err)
	}
	if want := []string{"a", "b"}; !slices.Equal(r.Names(), want) {
		t.Errorf("names %v", r.Names())
	}
}
