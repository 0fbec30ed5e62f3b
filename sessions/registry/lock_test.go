package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"the-loop/sessions"
)

func TestLockNamesItsHolderInAnotherProcess(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	r.lockWait = 50 * time.Millisecond
	holder := startChild(t, roleHold, r.root)
	_, err := r.Lock(t.Context(), "key", "stop")
	wantLocked(t, err, holder.Process.Pid, "start")
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: the context had time", err)
	}
	lock(t, r, "another key", "stop")()
	holder.finish(t)
	lock(t, r, "key", "stop")()
}

func TestLockNamesItsHolderInTheSameProcess(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	release := lock(t, r, "key", "start")
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := New(r.root).Lock(ctx, "key", "stop")
	wantLocked(t, err, os.Getpid(), "start")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not say that the context ended", err)
	}
}

func TestLockIsReleasedBySIGKILL(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	holder := startChild(t, roleHold, r.root)
	got := make(chan error, 1)
	go func() {
		release, err := r.Lock(t.Context(), "key", "stop")
		if err == nil {
			release()
		}
		got <- err
	}()
	holder.kill()
	if err := <-got; err != nil {
		t.Errorf("the lock did not die with its holder: %v", err)
	}
}

func TestLockIsHeldByOneAtATimeAcrossProcesses(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	r.lockWait = time.Minute
	write(t, counterFile(r.root), "0")
	const processes, goroutines = 2, 2
	var others []*childProcess
	for range processes {
		others = append(others, startChild(t, roleCount, r.root))
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range additionsPerChild {
				if err := addOne(t.Context(), r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, p := range others {
		p.finish(t)
	}
	data, err := os.ReadFile(counterFile(r.root))
	if want := strconv.Itoa((processes + goroutines) * additionsPerChild); err != nil || string(data) != want {
		t.Errorf("counted %s, want %s (%v)", data, want, err)
	}
}

func TestReleasedLockKeepsItsFileAndNoName(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	release := lock(t, r, "key", "start")
	path := filepath.Join(r.locksDir(), "key.lock")
	before := lstat(t, path)
	release()
	if after := lstat(t, path); !os.SameFile(before, after) {
		t.Error("the lock has another file now")
	}
	if note, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(note)) != "" {
		t.Errorf("the file still says %q (%v)", note, err)
	}
	next := lock(t, r, "key", "stop")
	defer next()
	release() // again: it must not take away the lock of the next holder
	r.lockWait = time.Millisecond
	_, err := r.Lock(t.Context(), "key", "list")
	wantLocked(t, err, os.Getpid(), "stop")
}

func TestLockThatCannotBeMadeIsNoLockedError(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	write(t, filepath.Join(r.root, "run"), "a file where a folder should be")
	var locked *sessions.LockedError
	if _, err := r.Lock(t.Context(), "key", "start"); err == nil || errors.As(err, &locked) {
		t.Errorf("error %v", err)
	}
	if _, err := r.Lock(t.Context(), "", "start"); err == nil || errors.As(err, &locked) {
		t.Errorf("empty key: %v", err)
	}
	if _, err := r.AcquireBot(t.Context(), BotInfo{}); err == nil {
		t.Error("the bot's lock was made")
	}
}

func TestLockNamesAreSafeAndDiffer(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"0b0e1a3c-90e4-4f3c-9d0c-000000000001": "0b0e1a3c-90e4-4f3c-9d0c-000000000001.lock",
		"name:standing:foo":                    "name%3Astanding%3Afoo.lock",
		"../Up":                                "%2E%2E%2F%55p.lock",
	} {
		if got := lockName(key); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
	key := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA.%/:2F-]{1,3}`), rapid.StringN(80, 300, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := key.Draw(t, "a"), key.Draw(t, "b")
		na, nb := lockName(a), lockName(b)
		if (a == b) != strings.EqualFold(na, nb) {
			t.Fatalf("%q and %q: %s, %s", a, b, na, nb)
		}
		if len(na) > 255 || strings.ContainsAny(na, "/\x00") || na[0] == '.' && a != "" {
			t.Fatalf("%q: %s is no file name", a, na)
		}
	})
}

func BenchmarkLockUncontended(b *testing.B) {
	r := New(b.TempDir())
	for b.Loop() {
		release, err := r.Lock(b.Context(), "0b0e1a3c-90e4-4f3c-9d0c-000000000001", "say")
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

func lock(t *testing.T, r *Registry, key, verb string) func() {
	t.Helper()
	release, err := r.Lock(t.Context(), key, verb)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func wantLocked(t *testing.T, err error, pid int, verb string) {
	t.Helper()
	var locked *sessions.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("error %v, want a LockedError", err)
	}
	if locked.Key != "key" || locked.PID != pid || locked.Verb != verb {
		t.Errorf("locked by %+v, want process %d at %q", *locked, pid, verb)
	}
}
