package bot

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// statusRecorder are the states that a reporter told, with when.
type statusRecorder struct {
	mu      sync.Mutex // guards the fields that follow
	current Status
	sent    []Status
	sentAt  []time.Time
}

func (s *statusRecorder) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *statusRecorder) send(r Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.sentAt = append(s.sent, r), append(s.sentAt, time.Now())
}

func (s *statusRecorder) change(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.current)
}

// last is the last state that was told, and how many were.
func (s *statusRecorder) last() (Status, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[len(s.sent)-1], len(s.sent)
}

// runReporter runs a reporter in a bubble's time.
func runReporter(t *testing.T, test func(s *statusRecorder, r *statusReporter)) {
	synctest.Test(t, func(t *testing.T) {
		s := new(statusRecorder)
		r := newStatusReporter(s.status, s.send)
		var wg sync.WaitGroup
		wg.Go(func() { r.run(t.Context()) })
		t.Cleanup(wg.Wait)
		<-time.After(statusMinGap)
		synctest.Wait()
		test(s, r)
	})
}

func TestAStatusChangeIsSentAtOnce(t *testing.T) {
	t.Parallel()
	runReporter(t, func(s *statusRecorder, r *statusReporter) {
		s.change(func(now *Status) { now.Socket.Connected = true })
		r.wake()
		synctest.Wait() // no time passes
		if last, n := s.last(); !last.Socket.Connected || n != 2 {
			t.Errorf("told %d times, the last %+v", n, last)
		}
		s.change(func(now *Status) { now.Threads.Unposted = 3 }) // nobody says so
		<-time.After(statusCheckEvery + statusMinGap)
		synctest.Wait()
		if last, _ := s.last(); last.Threads.Unposted != 3 {
			t.Errorf("the last is %+v", last)
		}
	})
}

func TestABurstOfStatusChangesIsSentInFewWrites(t *testing.T) {
	t.Parallel()
	runReporter(t, func(s *statusRecorder, r *statusReporter) {
		for i := range 2000 {
			s.change(func(now *Status) { now.Socket.Connected, now.Threads.Bound = i%2 > 0, i })
			r.wake()
			<-time.After(time.Millisecond)
		}
		<-time.After(statusMinGap)
		synctest.Wait()
		if last, n := s.last(); last.Threads.Bound != 1999 || !last.Socket.Connected || n > 12 {
			t.Errorf("told %d times in two seconds, the last %+v", n, last)
		}
	})
}

func TestAnUnchangedStatusIsSentEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	runReporter(t, func(s *statusRecorder, _ *statusReporter) {
		for range 600 {
			s.change(func(now *Status) { now.Socket.LastFrame = time.Now() })
			<-time.After(100 * time.Millisecond)
		}
		if _, n := s.last(); n < 11 || n > 14 {
			t.Errorf("told %d times in a minute", n)
		}
	})
}
