package outbox

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/v0 was written by a program whose messages had no version, with every field set.
func TestEveryFieldOfAMessageOfAnEarlierProgramIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "v0"))); err != nil {
		t.Fatal(err)
	}
	o, err := New(Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil || len(o.messages) != 1 {
		t.Fatal(o, err)
	}
	file, err := os.ReadFile(filepath.Join("testdata", "v0", "000000000007.json"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := json.Marshal(o.messages[0])
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal(file, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "version")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
