package eventlog_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/envstate"
	"the-loop/sessions/eventlog"
)

// Whatever kind of field a text stands in, it is scrubbed, and what programs find an event by is not.
func TestNoFieldOfAnEventShowsAValue(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	secret := `s3cr3t"&<value>`
	scrub := envstate.NewScrubber(map[string]string{"KEY": secret}).Scrub
	log := eventlog.New(path, func() eventlog.Options { return eventlog.Options{Scrub: scrub} }, slog.New(slog.DiscardHandler))
	log.Emit(t.Context(), sessions.Event{Name: "some.event", ID: "id", Fields: map[string]any{
		"error": errors.New("bad " + secret), "text": secret, "list": []string{secret}, "deep": map[string]any{"a": []any{secret, 1}},
		"channel": "C1", "number": 7, "stale": []string{"KEY"}}})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := string(data)
	if got := strings.Count(line, "[KEY]"); got != 4 || strings.Contains(line, "s3cr3t") || !strings.Contains(line, `"channel":"C1"`) || !strings.Contains(line, `"number":7`) {
		t.Errorf("%d values were replaced in %s", got, line)
	}
}
