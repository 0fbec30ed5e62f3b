package report

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"the-loop/sessions"
)

func TestReportedFilesAreReadOnceAndFromTheirBeginningOn(t *testing.T) {
	t.Parallel()
	r, id := Reader{Dir: t.TempDir()}, uuid.NewString()
	at := time.Now().Round(0)
	add := func(at time.Time, payload string) {
		t.Helper()
		if err := Append(filepath.Join(r.Dir, id+".jsonl"), Report{At: at, Event: EventFile, Payload: json.RawMessage(payload)}); err != nil {
			t.Fatal(err)
		}
	}
	add(at.Add(-time.Hour), `{"path":"old.txt"}`)
	add(at, `{"path":"a.txt","comment":"look"}`)
	add(at, `{"path":7}`)
	add(at, `{}`)
	first, err := r.ReadReports(context.Background(), id, "", at.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]sessions.ReportedFile{{Path: "a.txt", Comment: "look", At: at}}, first.Files); diff != "" {
		t.Error(diff)
	}
	add(at, `{"path":"b.txt"}`)
	next, err := r.ReadReports(context.Background(), id, first.Next, at)
	if err != nil || len(next.Files) != 1 || next.Files[0].Path != "b.txt" {
		t.Errorf("%+v, %v", next, err)
	}
}
