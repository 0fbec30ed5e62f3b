package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"the-loop/sessions"
)

func TestLogThatIsNotThereHasNoEvents(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	if entries := readAll(t, path); len(entries) > 0 {
		t.Errorf("read %v", entries)
	}
	if end, err := End(path); err != nil || end != (Position{}) {
		t.Errorf("end %v, %v", end, err)
	}
}

func TestReadGoesOnWhereItStoppedAcrossRotations(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	w := newTestLog(t, path)
	var pos Position
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, ""},
		{func() { w.emit("a", "b") }, "a b"},
		{func() {}, ""},
		{func() { w.emit("c"); w.rotate(); w.emit("d") }, "c d"},
		{func() { w.rotate() }, ""},
		{func() { w.emit("e"); w.rotate(); w.emit("f"); w.rotate() }, "e f"},
		{func() { w.emit("g") }, "g"},
		{func() { appendTo(t, path, "not an event\n{}\n[]\n"); w.emit("h") }, "h"},
		{func() { appendTo(t, path, `{"time":"2026-03-04T04:06:07Z"`) }, ""},
		{func() { appendTo(t, path, `,"event":"i"}`) }, ""},
		{func() { appendTo(t, path, "\n") }, "i"},
		{func() { appendTo(t, path, `{"time":"2026-03-04T04:06:07Z","event":"j"}`); w.rotate(); w.emit("k") }, "j k"},
	} {
		step.do()
		var got string
		got, pos = w.read(storedAndLoaded(t, pos))
		if got != step.want {
			t.Fatalf("read %q, want %q", got, step.want)
		}
		end, err := End(path)
		if got, _ := w.read(end); err != nil || got != "" {
			t.Errorf("%q is after the end (%v)", got, err)
		}
	}
}

func TestPositionThatWasRotatedAwayGoesOnWithTheOldest(t *testing.T) {
	t.Parallel()
	w := newTestLog(t, logPath(t))
	w.emit("a")
	_, pos := w.read(Position{})
	for n := range MaxRotatedFiles + 2 {
		w.rotate()
		w.emit("n" + strconv.Itoa(n))
	}
	if got, _ := w.read(pos); got != "n1 n2 n3 n4" {
		t.Errorf("read %q", got)
	}
}

func TestRemovedLogDoesNotBringOlderEventsAgain(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	w := newTestLog(t, path)
	w.emit("a")
	w.rotate()
	w.emit("b")
	_, pos := w.read(Position{})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.read(pos); got != "" {
		t.Errorf("read %q", got)
	}
	w.emit("c")
	if got, _ := w.read(pos); got != "c" {
		t.Errorf("read %q, want c", got)
	}
}

func TestReaderThatFailsSeesTheEventAgain(t *testing.T) {
	t.Parallel()
	w := newTestLog(t, logPath(t))
	w.emit("a", "b", "c")
	broken := errors.New("broken")
	pos, err := Read(t.Context(), w.path, Position{}, func(e Entry) error {
		if e.Name == "b" {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if got, _ := w.read(pos); got != "b c" {
		t.Errorf("read %q", got)
	}
}

func TestFollowSeesWhatComes(t *testing.T) {
	t.Parallel()
	w := newTestLog(t, logPath(t))
	w.emit("old")
	end, err := End(w.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan string)
	done := make(chan error, 1)
	go func() {
		done <- Follow(ctx, w.path, end, func(e Entry) error {
			seen <- e.Name
			return nil
		})
	}()
	for _, name := range []string{"a", "b", "c"} {
		w.emit(name)
		if got := <-seen; got != name {
			t.Errorf("saw %q, want %q", got, name)
		}
		w.rotate()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	broken := errors.New("broken")
	if err := Follow(t.Context(), w.path, Position{}, func(Entry) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("ended with %v, want the reader's error", err)
	}
}

func TestUnreadableLogIsAnError(t *testing.T) {
	t.Parallel()
	path := logPath(t)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, readErr := Read(t.Context(), path, Position{}, func(Entry) error { return nil })
	_, endErr := End(path)
	for _, err := range []error{readErr, endErr, Follow(t.Context(), path, Position{}, nil)} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"time":"2026-03-04T04:06:07Z","event":"x","level":"warn+1","a":[1]}`, `{"time":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		entry, ok := decode(line)
		if !ok {
			return
		}
		again, ok := decode(encode(entry.Time, entry.Event))
		if !ok || again.Name != entry.Name || !again.Time.Equal(entry.Time) || len(again.Fields) != len(entry.Fields) {
			t.Fatalf("%+v became %+v", entry, again)
		}
	})
}

// testLog writes and rotates a log at will.
type testLog struct {
	*Log
	t *testing.T
}

func newTestLog(t *testing.T, path string) *testLog {
	l := New(path, nil, discardLogger())
	t.Cleanup(func() { _ = l.Close() })
	return &testLog{Log: l, t: t}
}

func (w *testLog) emit(names ...string) {
	for _, name := range names {
		w.Emit(w.t.Context(), sessions.Event{Name: name})
	}
}

func (w *testLog) rotate() {
	w.t.Helper()
	if err := rotate(w.path); err != nil {
		w.t.Fatal(err)
	}
}

func (w *testLog) read(from Position) (string, Position) {
	w.t.Helper()
	var entries []Entry
	pos, err := Read(w.t.Context(), w.path, from, func(e Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return eventNames(entries), pos
}

// storedAndLoaded is the position after it was on the disk.
func storedAndLoaded(t *testing.T, pos Position) Position {
	t.Helper()
	data, err := json.Marshal(pos)
	if err != nil {
		t.Fatal(err)
	}
	var back Position
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}
