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

// testWatcher is a running watcher of a real file.
type testWatcher struct {
	*Watcher
	t    *testing.T
	path string
}

func newTestWatcher(t *testing.T, l Loader, text string, o WatchOptions) *testWatcher {
	t.Helper()
	path := filepath.Join(privateTempDir(t), "etc", "c.yaml")
	writeFile(t, path, text)
	l.Workdir, l.Home = "/w", "/home/op"
	first, err := l.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	w := &testWatcher{NewWatcher(l, path, first, o), t, path}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return w
}

// quickOptions is for files that are changed at once; told relies on notification alone, polled on looking alone.
var (
	quickOptions      = WatchOptions{Debounce: 10 * time.Millisecond, PollInterval: 50 * time.Millisecond}
	notifyOnlyOptions = WatchOptions{Debounce: 10 * time.Millisecond, PollInterval: time.Hour}
	pollOnlyOptions   = WatchOptions{Debounce: 10 * time.Millisecond, PollInterval: 10 * time.Millisecond}
)

// waitFor waits for a snapshot that is as wanted.
func (w *testWatcher) waitFor(what string, wanted func(Snapshot) bool) Snapshot {
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

func (w *testWatcher) waitForHarness(name string) Snapshot {
	w.t.Helper()
	return w.waitFor("harness "+name, func(s Snapshot) bool { return s.Err == nil && s.Config.Routing.DefaultHarness == name })
}

func (w *testWatcher) waitForError(text string) Snapshot {
	w.t.Helper()
	return w.waitFor("refused with "+text, func(s Snapshot) bool { return s.Err != nil && strings.Contains(s.Err.Error(), text) })
}

func (w *testWatcher) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func withHarness(name string) string {
	return "version: 1\nrouting:\n  defaultHarness: " + name + "\n"
}

func TestAChangedFileIsReloaded(t *testing.T) {
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
		for how, o := range map[string]WatchOptions{"told": notifyOnlyOptions, "polled": pollOnlyOptions} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				w := newTestWatcher(t, Loader{}, withHarness("claude"), o)
				for _, harness := range []string{"codex", "opencode"} { // a watch that is lost is lost at the second change
					w.must(change(w.path, withHarness(harness)))
					w.waitForHarness(harness)
				}
			})
		}
	}
}

func TestWhileTheFileIsInvalidTheLastValidOneStays(t *testing.T) {
	t.Parallel()
	w := newTestWatcher(t, Loader{}, withHarness("claude"), quickOptions)
	first := w.Current()
	for _, bad := range []struct {
		text, want string
	}{
		{"version: 1\nrouting:\n  defaultHarn", "c.yaml:2: routing: must be a block of keys"}, // half-written
		{"", "is empty"},
		{"version: 1\nrouting: {tmux: {socketName: [x]}}\n", "c.yaml:2: routing.tmux.socketName: "},
	} {
		w.must(os.WriteFile(w.path, []byte(bad.text), 0o600))
		if s := w.waitForError(bad.want); s.Config != first.Config || s.Since.Before(first.Since) {
			t.Errorf("%q: the valid configuration did not stay: %+v", bad.text, s)
		}
	}
	w.must(os.Remove(w.path))
	if s := w.waitForError("does not exist"); s.Config != first.Config {
		t.Errorf("deleted: %+v", s)
	}
	w.must(os.WriteFile(w.path, []byte(withHarness("codex")), 0o600))
	if s := w.waitForHarness("codex"); s.Config == first.Config {
		t.Error("the new configuration is the old one")
	}
}

func TestRestoringTheOldTextClearsTheError(t *testing.T) {
	t.Parallel()
	w := newTestWatcher(t, Loader{}, withHarness("claude"), quickOptions)
	w.must(os.WriteFile(w.path, nil, 0o600))
	w.waitForError("is empty")
	w.must(os.WriteFile(w.path, []byte(withHarness("claude")), 0o600))
	w.waitForHarness("claude")
}

