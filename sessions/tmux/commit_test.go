package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// textSizes are texts that go through a pipe and one that does not.
var textSizes = []int{10, 60_000, 400_000}

func TestNothingIsTypedBeforeTheCommitAndAllOfItAfter(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	want := ""
	for _, size := range textSizes {
		text := strings.Repeat("x", size)
		commits := 0
		d := sessions.Paste{Target: pane.Target(), Text: text, Submit: "\r", Commit: func() error {
			commits++
			f.awaitLog("a", want)
			return nil
		}}
		if err := f.Paste(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		want += framedText(text)
		f.awaitLog("a", want)
		if commits != 1 {
			t.Errorf("%d commits", commits)
		}
	}
	f.assertNoBuffers()
}

func TestNothingIsTypedWhenTheCommitFails(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	full := errors.New("the disk is full")
	for _, size := range textSizes {
		d := sessions.Paste{Target: pane.Target(), Text: strings.Repeat("x", size), Submit: "\r", Commit: func() error { return full }}
		if err := f.Paste(t.Context(), d); !errors.Is(err, full) || errors.Is(err, sessions.ErrInDoubt) {
			t.Errorf("%d bytes: %v; want the commit's error, and no doubt", size, err)
		}
	}
	if err := f.deliver(pane, "end"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", framedText("end"))
	f.assertNoBuffers()
}

func TestTheCommitIsMadeOnceWhenThePaneIsAnotherThanWasThought(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	a, b := f.spawn("a"), f.spawn("b")
	commits := 0
	d := sessions.Paste{Target: sessions.Target{Pane: b.ID, Mark: a.Mark}, Text: "x", Submit: "\r", Commit: func() error { commits++; return nil }}
	if err := f.Paste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", framedText("x"))
	if commits != 1 {
		t.Errorf("%d commits", commits)
	}
}

// runKilledInCommit delivers a text and is killed, by itself, in the middle of the commit: the client runs and has no text yet.
func runKilledInCommit(args []string) error {
	tm, err := tmux.New(tmux.Options{SocketPath: args[0], Dir: args[1]})
	if err != nil {
		return err
	}
	d := sessions.Paste{Target: sessions.Target{Mark: args[2]}, Text: strings.Repeat("x", 1000), Submit: "\r", Commit: func() error {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal is there
	}}
	return fmt.Errorf("delivered: %v", tm.Paste(context.Background(), d))
}

func TestAProcessThatIsKilledWithinTheCommitTypesNothing(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	for range 10 {
		out, err := exec.CommandContext(t.Context(), os.Args[0], "committer", tmuxtest.Socket(f.dir), filepath.Join(f.dir, "c"), pane.Mark).CombinedOutput()
		if err == nil || len(out) > 0 {
			t.Fatalf("it was not killed: %s", out)
		}
	}
	if err := f.deliver(pane, "end"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", framedText("end"))
}
