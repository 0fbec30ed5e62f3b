package threads

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/threads/binding"
)

// testdata/v2 was written by a program that wrote version 2 of bindings, with every field set; channels.json had no version.
func TestEveryFieldOfAFileOfAnEarlierProgramIsRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(filepath.Join("testdata", "v2"))); err != nil {
		t.Fatal(err)
	}
	all, unreadable, err := binding.NewStore(filepath.Join(root, "threads"), nil).Load()
	if err != nil || len(unreadable) > 0 || len(all) != 1 {
		t.Fatal(all, unreadable, err)
	}
	file, err := os.ReadFile(filepath.Join("testdata", "v2", "threads", all[0].ID+".json"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := json.Marshal(all[0])
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
	delete(want, "version")
	delete(got, "version")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if moves := loadChannelMoves(filepath.Join(root, "channels.json")); moves.loadErr != nil || moves.current("C0123") != "C0456" {
		t.Errorf("the channel is %s, %v", moves.current("C0123"), moves.loadErr)
	}
}
