package bot

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toldStates are the states that a reporter told, with when.
type toldStates struct {
	mu   sync.Mutex // guards the fields that follow
	now  Status
	told []Status
	at   []time.Time
}

func (s *toldStates) state() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *toldStates) tell(r Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told, s.at = append(s.told, r), append(s.at, time.Now())
}

func (s *toldStates) change(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
}

// last is the last state that was told, and how many were.
func (s *toldStates) last() (Status, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[len(s.told)-1], len(s.told)
}

// reporting runs a reporter in a bubble's time.
func reporting(t *testing.T, test func(s *toldStates, r *statusReporter)) {
	synctest.Test(t, func(t *testing.T) {
		s := new(toldStates)
		r := newStatusReporter(s.state, s.tell)
		var wg sync.WaitGroup
		wg.Go(func() { r.run(t.Context()) })
		t.Cleanup(wg.Wait)
		<-time.After(statusMinGap)
		synctest.Wait()
		test(s, r)
	})
}

func TestAChangeOfTheStateIsToldAtOnce(t *testing.T) {
	t.Parallel()
	reporting(t, func(s *toldStates, r *statusReporter) {
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

func TestABurstOfChangesIsToldInAFewWritesAndItsEndIsTold(t *testing.T) {
	t.Parallel()
	reporting(t, func(s *toldStates, r *statusReporter) {
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

func TestASignOfLifeAloneIsToldEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	reporting(t, func(s *toldStates, _ *statusReporter) {
		for range 600 {
			s.change(func(now *Status) { now.Socket.LastFrame = time.Now() })
			<-time.After(100 * time.Millisecond)
		}
		if _, n := s.last(); n < 11 || n > 14 {
			t.Errorf("told %d times in a minute", n)
		}
	})
}
