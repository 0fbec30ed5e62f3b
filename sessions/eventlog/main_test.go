package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"the-loop/sessions"
)

// childRoleEnv makes the test binary run one of the roles below on the log in its argument.
const childRoleEnv = "EVENTLOG_TEST_CHILD"

const (
	roleWrite = "write" // many goroutines write many events
	roleFull  = "full"  // writes until the file may not grow any more
	roleHold  = "hold"  // holds the lock of the file and waits
)

// What each writing process writes.
const (
	writersPerChild = 4
	eventsPerWriter = 150
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRoleEnv); role != "" {
		if err := runChild(role, os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func runChild(role, path string) error {
	switch role {
	case roleWrite:
		writeMany(path, strconv.Itoa(os.Getpid()), slog.New(slog.NewTextHandler(os.Stderr, nil)))
		return nil
	case roleFull:
		return fillUp(path)
	}
	l := New(path, nil, slog.New(slog.DiscardHandler))
	if err := l.open(); err != nil {
		return err
	}
	if err := flock(l.file, lockTimeout); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// bytesPerChild is about what one process writes; a log of a third of it rotates while several write.
const bytesPerChild = writersPerChild * eventsPerWriter * 150

// writeMany has several goroutines write numbered events, in two logs on one file.
func writeMany(path, who string, log *slog.Logger) {
	options := func() Options { return Options{MaxBytes: bytesPerChild} }
	logs := []*Log{New(path, options, log), New(path, options, log)}
	var wg sync.WaitGroup
	for w := range writersPerChild {
		wg.Go(func() {
			for n := range eventsPerWriter {
				logs[w%len(logs)].Emit(context.Background(), sessions.Event{
					Name: "test.event", Fields: map[string]any{"who": who + "-" + strconv.Itoa(w), "n": n, "fill": "0123456789012345678901234567890"},
				})
			}
		})
	}
	wg.Wait()
	for _, l := range logs {
		_ = l.Close()
	}
}

// fillUp writes under a limit of the file's size, as on a full disk, then without it.
func fillUp(path string) error {
	limit := syscall.Rlimit{Cur: 1000, Max: 1 << 30}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	var said bytes.Buffer
	l := New(path, nil, slog.New(slog.NewTextHandler(&said, nil)))
	for n := range 30 {
		l.Emit(context.Background(), sessions.Event{Name: "test.full", Fields: map[string]any{"n": n}})
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	l.Emit(context.Background(), sessions.Event{Name: "test.free"})
	fmt.Print(said.String())
	return l.Close()
}

func childCommand(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), childRoleEnv+"="+role)
	return cmd
}

func logPath(t testing.TB) string { return filepath.Join(t.TempDir(), "logs", "events.jsonl") }

// readAll reads every event that is kept.
func readAll(t *testing.T, path string) []Entry {
	t.Helper()
	var entries []Entry
	if _, err := Read(t.Context(), path, Position{}, func(e Entry) error {
		entries = append(entries, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return entries
}

func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }
