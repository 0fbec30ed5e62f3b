package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watched is a running watcher of a real file.
type watched struct {
	*Watcher
	t    *testing.T
	path string
}

func watch(t *testing.T, l Loader, text string, o WatchOptions) *watched {
	t.Helper()
	path := filepath.Join(folderOfOurs(t), "etc", "c.yaml")
	write(t, path, text)
	l.Workdir, l.Home = "/w", "/home/op"
	first, err := l.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{NewWatcher(l, path, first, o), t, path}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return w
}

// quick is for files that are changed at once; told relies on notification alone, polled on looking alone.
var (
	quick  = WatchOptions{Quiet: 10 * time.Millisecond, Poll: 50 * time.Millisecond}
	told   = WatchOptions{Quiet: 10 * time.Millisecond, Poll: time.Hour}
	polled = WatchOptions{Quiet: 10 * time.Millisecond, Poll: 10 * time.Millisecond}
)

// until waits for a snapshot that is as wanted.
func (w *watched) until(what string, wanted func(Snapshot) bool) Snapshot {
	w.t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		if s := w.Current(); wanted(s) {
			return s
		}
		select {
		case <-w.Changes():
		case <-timeout:
			w.t.Fatalf("never %s: %+v", what, w.Current())
		}
	}
}

func (w *watched) untilHarness(name string) Snapshot {
	w.t.Helper()
	return w.until("harness "+name, func(s Snapshot) bool { return s.Err == nil && s.Config.Routing.DefaultHarness == name })
}

func (w *watched) untilRefused(text string) Snapshot {
	w.t.Helper()
	return w.until("refused with "+text, func(s Snapshot) bool { return s.Err != nil && strings.Contains(s.Err.Error(), text) })
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func withHarness(name string) string {
	return "version: 1\nrouting:\n  defaultHarness: " + name + "\n"
}

func TestAChangedFileIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path, text string) error{
		"written in place": func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) },
		"replaced by rename": func(path, text string) error {
			return errors.Join(os.WriteFile(path+"~", []byte(text), 0o600), os.Rename(path+"~", path))
		},
		"moved away and written anew": func(path, text string) error {
			return errors.Join(os.Rename(path, path+"~"), os.WriteFile(path, []byte(text), 0o600))
		},
		"deleted and written anew": func(path, text string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte(text), 0o600))
		},
	} {
		for how, o := range map[string]WatchOptions{"told": told, "polled": polled} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				w := watch(t, Loader{}, withHarness("claude"), o)
				for _, harness := range []string{"codex", "opencode"} { // a watch that is lost is lost at the second change
					w.must(change(w.path, withHarness(harness)))
					w.untilHarness(harness)
				}
			})
		}
	}
}

func TestWhileTheFileIsInvalidTheLastValidOneStays(t *testing.T) {
	t.Parallel()
	w := watch(t, Loader{}, withHarness("claude"), quick)
	first := w.Current()
	for _, bad := range []struct {
		text, want string
	}{
		{"version: 1\nrouting:\n  defaultHarn", "c.yaml:2: routing: must be a block of keys"}, // half-written
		{"", "is empty"},
		{"version: 1\nrouting: {tmux: {socketName: [x]}}\n", "c.yaml:2: routing.tmux.socketName: "},
	} {
		w.must(os.WriteFile(w.path, []byte(bad.text), 0o600))
		if s := w.untilRefused(bad.want); s.Config != first.Config || s.At.Before(first.At) {
			t.Errorf("%q: the valid configuration did not stay: %+v", bad.text, s)
		}
	}
	w.must(os.Remove(w.path))
	if s := w.untilRefused("does not exist"); s.Config != first.Config {
		t.Errorf("deleted: %+v", s)
	}
	w.must(os.WriteFile(w.path, []byte(withHarness("codex")), 0o600))
	if s := w.untilHarness("codex"); s.Config == first.Config {
		t.Error("the new configuration is the old one")
	}
}

func TestGoingBackToTheOldTextEndsTheRefusal(t *testing.T) {
	t.Parallel()
	w := watch(t, Loader{}, withHarness("claude"), quick)
	w.must(os.WriteFile(w.path, nil, 0o600))
	w.untilRefused("is empty")
	w.must(os.WriteFile(w.path, []byte(withHarness("claude")), 0o600))
	w.untilHarness("claude")
}

