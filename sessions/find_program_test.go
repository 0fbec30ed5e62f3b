package sessions

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAProgramIsFoundAsItsProcessWouldFindIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.MkdirAll(at("one/folder"), 0o700), os.MkdirAll(at("two"), 0o700), os.WriteFile(at("one/text"), nil, 0o600),
		os.WriteFile(at("one/program"), nil, 0o700), os.WriteFile(at("two/program"), nil, 0o700), os.WriteFile(at("two/text"), nil, 0o700),
		os.WriteFile(at("two/folder"), nil, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	path := "one::." + string(filepath.ListSeparator) + at("one") + string(filepath.ListSeparator) + at("two")
	for name, want := range map[string]string{
		"program":      at("one/program"),
		"text":         at("two/text"), // the first cannot be run
		"folder":       at("two/folder"),
		"none":         "",
		"":             "",
		"one/program":  at("one/program"), // below the folder
		"./two/text":   at("two/text"),
		at("one/text"): "",
		"one/none":     "",
		at("two/text"): at("two/text"),
	} {
		got, found := FindProgram(name, path, dir)
		if found != (want != "") || found && got != want {
			t.Errorf("%q: %q, %v; want %q", name, got, found, want)
		}
	}
}
