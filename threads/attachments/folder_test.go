package attachments

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"the-loop/sessions"
)

// An agent, or what it ran, may swap its folder for another one, or give a file of another one a second name in its own.
func TestNoFileOfAnotherFolderIsPosted(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	own, other := filepath.Join(top, "above", "own"), filepath.Join(top, "other", "own")
	for _, dir := range []string{own, other} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(own)
	if err != nil {
		t.Fatal(err)
	}
	dir := Folder{Path: own, ID: sessions.FolderIDOf(info)}
	wants := func(when, path, why string) {
		t.Helper()
		err := CheckPostable(dir, path, 1000)
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%s: %v; want %q", when, err, why)
		}
	}
	wants("as it is", "file", "")
	if err := os.Link(filepath.Join(other, "file"), filepath.Join(own, "hard")); err != nil {
		t.Fatal(err)
	}
	wants("a hard link", "hard", "it has 2 names")
	swaps := map[string][2]string{"itself": {own, other}, "the one above": {filepath.Dir(own), filepath.Dir(other)}}
	for name, swap := range swaps {
		aside := filepath.Join(top, "aside")
		if err := errors.Join(os.Rename(swap[0], aside), os.Symlink(swap[1], swap[0])); err != nil {
			t.Fatal(err)
		}
		wants("swapped: "+name, "file", "another folder")
		if err := errors.Join(os.Remove(swap[0]), os.Rename(aside, swap[0])); err != nil {
			t.Fatal(err)
		}
	}
	wants("as it was", "file", "")
	dir.ID = ""
	wants("started by an earlier version", "file", "")
}