func TestAFolderThatGoesAwayAndComesBackIsFollowed(t *testing.T) {
	t.Parallel()
	w := watch(t, Loader{}, withHarness("claude"), quick)
	dir := filepath.Dir(w.path)
	w.must(os.RemoveAll(dir))
	w.untilRefused("does not exist")
	w.must(errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(w.path, []byte(withHarness("codex")), 0o600)))
	w.untilHarness("codex")

	w.must(os.Rename(dir, dir+".old")) // the notification goes with the folder that was moved
	w.must(errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(w.path, []byte(withHarness("opencode")), 0o600)))
	w.untilHarness("opencode")
	w.must(os.WriteFile(w.path, []byte(withHarness("gemini")), 0o600))
	w.untilHarness("gemini")
}

func TestAModeThatLetsOthersWriteRefusesWhatMustBeOurs(t *testing.T) {
	t.Parallel()
	for how, o := range map[string]WatchOptions{"told": told, "polled": polled} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := watch(t, Loader{OwnedOnly: true}, withHarness("claude"), o)
			w.must(os.Chmod(w.path, 0o666))
			if s := w.untilRefused("can be written by others"); !errors.Is(s.Err, ErrNotOurs) {
				t.Errorf("got %v", s.Err)
			}
			w.must(os.Chmod(w.path, 0o600))
			w.untilHarness("claude")
		})
	}
}

func TestALinkIsFollowedToItsFile(t *testing.T) {
	t.Parallel()
	real := filepath.Join(folderOfOurs(t), "real.yaml")
	w := watch(t, Loader{}, withHarness("claude"), polled)
	w.must(errors.Join(os.WriteFile(real, []byte(withHarness("codex")), 0o600), os.Remove(w.path), os.Symlink(real, w.path)))
	w.untilHarness("codex")
	w.must(os.WriteFile(real, []byte(withHarness("opencode")), 0o600))
	w.untilHarness("opencode")
}

func TestReloadAsksTheCheckAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var taken error
	l := Loader{Check: func(*Config) error { mu.Lock(); defer mu.Unlock(); return taken }}
	set := func(err error) { mu.Lock(); defer mu.Unlock(); taken = err }
	w := watch(t, l, withHarness("claude"), told)
	set(errors.New("a name is taken"))
	w.Reload()
	w.untilRefused("a name is taken")
	set(nil)
	w.Reload()
	w.untilHarness("claude")
}

// A program that writes in pieces pauses less than the quiet time between them.
func TestAFileIsReadOnlyAfterItWasLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(folderOfOurs(t), "c.yaml")
	write(t, path, withHarness("claude"))
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		first, err := at().Load(path)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWatcher(at(), path, first, WatchOptions{Log: slog.New(slog.NewTextHandler(&log, nil)), Poll: time.Hour})
		ctx, stop := context.WithCancel(t.Context())
		events := make(chan fsnotify.Event)
		done := make(chan struct{})
		go func() { defer close(done); w.loop(ctx, events, nil, func() {}) }()
		text := withHarness("codex")
		for i := range len(text) {
			write(t, path, text[:i])
			events <- fsnotify.Event{Name: path, Op: fsnotify.Write}
			<-time.After(499 * time.Millisecond)
		}
		write(t, path, text)
		events <- fsnotify.Event{Name: path, Op: fsnotify.Write}
		written := time.Now()
		<-w.Changes()
		if s := w.Current(); s.Err != nil || s.Config.Routing.DefaultHarness != "codex" || s.At.Sub(written) != 500*time.Millisecond {
			t.Errorf("after %v: %+v", s.At.Sub(written), s)
		}
		events <- fsnotify.Event{Name: path + ".swp", Op: fsnotify.Write}
		stop()
		<-done
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("read %d times:\n%s", n, log.String())
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(folderOfOurs(t), "c.yaml")
	write(t, path, withHarness("claude"))
	for range 20 {
		ctx, stop := context.WithCancel(t.Context())
		w := NewWatcher(at(), path, nil, quick)
		stop()
		w.Run(ctx) // goleak holds that nothing is left
	}
}

func TestReadersAndChangesAtOnce(t *testing.T) {
	t.Parallel()
	w := watch(t, Loader{}, withHarness("claude"), WatchOptions{Quiet: time.Millisecond, Poll: time.Millisecond})
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if s := w.Current(); s.Config == nil {
					t.Error("no configuration")
					return
				}
				w.Reload()
			}
		})
	}
	for i := range 50 {
		w.must(os.WriteFile(w.path, []byte(withHarness(fmt.Sprintf("h%d", i))), 0o600))
	}
	w.untilHarness("h49")
	stop()
	readers.Wait()
}
