// Package tmuxtest gives tests a tmux server of their own.
package tmuxtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/process"
	"the-loop/sessions/tmux"
)

// Start is a tmux server on a private socket, in a folder with a short name because a socket's path has at most 108
// bytes. When the test ends so do its panes and the server, and the test fails if anything is left.
func Start(t testing.TB) *tmux.Tmux {
	t.Helper()
	return StartIn(t, Dir(t), tmux.Options{})
}

// Dir is a folder with a short name that is removed when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Socket is the path of the server's socket in a folder that StartIn was given.
func Socket(dir string) string { return filepath.Join(dir, "s") }

// StartIn is Start with options; socket and configuration lie in dir.
func StartIn(t testing.TB, dir string, o tmux.Options) *tmux.Tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal(tmux.ErrNoTmux)
	}
	o.SocketPath, o.Dir = Socket(dir), filepath.Join(dir, "c")
	tm, err := tmux.New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Timeout = 0
	end, err := tmux.New(o) // with patience
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, end, o.SocketPath) })
	return tm
}

func endAll(t testing.TB, tm *tmux.Tmux, socket string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	panes, err := tm.Panes(ctx)
	if err != nil {
		t.Errorf("the panes that are left: %v", err)
	}
	server := 0
	for _, p := range panes {
		server = p.Server.PID
		if p.Mark == "" {
			continue
		}
		if err := tm.End(ctx, p.Target(), 0); err != nil {
			t.Error(err)
		}
	}
	endServer(ctx, t, socket, server)
	if left, err := tm.Panes(ctx); err != nil || len(left) > 0 {
		t.Errorf("after the end there are panes %v, %v", left, err)
	}
}

// IsAlive reports a process that runs. One that ended and waits for its parent's notice does not count.
func IsAlive(pid int) bool { return process.System().IsRunning(context.Background(), pid) }

// Await polls until ok, and fails the test after ten seconds.
func Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// AwaitFile polls until the file's content is accepted, and returns it.
func AwaitFile(t testing.TB, path string, ok func(string) bool) string {
	t.Helper()
	var content string
	Await(t, "the content of "+path, func() bool {
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		content = string(b)
		return err == nil && ok(content)
	})
	return content
}

// FindPane is the one pane with the mark.
func FindPane(t testing.TB, tm *tmux.Tmux, mark string) sessions.Pane {
	t.Helper()
	panes, err := tm.Panes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range panes {
		if p.Mark == mark {
			return p
		}
	}
	t.Fatalf("no pane has the mark %s", mark)
	return sessions.Pane{}
}
