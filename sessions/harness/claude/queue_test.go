package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClaudesQueuedInputIsDetected(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	op := func(operation string, ago time.Duration) string {
		return fmt.Sprintf(`{"type":"queue-operation","operation":%q,"timestamp":%q,"content":"x"}`, operation, now.Add(-ago).Format(time.RFC3339Nano))
	}
	end := func(ago time.Duration) string {
		return fmt.Sprintf(`{"type":"system","subtype":"turn_duration","timestamp":%q}`, now.Add(-ago).Format(time.RFC3339Nano))
	}
	said := `{"type":"user","message":{"content":"a \"queue-operation\" is talked about"}}`
	for _, tc := range []struct {
		name  string
		lines []string
		want  bool
	}{
		{"nothing", nil, false},
		{"one waits", []string{op("enqueue", time.Minute), said}, true},
		{"it was taken", []string{op("enqueue", time.Minute), op("dequeue", 10*time.Second)}, false},
		{"it was taken just now", []string{op("enqueue", time.Minute), op("dequeue", 100*time.Millisecond)}, true},
		{"one of two was taken", []string{op("enqueue", time.Minute), op("enqueue", time.Minute), op("remove", 30*time.Second)}, true},
		{"taken back into the box", []string{op("enqueue", time.Minute), op("enqueue", time.Minute), op("popAll", 30*time.Second), op("popAll", 30*time.Second)}, false},
		{"what left before counts once", []string{op("dequeue", 2*time.Minute), op("dequeue", 2*time.Minute), op("enqueue", time.Minute)}, true},
		{"by a run that has ended", []string{op("enqueue", 2*time.Hour)}, false},
		{"it was taken, and that is not told", []string{op("enqueue", time.Minute), end(10 * time.Second)}, false},
		{"a turn ended just now", []string{op("enqueue", time.Minute), end(time.Second)}, true},
		{"queued after a turn", []string{end(time.Minute), op("enqueue", 30*time.Second)}, true},
		{"the first of three runs", []string{op("enqueue", time.Minute), op("enqueue", time.Minute), op("enqueue", time.Minute), end(30 * time.Second), op("dequeue", 30*time.Second)}, true},
		{"a line that is torn", []string{`{"type":"queue-operation","operation":"enq`}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.jsonl")
			if err := os.WriteFile(path, []byte(strings.Join(tc.lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := isInputQueued(path, now.Add(-time.Hour), now)
			if err != nil || got != tc.want {
				t.Errorf("waiting: %t (%v), not %t", got, err, tc.want)
			}
		})
	}
	if got, err := isInputQueued(filepath.Join(t.TempDir(), "none"), time.Time{}, now); got || err != nil {
		t.Errorf("without a transcript: %t, %v", got, err)
	}
}

func TestFileTailBeginsWithAWholeLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{100: "one\ntwo\nthree\n", 8: "three\n", 3: ""} {
		if got, err := readFileTail(path, most); err != nil || string(got) != want {
			t.Errorf("of %d bytes: %q, %v; want %q", most, got, err, want)
		}
	}
}
