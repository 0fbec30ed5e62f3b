package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"the-loop/sessions/harness/transcript"
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
	reports, next, err := ReadReports(path, 0)
	if err != nil || len(reports) != 20 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for _, r := range reports {
		if reportedPrompt(r) != prompt || r.Event != EventPromptSubmit {
			t.Errorf("report of %s holds %d bytes", r.Conversation, len(reportedPrompt(r)))
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() > maxReportFile {
		t.Errorf("the file: %v, %v; read to %d", info, err, next)
	}
	if more, same, err := ReadReports(path, next); err != nil || len(more) > 0 || same != next {
		t.Errorf("from the end: %v, %d, %v", more, same, err)
	}
}

func TestATornReportIsPassedOverAndTheNextIsWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"SessionSt`), 0o600); err != nil {
		t.Fatal(err)
	}
	if reports, next, err := ReadReports(path, 0); err != nil || len(reports) > 0 || next != 0 {
		t.Errorf("a line without an end: %v, %d, %v", reports, next, err)
	}
	if err := AppendReport(path, Report{Event: "Stop"}); err != nil {
		t.Fatal(err)
	}
	reports, _, err := ReadReports(path, 0)
	if err != nil || len(reports) != 1 || reports[0].Event != "Stop" {
		t.Errorf("reports %v, %v", reports, err)
	}
}

func TestMissingReportFileHasNoReports(t *testing.T) {
	t.Parallel()
	if reports, next, err := ReadReports(filepath.Join(t.TempDir(), "no", "file"), 7); err != nil || reports != nil || next != 7 {
		t.Errorf("%v, %d, %v", reports, next, err)
	}
	for _, bad := range []string{"", "../x", "a/b", ".x"} {
		if path, err := ReportPath("/r", bad); err == nil {
			t.Errorf("the id %q has the file %s", bad, path)
		}
	}
	if err := (Hook{ReportFile: filepath.Join(t.TempDir(), "x")}).Run(t.Context(), strings.NewReader("not json"), time.Now()); err == nil {
		t.Error("what is no JSON was reported")
	}
}

func TestLineEndIsFoundFarFromTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		content string
		want    int64
	}{{"", 0}, {"a", 0}, {"a\n", 2}, {"a\nb", 2}, {long, 0}, {"a\n" + long, 2}, {long + "\n", int64(len(long)) + 1}} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := transcript.End(path); err != nil || got != c.want {
			t.Errorf("of %d bytes: %d, %v; want %d", len(c.content), got, err, c.want)
		}
	}
}
