package harnesstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"the-loop/sessions"
)

// readScreen reads a screen that was captured from the real program: the cursor, then the lines.
func readScreen(t *testing.T, path string) sessions.Screen {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, text, _ := strings.Cut(string(data), "\n")
	var s sessions.Screen
	if _, err := fmt.Sscanf(head, "cursor %d %d", &s.CursorX, &s.CursorY); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	s.Text = strings.TrimSuffix(text, "\n")
	return s
}

// View is what a screen must be parsed as.
type View struct {
	State  sessions.ViewState
	Box    string
	Line   string // that must be among the lines
	Folded int
}

// CheckScreens parses every screen below testdata and compares the views with those wanted, by the file's name without the size.
func CheckScreens(t *testing.T, parse func(sessions.Screen) sessions.View, want map[string]View) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no screens: %v", err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			w, ok := want[name]
			if !ok {
				t.Fatal("nothing is wanted of this screen")
			}
			checkView(t, parse(readScreen(t, file)), w)
		})
	}
}

func checkView(t *testing.T, got sessions.View, want View) {
	t.Helper()
	lines := strings.Join(got.Lines, "\n")
	if got.FoldedLines != want.Folded {
		t.Errorf("a mark of %d line feeds; want %d", got.FoldedLines, want.Folded)
	}
	if got.State != want.State || got.Box != want.Box {
		t.Errorf("state %q, box %q; want %q, %q; lines:\n%s", got.State, got.Box, want.State, want.Box, lines)
	}
	if want.Line != "" && !strings.Contains(lines, want.Line) {
		t.Errorf("%q is not among the lines:\n%s", want.Line, lines)
	}
	if (got.State == sessions.ViewDialog) != (len(got.Lines) > 0) && got.State != sessions.ViewMenu {
		t.Errorf("%s with %d lines", got.State, len(got.Lines))
	}
}
