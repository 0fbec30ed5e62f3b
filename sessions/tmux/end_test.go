package tmux_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// assertGone fails unless the pane is.
func (f *tmuxEnv) assertGone(mark string) {
	f.t.Helper()
	panes, err := f.Panes(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, p := range panes {
		if p.Mark == mark {
			f.t.Errorf("the pane %s is still there", p.ID)
		}
	}
}

func TestEndEndsTheAgentAndItsPaneAlone(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	a, b := f.spawn("a"), f.spawn("ab")
	if err := f.End(t.Context(), a.Target(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	f.assertGone(a.Mark)
	if tmuxtest.IsAlive(a.PID) {
		t.Error("the agent lives")
	}
	if err := f.deliver(b, "x"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("ab", framedText("x"))
	if err := f.End(t.Context(), a.Target(), time.Second); err != nil {
		t.Errorf("a pane that is gone: %v", err)
	}
	if err := f.End(t.Context(), sessions.Target{Mark: b.Mark}, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := f.End(t.Context(), b.Target(), time.Second); err != nil {
		t.Errorf("no server: %v", err)
	}
}

// gastownhall/gastown#699, rjwalters/loom#2268: orphans after a kill.
func TestEndLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"proc", "ps"} {
		for _, kind := range []string{"", "plain", "deaf", "setsid", "orphan"} {
			t.Run(table+" "+kind, func(t *testing.T) {
				t.Parallel()
				f := newEnv(t)
				if table == "ps" {
					f.UsePS()
				}
				pane := f.spawn("a", "-child", kind)
				pids := []int{pane.PID}
				if kind != "" {
					child := kind
					if kind == "orphan" {
						child = "setsid"
						pids = append(pids, f.pid("a", "parent"))
					}
					pids = append(pids, f.pid("a", child))
				}
				if err := f.End(t.Context(), pane.Target(), 100*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				f.assertGone(pane.Mark)
				for _, pid := range pids {
					if tmuxtest.IsAlive(pid) {
						t.Errorf("%d of %v lives", pid, pids)
					}
				}
			})
		}
	}
}

func TestAnAgentThatIgnoresSignalsIsKilledAfterTheGrace(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a", "-deaf")
	begin := time.Now()
	if err := f.End(t.Context(), pane.Target(), 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 300*time.Millisecond || tmuxtest.IsAlive(pane.PID) {
		t.Errorf("after %s it lives: %t", took, tmuxtest.IsAlive(pane.PID))
	}
}

func TestAStoppedAgentEndsWithinTheGrace(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	if err := syscall.Kill(pane.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := f.End(t.Context(), pane.Target(), time.Minute); err != nil {
		t.Fatal(err)
	}
	f.assertGone(pane.Mark)
}

func TestEndFindsProcessesOfADeadPane(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a", "-child", "deaf")
	child := f.pid("a", "deaf")
	if err := syscall.Kill(pane.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "its death", func() bool { return tmuxtest.FindPane(t, f.Tmux, pane.Mark).Dead })
	if !tmuxtest.IsAlive(child) {
		t.Fatal("the child did not survive")
	}
	if err := f.End(t.Context(), pane.Target(), 0); err != nil {
		t.Fatal(err)
	}
	f.assertGone(pane.Mark)
	if tmuxtest.IsAlive(child) {
		t.Error("the child lives")
	}
}

func TestTheOperatorsSplitSurvivesTheEnd(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	split := f.tmux("split-window", "-P", "-F", "#{pane_id}", "-t", pane.ID, "cat")
	if err := f.End(t.Context(), pane.Target(), time.Second); err != nil {
		t.Fatal(err)
	}
	f.assertGone(pane.Mark)
	if left := f.tmux("list-panes", "-a", "-F", "#{pane_id}"); left != split {
		t.Errorf("panes: %s, want %s", left, split)
	}
}

// chaos: deliveries and ends at once, to the same panes.
func TestAnEndDuringDeliveriesSparesTheServer(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	stay := f.spawn("stay")
	for range 5 {
		pane := f.spawn("a")
		done := make(chan error)
		go func() { done <- f.End(t.Context(), pane.Target(), time.Second) }()
		for err := error(nil); err == nil; {
			if err = f.deliver(pane, "x"); err != nil && (errors.Is(err, sessions.ErrInDoubt) || !errors.Is(err, sessions.ErrPaneDead) && !errors.Is(err, sessions.ErrPaneGone)) {
				t.Errorf("during the end: %v", err)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(filepath.Join(f.dir, "a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.deliver(stay, "x"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("stay", framedText("x"))
}

func TestCaptureReadsTheScreenOfTheMarkedPaneOnly(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	s, err := f.Capture(t.Context(), pane.Target())
	if err != nil || !strings.HasPrefix(s.Text, "ready\n") || s.CursorX != 0 || s.CursorY != 1 || s.InMode {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := f.Capture(t.Context(), sessions.Target{Pane: pane.ID, Mark: "another"}); !errors.Is(err, sessions.ErrPaneGone) {
		t.Errorf("another session: %v", err)
	}
	if err := syscall.Kill(pane.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "its death", func() bool { return tmuxtest.FindPane(t, f.Tmux, pane.Mark).Dead })
	if s, err := f.Capture(t.Context(), sessions.Target{Mark: pane.Mark}); err != nil || !strings.Contains(s.Text, "Pane is dead") {
		t.Errorf("dead: %+v, %v", s, err)
	}
}

func TestPanesShowsEachPaneOnceAndNoMarkThatIsNotOurs(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	if panes, err := f.Panes(t.Context()); err != nil || panes != nil {
		t.Errorf("without a server: %v, %v", panes, err)
	}
	pane := f.spawn("b")
	f.tmux("new-session", "-d", "-s", "a", "-t", pane.SessionID) // a group: it shows the same pane
	for _, mark := range []string{"x\nPANE\t%9", "a\tb", "#{pid}", "a}b,c"} {
		f.tmux("set-option", "-p", "-t", f.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", pane.ID, "cat"), "@the-loop-id", mark)
	}
	panes, err := f.Panes(t.Context())
	if err != nil || len(panes) != 5 {
		t.Fatalf("%+v, %v", panes, err)
	}
	for _, p := range panes {
		if p.SessionName != "b" || (p.Mark != "") != (p.ID == pane.ID) {
			t.Errorf("%+v", p)
		}
	}
	f.tmux("kill-session", "-t", "=a")
}

func TestTwoPanesWithOneMarkGetNothing(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	a, b := f.spawn("a"), f.spawn("b")
	f.tmux("set-option", "-p", "-t", b.ID, "@the-loop-id", a.Mark)
	if err := f.Press(t.Context(), sessions.Target{Mark: a.Mark}, "x"); err == nil || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	f.tmux("set-option", "-p", "-t", b.ID, "@the-loop-id", b.Mark)
	f.awaitLog("a", "")
	f.awaitLog("b", "")
}

func TestEndObeysItsContext(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a", "-deaf")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := f.End(ctx, pane.Target(), time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

var _ sessions.Terminal = (*tmux.Tmux)(nil)
