package core_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/harness/smallagent"
)

// runAsDeliverer makes the test binary a process that delivers events: the JSON of a courier.
const runAsDeliverer = "SESSIONS_TEST_COURIER"

// delivererReady is what it prints before the first.
const delivererReady = "ready"

// delivererArgs is what such a process works on.
type delivererArgs struct {
	Dir  string
	From int // the first event
	To   int
	Seed uint64
}

// runDeliverer prints what became of each event: its number, and an outcome or "doubt".
func runDeliverer(order string) int {
	var q delivererArgs
	if err := json.Unmarshal([]byte(order), &q); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	core, err := secondCore(q.Dir, core.Config{RemainOnExit: true, Resume: true, Probe: 50 * time.Millisecond, KillGrace: time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Println(delivererReady)
	for n := q.From; n < q.To; n++ {
		fmt.Println(n, deliverUntilKnown(context.Background(), core, q.Seed, n))
	}
	return 0
}

// deliverUntilKnown delivers an event until it is known what became of it: with the same id whenever nothing arrived.
func deliverUntilKnown(ctx context.Context, core *core.Core, seed uint64, n int) string {
	q := sessions.DeliverRequest{Ref: item, DeliveryID: fmt.Sprint("d", n), Text: stressText(seed, n), Wait: time.Minute}
	for {
		d, err := core.Deliver(ctx, q)
		switch {
		case err == nil:
			return string(d.Row.Outcome)
		case errors.Is(err, sessions.ErrInDoubt):
			return "doubt"
		case ctx.Err() != nil:
			return err.Error()
		}
	}
}

// stressText is an event of mixed size that begins with its number.
func stressText(seed uint64, n int) string {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	sizes := []int{0, 20, 200, 2000, 20_000}
	if n%100 == 99 {
		sizes = []int{150_000} // none that an agent could be started with
	}
	var b strings.Builder
	fmt.Fprintf(&b, "event %d.", n)
	for b.Len() < sizes[random.IntN(len(sizes))] {
		b.WriteString([]string{" word", " \"quoted\" $x `y`", "\n", " 日本語", "\tTAB"}[random.IntN(5)])
	}
	return b.String()
}

// stressTest keeps what became of each event, and in which conversations.
type stressTest struct {
	*env
	seed     uint64
	outcomes map[int]string
}

func newStressTest(t *testing.T) *stressTest {
	s := &stressTest{env: newEnv(t, nil), seed: rand.Uint64(), outcomes: map[int]string{}}
	s.reconfigure(func(c *core.Config) { c.Probe = 50 * time.Millisecond })
	s.register(item)
	t.Logf("seed %d", s.seed)
	return s
}

// taken are the numbers of the events that agents took, in the order in which they did, over all conversations.
func (s *stressTest) acceptedNumbers() (numbers []int) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "agent", "*.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all []smallagent.Entry
	for _, file := range files {
		entries, _, err := smallagent.ReadTranscript(file, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, entries...)
	}
	slices.SortStableFunc(all, func(a, b smallagent.Entry) int { return a.At.Compare(b.At) })
	for _, e := range all {
		if e.Type != smallagent.TypeUser || e.How == smallagent.HowPrompt && strings.HasPrefix(e.Text, "You are the session") {
			continue // what a fresh agent is told before an event that is too long to be its first message
		}
		var n int
		if _, err := fmt.Sscanf(e.Text, "event %d.", &n); err != nil {
			s.t.Errorf("the agent took something else: %.100q", e.Text)
		}
		if sessions.Fingerprint(e.Text) != sessions.Fingerprint(sessions.Clean(stressText(s.seed, n))) {
			s.t.Errorf("event %d arrived as %.100q", n, e.Text)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// check fails unless every event was processed once or reported, in order.
func (s *stressTest) check(n int) {
	s.t.Helper()
	numbers := s.acceptedNumbers()
	if !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		s.t.Errorf("the agent took %v", numbers)
	}
	kinds := map[string]int{}
	for i := range n {
		outcome := s.outcomes[i]
		kinds[outcome]++
		switch outcome {
		case "doubt":
		case string(sessions.OutcomeDelivered), string(sessions.OutcomeResumed), string(sessions.OutcomeStarted), string(sessions.OutcomeRepeated):
			if _, took := slices.BinarySearch(numbers, i); !took {
				s.t.Errorf("event %d is %s, and no agent took it", i, outcome)
			}
		default:
			s.t.Errorf("event %d: %q", i, outcome)
		}
	}
	s.t.Logf("%d events: %v; %d taken", n, kinds, len(numbers))
	if n >= 100 && kinds["doubt"] > n/2 {
		s.t.Error("too many are in doubt")
	}
}

// stressSize is how many events there are.
func stressSize(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// The pane is killed at random moments while events of mixed size come.
func TestEveryEventIsProcessedOnceOrReportedWhilePanesAreKilled(t *testing.T) {
	t.Parallel()
	s := newStressTest(t)
	n := stressSize(1000, 40)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.killPanes(ctx) })
	for i := range n {
		s.outcomes[i] = deliverUntilKnown(t.Context(), s.Core, s.seed, i)
	}
	stop()
	wg.Wait()
	s.check(n)
}

// killPanes kills the session's agent at random moments until ctx ends.
func (s *stressTest) killPanes(ctx context.Context) {
	for {
		timer := time.NewTimer(rand.N(400 * time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		panes, err := s.tmux.Panes(context.WithoutCancel(ctx))
		if err != nil {
			s.t.Error(err)
		}
		for _, p := range panes {
			if !p.Dead && p.PID > 0 {
				_ = syscall.Kill(p.PID, syscall.SIGKILL) // one that has just ended needs none
			}
		}
	}
}

// The process that delivers is killed at random moments, and another one brings the same event again.
func TestEveryEventIsProcessedOnceOrReportedWhileDeliverersAreKilled(t *testing.T) {
	t.Parallel()
	s := newStressTest(t)
	n := stressSize(200, 12)
	life := 50 * time.Millisecond
	for next := 0; next < n; {
		before := next
		if next = s.runDelivererFor(t.Context(), next, n, rand.N(life)); next-before > 1 {
			life = 50 * time.Millisecond
		} else {
			life = min(life*5/4, 10*time.Second) // on a busy machine nothing would come to its end
		}
	}
	s.check(n)
}

// runDelivererFor has a process bring events, kills it after a while, and returns which event is the next.
func (s *stressTest) runDelivererFor(ctx context.Context, from, to int, life time.Duration) int {
	s.t.Helper()
	out := s.startDeliverer(ctx, from, to)
	out.lines.Scan() // it is ready
	end := time.AfterFunc(life, func() { _ = out.cmd.Process.Kill() })
	defer end.Stop()
	next := from
	for out.lines.Scan() {
		var n int
		var outcome string
		if _, err := fmt.Sscan(out.lines.Text(), &n, &outcome); err != nil {
			s.t.Errorf("%q: %v", out.lines.Text(), err)
		}
		s.outcomes[n] = outcome
		next = n + 1
	}
	if err := out.cmd.Wait(); err == nil && next != to {
		s.t.Errorf("it ended at %d of %d", next, to)
	}
	return next
}

// delivererProcess is a courier at work.
type delivererProcess struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func (s *stressTest) startDeliverer(ctx context.Context, from, to int) delivererProcess {
	s.t.Helper()
	order, err := json.Marshal(delivererArgs{Dir: s.dir, From: from, To: to, Seed: s.seed})
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), runAsDeliverer+"="+string(order))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return delivererProcess{cmd, bufio.NewScanner(out)}
}

// Two processes bring the same events at the same time.
func TestAnEventThatTwoProcessesDeliverAtOnceIsProcessedOnce(t *testing.T) {
	t.Parallel()
	s := newStressTest(t)
	n := stressSize(100, 10)
	var mu sync.Mutex
	processed, repeated := map[int]int{}, map[int]int{}
	var wg sync.WaitGroup
	for range 2 {
		c := s.startDeliverer(t.Context(), 0, n)
		wg.Go(func() {
			c.lines.Scan() // it is ready
			for c.lines.Scan() {
				var i int
				var outcome string
				_, _ = fmt.Sscan(c.lines.Text(), &i, &outcome)
				mu.Lock()
				s.outcomes[i] = outcome
				if outcome == string(sessions.OutcomeRepeated) {
					repeated[i]++
				} else {
					processed[i]++
				}
				mu.Unlock()
			}
			if err := c.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		if processed[i] != 1 || repeated[i] != 1 {
			t.Errorf("event %d was processed %d times, repeated %d", i, processed[i], repeated[i])
		}
	}
	s.check(n)
}
