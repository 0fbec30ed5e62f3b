package eventlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

func TestLineHasItsFieldsInOrder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.FixedZone("x", 3600))
	got := string(encode(at, sessions.Event{
		Name: "standing.started", Level: slog.LevelWarn, Ref: "standing:a", ID: "id-1",
		Fields: map[string]any{"zeta": 1, "alpha": "<x>&\n", "pid": 7},
	}))
	want := `{"time":"2026-03-04T04:06:07.000000089Z","event":"standing.started","level":"warn","ref":"standing:a",` +
		`"id":"id-1","alpha":"<x>&\n","pid":7,"zeta":1}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	got = string(encode(at, sessions.Event{Name: "bot.started"}))
	want = `{"time":"2026-03-04T04:06:07.000000089Z","event":"bot.started","level":"info"}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// panickingValue has methods that panic.
type panickingValue struct{}

func (panickingValue) MarshalJSON() ([]byte, error) { panic("json") }
func (panickingValue) String() string               { panic("text") }

// redactedValue is a type that keeps its value from logs.
type redactedValue string

func (redactedValue) LogValue() slog.Value { return slog.StringValue("not shown") }

func TestEveryFieldBecomesJSON(t *testing.T) {
	t.Parallel()
	cycle := map[string]any{}
	cycle["again"] = cycle
	var nilError *os.PathError
	fields := map[string]any{
		"chan": make(chan int), "func": func() {}, "nan": math.NaN(), "cycle": cycle, "complex": 1i,
		"panics": panickingValue{}, "nilError": nilError, "bytes": "\xff\x00", "redacted": redactedValue("canary"),
		"error": errors.New("what \"failed\""), "duration": 1500 * time.Millisecond, "nil": nil, "list": []string{"a"},
		"time": "taken", "time_": "taken too", "event": 1, "": "no name",
	}
	line := encode(time.Now(), sessions.Event{Name: "x", Fields: fields})
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if len(got) != len(fields)+3 {
		t.Errorf("%d fields of %d and 3: %s", len(got), len(fields), line)
	}
	for name, want := range map[string]any{
		"error": `what "failed"`, "duration": "1.5s", "nan": "NaN", "nil": nil, "list": []any{"a"},
		"time__": "taken", "time_": "taken too", "event_": 1.0, "event": "x", "redacted": "not shown",
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, changed := fields["time__"]; changed || fields["time"] != "taken" {
		t.Error("the caller's fields were changed")
	}
}

func TestEventComesBackAsItWasEmitted(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	l := New(path, nil, discardLogger())
	defer func() { _ = l.Close() }()
	want := []sessions.Event{
		{Name: "a", Level: slog.LevelError, Ref: "standing:a", ID: "1", Fields: map[string]any{"n": 1.0, "m": map[string]any{"k": "v"}}},
		{Name: "b", Level: slog.LevelInfo + 1},
		{Name: "c", Level: slog.LevelDebug, Fields: map[string]any{"long": strings.Repeat("x", 200_000)}},
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	before := time.Now()
	for _, e := range want {
		l.Emit(cancelled, e)
	}
	var got []sessions.Event
	for _, entry := range readAll(t, path) {
		got = append(got, entry.Event)
		if entry.Time.Before(before) || entry.Time.After(time.Now()) || !json.Valid([]byte(entry.Line)) {
			t.Errorf("entry of %v: %s", entry.Time, entry.Line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, p := range []string{path, filepath.Dir(path)} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v", p, info.Mode(), err)
		}
	}
}

func TestLogRotatesAtItsSizeAndKeepsAFew(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	limit := int64(1000)
	l := New(path, func() Options { return Options{MaxBytes: limit} }, discardLogger())
	defer func() { _ = l.Close() }()
	for n := range 100 {
		l.Emit(t.Context(), sessions.Event{Name: "x", Fields: map[string]any{"n": n}})
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != MaxRotatedFiles+1 {
		t.Errorf("files %v, %v; want %d", files, err, MaxRotatedFiles+1)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > limit || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v, %v", file, info.Size(), info.Mode(), err)
		}
	}
	entries := readAll(t, path)
	for i, e := range entries {
		if want := float64(100 - len(entries) + i); e.Fields["n"] != want {
			t.Fatalf("event %d is number %v, want %v", i, e.Fields["n"], want)
		}
	}
	limit = 1 // a limit that changed; each line is longer
	l.Emit(t.Context(), sessions.Event{Name: "alone"})
	l.Emit(t.Context(), sessions.Event{Name: "alone too"})
	if data, err := os.ReadFile(path); err != nil || bytes.Count(data, []byte("\n")) != 1 {
		t.Errorf("%q, %v; want the last event alone", data, err)
	}
}

func TestNoLineIsLostOrTornBetweenProcesses(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	const processes = 2
	seen := make(chan Entry, (processes+1)*writersPerChild*eventsPerWriter+1)
	ctx, cancel := context.WithCancel(t.Context())
	var follower sync.WaitGroup
	defer follower.Wait()
	defer cancel()
	follower.Go(func() {
		_ = Follow(ctx, path, Position{}, func(e Entry) error {
			seen <- e
			return nil
		})
	})
	var others []*exec.Cmd
	for range processes {
		cmd := childCommand(t, roleWrite, path)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		others = append(others, cmd)
	}
	writeMany(path, "here", slog.New(slog.NewTextHandler(os.Stderr, nil)))
	for _, cmd := range others {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(rotatedPath(path, 1)); err != nil {
		t.Errorf("it was not rotated: %v", err)
	}
	wantAll := (processes + 1) * writersPerChild * eventsPerWriter
	entries := readAll(t, path)
	checkOrder(t, "read", entries, wantAll)
	var followed []Entry
	for len(followed) < wantAll {
		select {
		case e := <-seen:
			followed = append(followed, e)
		case <-time.After(20 * time.Second):
			t.Fatalf("followed %d of %d", len(followed), wantAll)
		}
	}
	checkOrder(t, "followed", followed, wantAll)
	for n := range MaxRotatedFiles + 1 {
		data, err := os.ReadFile(rotatedPath(path, n))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if _, ok := decode([]byte(line)); !ok {
				t.Errorf("torn: %q", line)
			}
		}
	}
}

// checkOrder checks that each writer's events are all there, once, in their order.
func checkOrder(t *testing.T, how string, entries []Entry, want int) {
	t.Helper()
	if len(entries) != want {
		t.Errorf("%s %d events, want %d", how, len(entries), want)
	}
	next := map[any]float64{}
	for _, e := range entries {
		who := e.Fields["who"]
		if e.Fields["n"] != next[who] {
			t.Fatalf("%s: writer %v: event %v, want %v", how, who, e.Fields["n"], next[who])
		}
		next[who]++
	}
}

// A writer that finds half a line begins a new one.
func TestTornLineDoesNotSpoilTheNextOne(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	l := New(path, nil, discardLogger())
	defer func() { _ = l.Close() }()
	l.Emit(t.Context(), sessions.Event{Name: "a"})
	appendTo(t, path, `{"time":"2026-03-04T04:06:07Z","ev`)
	if got := eventNames(readAll(t, path)); got != "a" {
		t.Errorf("read %s, want a", got)
	}
	l.Emit(t.Context(), sessions.Event{Name: "b"})
	if got := eventNames(readAll(t, path)); got != "a b" {
		t.Errorf("read %s, want a b", got)
	}
}

func TestFullDiskLeavesNoHalfOfALine(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	out, err := childCommand(t, roleFull, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Count(string(out), string(problemWrite)) != 1 || !strings.Contains(string(out), "lost=") {
		t.Errorf("said: %s; want one problem and how many were lost", out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for _, line := range lines {
		if _, ok := decode([]byte(line)); !ok {
			t.Errorf("torn: %q", line)
		}
	}
	if !strings.Contains(lines[len(lines)-1], "test.free") || len(lines) < 5 {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

func TestProblemIsSaidOnceAndSoIsItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blocker := filepath.Join(dir, "logs")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	l := New(filepath.Join(blocker, "events.jsonl"), nil, slog.New(slog.NewTextHandler(&said, nil)))
	defer func() { _ = l.Close() }()
	for range 3 {
		l.Emit(t.Context(), sessions.Event{Name: "lost"})
	}
	if n := strings.Count(said.String(), "\n"); n != 1 {
		t.Errorf("said %d times:\n%s", n, said.String())
	}
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	for range 2 {
		l.Emit(t.Context(), sessions.Event{Name: "kept"})
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "lost=3") {
		t.Errorf("said %q", got)
	}
	if got := eventNames(readAll(t, l.path)); got != "kept kept" {
		t.Errorf("read %s", got)
	}
}

func TestWhatIsNoFileIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	l := New(os.DevNull, nil, slog.New(slog.NewTextHandler(&said, nil)))
	l.Emit(t.Context(), sessions.Event{Name: "x"})
	if !strings.Contains(said.String(), "not a regular file") {
		t.Errorf("said %q", said.String())
	}
}

// A process that stops in the middle of a write must not stop the others.
func TestLockHeldByAnotherProcessDoesNotBlockAWriter(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	cmd := childCommand(t, roleHold, path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	l := New(path, nil, slog.New(slog.NewTextHandler(&said, nil)))
	defer func() { _ = l.Close() }()
	for range 5 {
		l.Emit(t.Context(), sessions.Event{Name: "x"})
	}
	if got := eventNames(readAll(t, path)); got != "x x x x x" {
		t.Errorf("read %s", got)
	}
	if strings.Count(said.String(), string(problemLock)) != 1 {
		t.Errorf("said %q", said.String())
	}
}

func TestRemovedLogIsCreatedAgain(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	l := New(path, nil, discardLogger())
	defer func() { _ = l.Close() }()
	l.Emit(t.Context(), sessions.Event{Name: "a"})
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	l.Emit(t.Context(), sessions.Event{Name: "b"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Emit(t.Context(), sessions.Event{Name: "c"})
	if got := eventNames(readAll(t, path)); got != "b c" {
		t.Errorf("read %s", got)
	}
}

// BenchmarkEmit compares an event with a bare write of the same line.
func BenchmarkEmit(b *testing.B) {
	event := sessions.Event{
		Name: "channel.reply_received", Ref: "standing:supervisor", ID: "0b0e1a3c-90e4-4f3c-9d0c-000000000001",
		Fields: map[string]any{"ts": "1700000000.000100", "channel": "C123", "bytes": 120},
	}
	b.Run("bare", func(b *testing.B) {
		f, err := os.OpenFile(filepath.Join(b.TempDir(), "f"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		line := encode(time.Now(), event)
		for b.Loop() {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("emit", func(b *testing.B) {
		l := New(logPath(b), nil, discardLogger())
		defer func() { _ = l.Close() }()
		for b.Loop() {
			l.Emit(b.Context(), event)
		}
	})
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(f, text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func eventNames(entries []Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return strings.Join(all, " ")
}
