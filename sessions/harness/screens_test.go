package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"the-loop/sessions"
)

// readGoldenScreen reads a screen that was captured from the real program: the cursor, then the lines.
func readGoldenScreen(t *testing.T, path string) sessions.Screen {
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

// seen is what a golden screen must be read as.
type wantView struct {
	state sessions.ViewState
	box   string
	line  string // one that must be among the lines
	fold  int
}

// checkScreens checks every golden screen of an agent against what is expected of its name, which is the file's without the size.
func checkScreens(t *testing.T, agent string, parse func(sessions.Screen) sessions.View, want map[string]wantView) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", agent, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no screens of %s: %v", agent, err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			w, ok := want[name]
			if !ok {
				t.Fatal("nothing is expected of this screen")
			}
			got := parse(readGoldenScreen(t, file))
			if got.FoldedLines != w.fold {
				t.Errorf("a mark of %d line feeds; want %d", got.FoldedLines, w.fold)
			}
			if got.State != w.state || got.Box != w.box {
				t.Errorf("state %q, box %q; want %q, %q; lines:\n%s", got.State, got.Box, w.state, w.box, strings.Join(got.Lines, "\n"))
			}
			if w.line != "" && !strings.Contains(strings.Join(got.Lines, "\n"), w.line) {
				t.Errorf("%q is not among the lines:\n%s", w.line, strings.Join(got.Lines, "\n"))
			}
			if (got.State == sessions.ViewDialog) != (len(got.Lines) > 0) && got.State != sessions.ViewMenu {
				t.Errorf("%s with %d lines", got.State, len(got.Lines))
			}
		})
	}
}

func TestClaudeScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	checkScreens(t, "claude", Claude{}.ParseScreen, map[string]wantView{
		"starting":         {state: sessions.ViewStarting},
		"ready":            {state: ready},
		"ready-later":      {state: ready},
		"interrupted":      {state: ready},
		"stashed":          {state: ready},
		"shortcuts":        {state: ready},
		"draft":            {state: ready, box: "a draft of mine"},
		"draft-lines":      {state: ready, box: "1\n2\n3"},
		"draft-written":    {state: ready, box: "line one\nline two\nline three"},
		"draft-pasted":     {state: ready, box: "[Pasted text #1 +399 lines]", fold: 399},
		"slash-menu":       {state: ready, box: "/"},
		"file-menu":        {state: ready, box: "@"},
		"working":          {state: working},
		"working-queued":   {state: working},
		"working-draft":    {state: working, box: "draft while working"},
		"permission-bash":  {state: dialog, line: "touch /srv/project/approved"},
		"permission-long":  {state: dialog, line: "1. Yes"},
		"permission-fetch": {state: dialog, line: "Claude wants to fetch"},
		"question":         {state: dialog, line: "2. B"},
		"trust":            {state: dialog, line: "Yes, I trust this folder"},
		"api-key":          {state: dialog, line: "Do you want to use this API key?"},
		"bypass":           {state: dialog, line: "Yes, I accept"},
		"onboarding":       {state: dialog},
		"bash-mode":        {state: menu},
		"history-search":   {state: menu},
		"transcript":       {state: menu},
		"rewind":           {state: menu},
		"agents-view":      {state: menu},
		"menu-model":       {state: menu},
		"menu-resume":      {state: menu},
		"menu-config":      {state: menu},
		"menu-help":        {state: dialog},
		"menu-permissions": {state: menu},
		"menu-theme":       {state: dialog},
		"menu-memory":      {state: dialog},
		"menu-hooks":       {state: dialog},
		"menu-status":      {state: dialog},
		"menu-export":      {state: dialog},
		"menu-agents":      {state: menu},
		"menu-tasks":       {state: menu},
	})
}

func TestCodexScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	checkScreens(t, "codex", Codex{}.ParseScreen, map[string]wantView{
		"starting":       {state: dialog},
		"welcome":        {state: ready},
		"ready":          {state: ready},
		"status":         {state: ready},
		"draft":          {state: ready, box: "draft words"},
		"draft-lines":    {state: ready, box: "para one\n\npara three"},
		"draft-pasted":   {state: ready, box: "[Pasted Content 2291 chars]"},
		"slash-menu":     {state: ready, box: "/"},
		"working":        {state: working},
		"working-queued": {state: working},
		"working-draft":  {state: working, box: "dr w"},
		"permission":     {state: dialog, line: "$ touch /srv/project/c/approved"},
		"bash-mode":      {state: menu},
		"file-menu":      {state: ready, box: "@"},
		"shortcuts":      {state: menu},
		"menu-model":     {state: menu},
		"history-search": {state: menu},
	})
}

func TestGeminiScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	checkScreens(t, "gemini", Gemini{}.ParseScreen, map[string]wantView{
		"starting":       {state: sessions.ViewStarting},
		"ready":          {state: ready},
		"draft":          {state: ready, box: "draft words"},
		"draft-lines":    {state: ready, box: "l1\n\nl3"},
		"draft-pasted":   {state: ready, box: "[Pasted Text: 600 lines]"},
		"at-popup":       {state: ready, box: "see @approved"},
		"slash-menu":     {state: ready, box: "/mod"},
		"working":        {state: working},
		"working-queued": {state: working},
		"permission":     {state: dialog, line: "Allow once"},
		"trust":          {state: dialog, line: "Trust folder"},
		"bash-mode":      {state: menu},
	})
}

func TestOpenCodeScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	checkScreens(t, "opencode", OpenCode{}.ParseScreen, map[string]wantView{
		"starting":       {state: sessions.ViewStarting},
		"home":           {state: ready},
		"ready":          {state: ready},
		"draft":          {state: ready, box: "draft words"},
		"draft-lines":    {state: ready, box: "[Pasted ~3 lines]"},
		"draft-pasted":   {state: ready, box: "[Pasted ~600 lines]"},
		"slash-menu":     {state: ready, box: "/mod"},
		"working":        {state: working},
		"working-queued": {state: working},
		"working-draft":  {state: working, box: "dr w"},
		"permission":     {state: dialog, line: "Permission required"},
		"menu-commands":  {state: menu},
		"bash-mode":      {state: menu},
	})
}
