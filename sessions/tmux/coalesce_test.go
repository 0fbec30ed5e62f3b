package tmux

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"the-loop/sessions"
)

// hasWaiters reports whether somebody waits for a round that has not begun.
func (s *coalescer[T]) hasWaiters() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next != nil
}

// getWhileBusy opens a round that holds on, and returns what lets it end with how it ended.
func getWhileBusy(t *testing.T, s *coalescer[int]) (end func() (int, error)) {
	t.Helper()
	begun, hold := make(chan struct{}), make(chan struct{})
	var n int
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		n, err = s.get(t.Context(), func(context.Context) (int, error) { close(begun); <-hold; return 1, nil })
	})
	<-begun
	return func() (int, error) { close(hold); wg.Wait(); return n, err }
}

func TestConcurrentCallersShareTheNextResult(t *testing.T) {
	t.Parallel()
	var s coalescer[int]
	end := getWhileBusy(t, &s)
	var asked atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		n, err := s.get(t.Context(), func(context.Context) (int, error) { return 1 + int(asked.Add(1)), nil })
		if n != 2 || err != nil {
			t.Errorf("an answer from before the question: %d, %v", n, err)
		}
	})
	for !s.hasWaiters() {
		runtime.Gosched()
	}
	first, _ := s.join()
	for range 50 {
		if r, opened := s.join(); r != first || opened {
			t.Error("a caller asks for himself")
		}
	}
	if n, err := end(); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wg.Wait()
	if <-first.done; first.result != 2 || asked.Load() != 1 {
		t.Errorf("the answer is %d, asked %d times", first.result, asked.Load())
	}
}

func TestCancelledCallerLeavesTheOthersAResult(t *testing.T) {
	t.Parallel()
	var s coalescer[int]
	end := getWhileBusy(t, &s)
	leaving, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.get(leaving, func(context.Context) (int, error) { return 2, nil }); !errors.Is(err, sessions.ErrTerminalTimeout) {
			t.Errorf("of the one who left: %v", err)
		}
	})
	for !s.hasWaiters() { // the other one has opened the next round
		runtime.Gosched()
	}
	wg.Go(func() {
		if n, err := s.get(t.Context(), func(context.Context) (int, error) { return 3, nil }); n != 3 || err != nil {
			t.Errorf("of the one who stayed: %d, %v", n, err)
		}
	})
	leave()
	if n, err := end(); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wg.Wait()
}
