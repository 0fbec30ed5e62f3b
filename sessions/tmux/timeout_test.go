package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// allCalls are all that can be asked of a pane.
func (f *tmuxEnv) allCalls(p sessions.Pane) map[string]func() error {
	ctx := f.t.Context()
	return map[string]func() error{
		"deliver":  func() error { return f.deliver(p, "late") },
		"a lot":    func() error { return f.deliver(p, strings.Repeat("late", 100_000)) },
		"no pane":  func() error { return f.deliver(sessions.Pane{Mark: p.Mark}, "late") },
		"press":    func() error { return f.Press(ctx, p.Target(), "late") },
		"panes":    func() error { _, err := f.Panes(ctx); return err },
		"capture":  func() error { _, err := f.Capture(ctx, p.Target()); return err },
		"end":      func() error { return f.End(ctx, p.Target(), time.Second) },
		"spawning": func() error { _, err := f.Spawn(ctx, f.spawnRequest("late")); return err },
	}
}

func TestAStoppedServerIsSilentAndTypesNothingLater(t *testing.T) {
	t.Parallel()
	f := newEnvWith(t, tmux.Options{Timeout: 300 * time.Millisecond})
	pane := f.spawn("a")
	if err := syscall.Kill(pane.Server.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for name, call := range f.allCalls(pane) {
		begin := time.Now()
		if err := call(); !errors.Is(err, sessions.ErrTerminalTimeout) || errors.Is(err, sessions.ErrInDoubt) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	if err := syscall.Kill(pane.Server.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := f.deliver(pane, "after"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", framedText("after"))
	f.assertNoBuffers()
	if panes, err := f.Panes(t.Context()); err != nil || len(panes) != 1 {
		t.Errorf("%v, %v", panes, err)
	}
}

func TestASocketThatNeverAnswersIsSilent(t *testing.T) {
	t.Parallel()
	f := newEnvWith(t, tmux.Options{Timeout: 200 * time.Millisecond})
	l, err := net.Listen("unix", tmuxtest.Socket(f.dir))
	if err != nil {
		t.Fatal(err)
	}
	p := sessions.Pane{ID: "%0", Mark: "id-a"}
	for name, call := range f.allCalls(p) {
		if err := call(); !errors.Is(err, sessions.ErrTerminalTimeout) || errors.Is(err, sessions.ErrInDoubt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// newFakeTmuxEnv is a program in tmux's place.
func newFakeTmuxEnv(t *testing.T, script string) *tmuxEnv {
	t.Helper()
	dir := tmuxtest.Dir(t)
	path := filepath.Join(dir, "tmux")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n[ \"$1\" = -V ] && { echo tmux 3.3a; exit; }\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tm, err := tmux.New(tmux.Options{SocketPath: dir + "/s", Dir: dir, Binary: path, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return &tmuxEnv{tm, t, dir}
}

func TestWhichErrorsAreInDoubt(t *testing.T) {
	t.Parallel()
	const took, none = "cat >/dev/null; ", ""
	say := func(message string) string { return "echo '" + message + "' >&2; exit 1" }
	for name, c := range map[string]struct {
		script        string
		doubt, silent bool
		is            error
	}{
		"hangs with the text":       {took + "exec sleep 100", true, true, nil},
		"hangs without":             {none + "exec sleep 100", false, true, nil},
		"lost with the text":        {took + say("server exited unexpectedly"), true, true, nil},
		"lost without":              {none + say("server exited unexpectedly"), false, true, nil},
		"lost server":               {took + say("lost server"), true, true, nil},
		"client killed":             {took + "kill -9 $$", true, true, nil},
		"strange success":           {took + "echo what", true, false, nil},
		"strange failure":           {took + say("no idea"), true, false, nil},
		"no server":                 {none + say("no server running on /x"), false, false, sessions.ErrPaneGone},
		"no socket":                 {none + say("error connecting to /x (No such file or directory)"), false, false, sessions.ErrPaneGone},
		"not ours to connect":       {none + say("error connecting to /x (Permission denied)"), false, false, nil},
		"another version":           {none + say("protocol version mismatch (client 8, server 7)"), false, false, tmux.ErrVersionMismatch},
		"done, and killed later":    {took + "echo DONE; kill -9 $$", false, false, nil},
		"tmux has no such command":  {none + say("unknown command: load-buffer"), false, false, nil},
		"buffer gone (no load)":     {took + say("no buffer the-loop-x"), false, false, nil},
		"silent with a part of it":  {"head -c 1 >/dev/null; exec sleep 100", true, true, nil},
		"half an answer, then hung": {took + "printf REF; exec sleep 100", true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeTmuxEnv(t, c.script)
			err := f.deliver(sessions.Pane{ID: "%0", Mark: "m"}, "text")
			if name == "done, and killed later" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || errors.Is(err, sessions.ErrInDoubt) != c.doubt || errors.Is(err, sessions.ErrTerminalTimeout) != c.silent || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAContextThatIsOverTypesNothing(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.Paste(ctx, sessions.Paste{Target: pane.Target(), Text: "x"})
	if !errors.Is(err, sessions.ErrTerminalTimeout) || !errors.Is(err, context.Canceled) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	f.awaitLog("a", "")
}

// splitFramed cuts a log into the texts it holds and fails on anything that is not whole.
func splitFramed(t *testing.T, log string) []string {
	t.Helper()
	var texts []string
	for log != "" {
		text, rest, ok := strings.Cut(log, "\x1b[201~\r")
		text, begins := strings.CutPrefix(text, "\x1b[200~")
		if !ok || !begins || strings.Contains(text, "\x1b") {
			t.Fatalf("not a whole text: %.100q…", log)
		}
		texts, log = append(texts, text), rest
	}
	return texts
}

func TestAClientThatIsKilledAtAnyMomentLeavesTheTextWholeOrAbsent(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	want := map[string]int{} // text → at least, and 1 at most
	for i := range 150 {
		text := fmt.Sprintf("<%d>%s", i, strings.Repeat("x", []int{10, 30_000, 400_000}[i%3]))
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(12*time.Millisecond))))
		d := sessions.Paste{Target: pane.Target(), Text: text, Submit: "\r"}
		if i%2 == 0 {
			d.Commit = func() error { return nil }
		}
		err := f.Paste(ctx, d)
		cancel()
		switch {
		case err == nil:
			want[text] = 1
		case errors.Is(err, sessions.ErrInDoubt):
			want[text] = 0
		}
	}
	if err := f.deliver(pane, "end"); err != nil {
		t.Fatal(err)
	}
	log := tmuxtest.AwaitFile(t, filepath.Join(f.dir, "a", "log"), func(s string) bool { return strings.HasSuffix(s, framedText("end")) })
	seen := map[string]int{}
	for _, text := range splitFramed(t, log) {
		seen[text]++
		if _, ok := want[text]; !ok && text != "end" {
			t.Errorf("typed though it was certain that it was not: %.20s", text)
		}
	}
	for text, least := range want {
		if seen[text] < least || seen[text] > 1 {
			t.Errorf("%.20s was typed %d times", text, seen[text])
		}
	}
	tmuxtest.Await(t, "the end of the buffers", func() bool { return f.tmux("list-buffers") == "" })
}

// runDeliverLoop delivers numbered texts of 400 kB until it is killed.
func runDeliverLoop(args []string) error {
	tm, err := tmux.New(tmux.Options{SocketPath: args[0], Dir: args[1]})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		text := fmt.Sprintf("<%s.%d>%s", args[3], i, strings.Repeat("x", 400_000))
		err := tm.Paste(context.Background(), sessions.Paste{Target: sessions.Target{Mark: args[2]}, Text: text, Submit: "\r", Delay: time.Millisecond * time.Duration(i%2)})
		if err != nil {
			return err
		}
	}
}

func TestADeliveringProcessThatIsKilledLeavesTheTextWholeAndSubmittedOrAbsent(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	for i := range 10 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "deliverer", tmuxtest.Socket(f.dir), filepath.Join(f.dir, "c"), pane.Mark, fmt.Sprint(i))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(30*time.Millisecond+time.Duration(rand.Int64N(int64(60*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		if _, err := io.ReadAll(out); err != nil { // it ends when the process does
			t.Fatal(err)
		}
		timer.Stop()
		if err := cmd.Wait(); err == nil {
			t.Fatal("it was not killed")
		}
	}
	last := sessions.Paste{Target: pane.Target(), Text: "end", Submit: "\r", Delay: 50 * time.Millisecond}
	if err := f.Paste(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	log := tmuxtest.AwaitFile(t, filepath.Join(f.dir, "a", "log"), func(s string) bool {
		// The client of a killed process may submit after the last text was pasted, and before that is submitted itself.
		return strings.Contains(s, "end") && strings.HasSuffix(s, "\r") && strings.Count(s, "\r") >= strings.Count(s, "\x1b[201~")
	})
	for text := range strings.SplitSeq(strings.TrimSuffix(log, "\r"), "\r") {
		// A delayed submit may come after the next text's frame; what counts is that every frame is whole.
		for frame := range strings.SplitAfterSeq(text, "\x1b[201~") {
			if frame == "" || frame == framedText("end")[:len(framedText("end"))-1] {
				continue
			}
			body, ok := strings.CutSuffix(frame, "\x1b[201~")
			body, ok2 := strings.CutPrefix(body, "\x1b[200~<")
			if _, x, ok3 := strings.Cut(body, ">"); !ok || !ok2 || !ok3 || len(x) != 400_000 {
				t.Errorf("not whole: %.60q, %d bytes", frame, len(frame))
			}
		}
	}
	if texts, submits := strings.Count(log, "\x1b[201~"), strings.Count(log, "\r"); texts != submits {
		t.Errorf("%d texts and %d submits", texts, submits)
	}
}

// tmux/tmux#4640: the socket is removed from /tmp by a cleaner.
func TestAServerWhoseSocketWasRemovedIsFoundAgain(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	for i, call := range []func() error{
		func() error { _, err := f.Spawn(t.Context(), f.spawnRequest("b")); return err },
		func() error { return f.deliver(pane, "x") },
		func() error { return f.End(t.Context(), sessions.Target{Mark: "id-b"}, 0) },
	} {
		if err := os.Remove(tmuxtest.Socket(f.dir)); err != nil {
			t.Fatal(err)
		}
		if err := call(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	f.awaitLog("a", framedText("x"))
	if p := tmuxtest.FindPane(t, f.Tmux, pane.Mark); p.Server != pane.Server {
		t.Errorf("another server: %+v, was %+v", p.Server, pane.Server)
	}
}

func TestWithoutASocketThereAreNoPanes(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	p := sessions.Pane{ID: "%0", Mark: "m"}
	if err := f.deliver(p, "x"); !errors.Is(err, sessions.ErrPaneGone) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: tmuxtest.Socket(f.dir), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.deliver(p, "x"); !errors.Is(err, sessions.ErrPaneGone) {
		t.Errorf("a socket that nobody listens on: %v", err)
	}
	if panes, err := f.Panes(t.Context()); err != nil || len(panes) > 0 {
		t.Errorf("%v, %v", panes, err)
	}
}

func TestMissingAndOldTmuxAreReported(t *testing.T) {
	t.Parallel()
	dir := tmuxtest.Dir(t)
	tm, err := tmux.New(tmux.Options{SocketPath: dir + "/s", Dir: dir, Environ: []string{"PATH=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{tm.Check(t.Context()), tm.Press(t.Context(), sessions.Target{Pane: "%0", Mark: "m"}, "x")} {
		if !errors.Is(err, tmux.ErrNoTmux) || errors.Is(err, sessions.ErrInDoubt) {
			t.Errorf("%v", err)
		}
	}
	if err := os.WriteFile(dir+"/tmux", []byte("#!/bin/sh\necho tmux 3.1c\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := tm.Check(t.Context()); !errors.Is(err, tmux.ErrTooOld) {
		t.Errorf("%v", err)
	}
	if v, err := newEnv(t).Version(t.Context()); err != nil || v.Major < 3 {
		t.Errorf("%+v, %v", v, err)
	}
}
