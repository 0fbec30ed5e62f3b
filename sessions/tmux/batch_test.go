package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/tmux/tmuxtest"
)

// runTogether runs n calls whose lines wait for each other, so that they share clients.
func (f *tmuxEnv) runTogether(n int, do func(i int)) {
	f.t.Helper()
	waiting, release := f.HoldClients()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	tmuxtest.Await(f.t, "all lines to wait", func() bool { return waiting() == n })
	release()
	wg.Wait()
}

func TestSpawnsThatShareAClientFailOneByOne(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	f.spawn("taken")
	const n = 70 // more than one client takes
	panes, errs := make([]sessions.Pane, n), make([]error, n)
	requests := make([]sessions.Spawn, n)
	for i := range n {
		requests[i] = f.spawnRequest(fmt.Sprint("s", i))
		switch requests[i].Argv = []string{"sleep", "1000"}; i % 10 {
		case 0: // also of the first, with nothing before it
			requests[i].Name = "taken"
		case 7:
			requests[i].Name = requests[i-1].Name // taken by its neighbour
		}
	}
	f.runTogether(n, func(i int) { panes[i], errs[i] = f.Spawn(t.Context(), requests[i]) })
	made := map[string]int{}
	for i, err := range errs {
		switch {
		case i%10 == 0 && !errors.Is(err, sessions.ErrNameTaken):
			t.Errorf("%d: %v", i, err)
		case i%10 == 6 || i%10 == 7:
			if err == nil {
				made[requests[i].Name]++
			} else if !errors.Is(err, sessions.ErrNameTaken) || errors.Is(err, sessions.ErrInDoubt) {
				t.Errorf("%d: %v", i, err)
			}
		case i%10 != 0 && (err != nil || panes[i].Mark != requests[i].Mark || panes[i].SessionName != requests[i].Name):
			t.Errorf("%d: %+v, %v", i, panes[i], err)
		}
	}
	for name, times := range made {
		if times != 1 {
			t.Errorf("%s was made %d times", name, times)
		}
	}
	if all, err := f.Panes(t.Context()); err != nil || len(all) != 1+n-n/10-n/10 || len(made) != n/10 {
		t.Errorf("%d panes, %d of the pairs, %v", len(all), len(made), err)
	}
}

func TestSpawnsThatShareAClientStartTheServer(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	errs := make([]error, 5)
	f.runTogether(len(errs), func(i int) {
		s := f.spawnRequest(fmt.Sprint("s", i))
		if s.Argv = []string{"sleep", "1000"}; i%2 == 0 {
			s.Name = "same" // whoever comes first
		}
		_, errs[i] = f.Spawn(t.Context(), s)
	})
	refused := 0
	for _, err := range errs {
		if errors.Is(err, sessions.ErrNameTaken) && !errors.Is(err, sessions.ErrInDoubt) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 2 {
		t.Errorf("%d were refused, of three of one name: %v", refused, errs)
	}
}

func TestEndsThatShareAClientEndTheServerToo(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	var targets []sessions.Target
	for i := range 6 {
		s := f.spawnRequest(fmt.Sprint("s", i))
		s.Argv = []string{"sleep", "1000"}
		pane, err := f.Spawn(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, pane.Target())
	}
	targets[4].Pane = "%999" // another pane than it has now
	f.runTogether(len(targets), func(i int) {
		if err := f.End(t.Context(), targets[i], time.Second); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	})
	if all, err := f.Panes(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestCancelledLineIsRemovedBeforeItsClientRuns(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	waiting, release := f.HoldClients()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := f.Spawn(ctx, f.spawnRequest("a", "sleep", "1000")); failed <- err }()
	tmuxtest.Await(t, "the line to wait", func() bool { return waiting() == 1 })
	cancel()
	if err := <-failed; !errors.Is(err, sessions.ErrTerminalTimeout) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	release()
	if all, err := f.Panes(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}