func TestAFolderThatIsRecreatedIsWatched(t *testing.T) {
	t.Parallel()
	w := newTestWatcher(t, Loader{}, withHarness("claude"), quickOptions)
	dir := filepath.Dir(w.path)
	w.must(os.RemoveAll(dir))
	w.waitForError("does not exist")
	w.must(errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(w.path, []byte(withHarness("codex")), 0o600)))
	w.waitForHarness("codex")

	w.must(os.Rename(dir, dir+".old")) // the notification goes with the folder that was moved
	w.must(errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(w.path, []byte(withHarness("opencode")), 0o600)))
	w.waitForHarness("opencode")
	w.must(os.WriteFile(w.path, []byte(withHarness("gemini")), 0o600))
	w.waitForHarness("gemini")
}

func TestAModeThatLetsOthersWriteIsRefused(t *testing.T) {
	t.Parallel()
	for how, o := range map[string]WatchOptions{"told": notifyOnlyOptions, "polled": pollOnlyOptions} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newTestWatcher(t, Loader{RequireOwnership: true}, withHarness("claude"), o)
			w.must(os.Chmod(w.path, 0o666))
			if s := w.waitForError("can be written by others"); !errors.Is(s.Err, ErrUnsafeFile) {
				t.Errorf("got %v", s.Err)
			}
			w.must(os.Chmod(w.path, 0o600))
			w.waitForHarness("claude")
		})
	}
}

func TestTheTargetOfALinkIsWatched(t *testing.T) {
	t.Parallel()
	real := filepath.Join(privateTempDir(t), "real.yaml")
	w := newTestWatcher(t, Loader{}, withHarness("claude"), pollOnlyOptions)
	w.must(errors.Join(os.WriteFile(real, []byte(withHarness("codex")), 0o600), os.Remove(w.path), os.Symlink(real, w.path)))
	w.waitForHarness("codex")
	w.must(os.WriteFile(real, []byte(withHarness("opencode")), 0o600))
	w.waitForHarness("opencode")
}

func TestReloadRunsTheCheckAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var taken error
	l := Loader{Check: func(*Config) error { mu.Lock(); defer mu.Unlock(); return taken }}
	set := func(err error) { mu.Lock(); defer mu.Unlock(); taken = err }
	w := newTestWatcher(t, l, withHarness("claude"), notifyOnlyOptions)
	set(errors.New("a name is taken"))
	w.Reload()
	w.waitForError("a name is taken")
	set(nil)
	w.Reload()
	w.waitForHarness("claude")
}

// A program that writes in pieces pauses less than the quiet time between them.
func TestAFileIsReadAfterTheDebounceTime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(privateTempDir(t), "c.yaml")
	writeFile(t, path, withHarness("claude"))
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		first, err := testLoader().Load(path)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWatcher(testLoader(), path, first, WatchOptions{Log: slog.New(slog.NewTextHandler(&log, nil)), PollInterval: time.Hour})
		ctx, stop := context.WithCancel(t.Context())
		events := make(chan fsnotify.Event)
		done := make(chan struct{})
		go func() { defer close(done); w.loop(ctx, events, nil, func() {}) }()
		text := withHarness("codex")
		for i := range len(text) {
			writeFile(t, path, text[:i])
			events <- fsnotify.Event{Name: path, Op: fsnotify.Write}
			<-time.After(499 * time.Millisecond)
		}
		writeFile(t, path, text)
		events <- fsnotify.Event{Name: path, Op: fsnotify.Write}
		written := time.Now()
		<-w.Changes()
		if s := w.Current(); s.Err != nil || s.Config.Routing.DefaultHarness != "codex" || s.Since.Sub(written) != 500*time.Millisecond {
			t.Errorf("after %v: %+v", s.Since.Sub(written), s)
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
	path := filepath.Join(privateTempDir(t), "c.yaml")
	writeFile(t, path, withHarness("claude"))
	for range 20 {
		ctx, stop := context.WithCancel(t.Context())
		w := NewWatcher(testLoader(), path, nil, quickOptions)
		stop()
		w.Run(ctx) // goleak holds that nothing is left
	}
}

func TestConcurrentReadersAndChanges(t *testing.T) {
	t.Parallel()
	w := newTestWatcher(t, Loader{}, withHarness("claude"), WatchOptions{Debounce: time.Millisecond, PollInterval: time.Millisecond})
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
	w.waitForHarness("h49")
	stop()
	readers.Wait()
}
