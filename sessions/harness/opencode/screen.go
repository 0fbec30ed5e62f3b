package opencode

import (
	"regexp"
	"strings"
	"sync"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

var (
	boxRowPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\s*)┃(.*)$`) })
	boxEdgePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*╹▀`) })
	workingPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`esc (again to )?interrupt`) })
)

// ParseScreen parses the screen. It is ready only while the cursor is in the box, which its lower edge shows: dialogs hide the
// cursor in the last corner of the screen, and the one for permissions takes the box away (1.18.33).
func (o Harness) ParseScreen(s sessions.Screen) sessions.View {
	lines := screen.Lines(s)
	if screen.IsBlank(lines) {
		return sessions.View{State: sessions.ViewStarting}
	}
	top, bottom, ok := findBox(lines, s.CursorY)
	if !ok {
		view := sessions.View{State: sessions.ViewDialog, Lines: screen.LastLines(lines, screen.MaxDialogLines)}
		if screen.AnyMatch(lines, boxEdgePattern()) {
			view.State = sessions.ViewMenu
		}
		return view
	}
	if rows := lines[top:bottom]; isShell(rows) { // what is pasted now would run in a shell
		return sessions.View{State: sessions.ViewMenu, Lines: rows}
	}
	view := sessions.View{State: sessions.ViewReady, Box: draft(lines[top:bottom], s, top)}
	if screen.AnyMatch(screen.From(lines, bottom), workingPattern()) {
		view.State = sessions.ViewWorking
	}
	return view
}

// findBox returns the rows of the box around the cursor, down to its lower edge.
func findBox(lines []string, cursor int) (top, bottom int, ok bool) {
	if cursor >= len(lines) || !boxRowPattern().MatchString(lines[cursor]) || strings.Count(lines[cursor], "┃") > 1 {
		return 0, 0, false
	}
	for top = cursor; top > 0 && boxRowPattern().MatchString(lines[top-1]) && strings.Count(lines[top-1], "┃") == 1; top-- {
	}
	for bottom = cursor; bottom < len(lines) && boxRowPattern().MatchString(lines[bottom]); bottom++ {
	}
	return top, bottom, bottom < len(lines) && boxEdgePattern().MatchString(lines[bottom])
}

// isShell reports whether the box is in the shell's mode, which its last row names.
func isShell(rows []string) bool {
	m := boxRowPattern().FindStringSubmatch(rows[len(rows)-1])
	return m != nil && strings.HasPrefix(strings.TrimSpace(m[2]), "Shell")
}

// draft returns the text in the box, above the row that names the model. A suggestion of the program's has the cursor before its
// first character.
func draft(rows []string, s sessions.Screen, top int) string {
	first := boxRowPattern().FindStringSubmatch(rows[s.CursorY-top])
	if before := len([]rune(first[1])) + 3; s.CursorX <= before {
		if s.CursorY-top <= 1 {
			return ""
		}
	}
	var text []string
	for _, row := range rows[:len(rows)-1] {
		text = append(text, strings.TrimPrefix(boxRowPattern().FindStringSubmatch(row)[2], "  "))
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}
