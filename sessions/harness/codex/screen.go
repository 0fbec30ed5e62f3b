package codex

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

var (
	workingPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[•◦] .*esc to interrupt`) })
	menuPattern    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`enter select|esc (back|close)|Press enter|reverse-i-search|enter/tab insert`)
	})
	questionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*Would you like|Press enter to confirm`) })
)

// ParseScreen parses the screen. It is ready only while the cursor is in the box, above the footer: dialogs and menus hide
// the cursor in the last corner of the screen (0.171.0).
func (c Harness) ParseScreen(s sessions.Screen) sessions.View {
	lines := screen.Lines(s)
	if screen.IsBlank(lines) {
		return sessions.View{State: sessions.ViewStarting}
	}
	top, bottom, ok := findBox(lines, s.CursorY)
	if !ok || screen.AnyMatch(screen.From(lines, top), questionPattern()) {
		view := sessions.View{State: sessions.ViewDialog, Lines: screen.LastLines(lines, screen.MaxDialogLines)}
		if screen.AnyMatch(lines, menuPattern()) && !screen.AnyMatch(lines, questionPattern()) {
			view.State = sessions.ViewMenu
		}
		return view
	}
	if strings.HasPrefix(lines[top], "!") { // what is pasted now would run in a shell
		return sessions.View{State: sessions.ViewMenu, Lines: lines[top:bottom]}
	}
	view := sessions.View{State: sessions.ViewReady, Box: draft(lines[top:bottom], s, top)}
	if screen.AnyMatch(lines[:top], workingPattern()) {
		view.State = sessions.ViewWorking
	}
	return view
}

// findBox returns the rows of the box around the cursor: from its pointer down to the blank line above the footer.
func findBox(lines []string, cursor int) (top, bottom int, ok bool) {
	footer := len(lines)
	for footer > 0 && strings.TrimSpace(lines[footer-1]) == "" {
		footer--
	}
	end := footer
	for footer > 0 && strings.TrimSpace(lines[footer-1]) != "" {
		footer--
	}
	if cursor >= footer || end-footer > 3 || screen.AnyMatch(lines[footer:end], menuPattern()) {
		return 0, 0, false
	}
	for top = cursor; top >= 0; top-- {
		if strings.HasPrefix(lines[top], "› ") || lines[top] == "›" || lines[top] == "!" || strings.HasPrefix(lines[top], "! ") {
			return top, footer, true
		}
		if lines[top] != "" && !strings.HasPrefix(lines[top], "  ") {
			break
		}
	}
	return 0, 0, false
}

// draft returns the text in the box. A suggestion of the program's has the cursor before its first character.
func draft(rows []string, s sessions.Screen, top int) string {
	if s.CursorY == top && s.CursorX <= 2 && !slices.ContainsFunc(rows[1:], func(r string) bool { return r != "" }) {
		return ""
	}
	text := make([]string, len(rows))
	for i, row := range rows {
		text[i] = strings.TrimPrefix(strings.TrimPrefix(row, "›"), "  ")
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}
