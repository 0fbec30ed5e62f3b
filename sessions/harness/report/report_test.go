package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestHooksOfManyProcessesLoseAndTearNoLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reports", "s1.jsonl")
	prompt := strings.Repeat("wörd ", 10_000)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			in := fmt.Sprintf(`{"hook_event_name":"UserPromptSubmit","session_id":"c%d","prompt":%q}`, i, prompt)
			if err := (Hook{ReportFile: path}).Run(t.Context(), strings.NewReader(in), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	reports, next, err := Read(path, 0)
	if err != nil || len(reports) != 20 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for _, r := range reports {
		var payload struct{ Prompt string }
		if err := json.Unmarshal(r.Payload, &payload); err != nil || payload.Prompt != prompt || r.Event != EventPromptSubmit {
			t.Errorf("report of %s holds %d bytes", r.Conversation, len(payload.Prompt))
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() > maxFile {
		t.Errorf("the file: %v, %v; read to %d", info, err, next)
	}
	if more, same, err := Read(path, next); err != nil || len(more) > 0 || same != next {
		t.Errorf("from the end: %v, %d, %v", more, same, err)
	}
}

func TestATornReportIsPassedOverAndTheNextIsWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"SessionSt`), 0o600); err != nil {
		t.Fatal(err)
	}
	if reports, next, err := Read(path, 0); err != nil || len(reports) > 0 || next != 0 {
		t.Errorf("a line without an end: %v, %d, %v", reports, next, err)
	}
	if err := Append(path, Report{Event: "Stop"}); err != nil {
		t.Fatal(err)
	}
	reports, _, err := Read(path, 0)
	if err != nil || len(reports) != 1 || reports[0].Event != "Stop" {
		t.Errorf("reports %v, %v", reports, err)
	}
}

func TestMissingReportFileHasNoReports(t *testing.T) {
	t.Parallel()
	if reports, next, err := Read(filepath.Join(t.TempDir(), "no", "file"), 7); err != nil || reports != nil || next != 7 {
		t.Errorf("%v, %d, %v", reports, next, err)
	}
	for _, bad := range []string{"", "../x", "a/b", ".x"} {
		if path, err := Path("/r", bad); err == nil {
			t.Errorf("the id %q has the file %s", bad, path)
		}
	}
	if err := (Hook{ReportFile: filepath.Join(t.TempDir(), "x")}).Run(t.Context(), strings.NewReader("not json"), time.Now()); err == nil {
		t.Error("what is no JSON was reported")
	}
}
