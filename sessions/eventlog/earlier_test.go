package eventlog

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"the-loop/sessions"
)

// testdata/earlier.jsonl was written by an earlier program.
func TestALogOfAnEarlierProgramIsRead(t *testing.T) {
	t.Parallel()
	var events []sessions.Event
	_, err := Read(t.Context(), filepath.Join("testdata", "earlier.jsonl"), Position{}, func(e Entry) error {
		if e.Time.IsZero() || e.Line == "" {
			t.Errorf("%+v has no time or line", e)
		}
		events = append(events, e.Event)
		return nil
	})
	want := []sessions.Event{
		{Name: "standing.started", Level: slog.LevelInfo, Ref: "standing:helper", ID: "0b0e1a3c-90e4-4f3c-9d0c-000000000001", Fields: map[string]any{
			"text": "a \"b\"\nü", "count": 7.0, "yes": true, "took": "1.5s", "names": []any{"a", "b"}, "error": "why", "ref_": "of the field"}},
		{Name: "bot.warning", Level: slog.LevelWarn},
	}
	if diff := cmp.Diff(want, events, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
