package harness

import (
	"regexp"
	"strings"
	"sync"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

var (
	openCodeBoxRow  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\s*)┃(.*)$`) })
	openCodeBoxEdge = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*╹▀`) })
	openCodeWorking = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`esc (again to )?interrupt`) })
)

// ParseScreen reads the screen. It says ready only while the cursor stands in the box, which its lower edge shows: dialogs hide the
// cursor in the last corner of the screen, and the one for permissions takes the box away (1.18.33).
func (o OpenCode) ParseScreen(s sessions.Screen) sessions.View {
	lines := screen.Lines(s)
	if screen.IsBlank(lines) {
		return sessions.View{State: sessions.ViewStarting}
	}
	top, bottom, ok := findOpenCodeBox(lines, s.CursorY)
	if !ok {
		view := sessions.View{State: sessions.ViewDialog, Lines: screen.LastLines(lines, screen.MaxDialogLines)}
		if screen.AnyMatch(lines, openCodeBoxEdge()) {
			view.State = sessions.ViewMenu
		}
		return view
	}
	if rows := lines[top:bottom]; isOpenCodeShell(rows) { // what is pasted now would run in a shell
		return sessions.View{State: sessions.ViewMenu, Lines: rows}
	}
	view := sessions.View{State: sessions.ViewReady, Box: openCodeDraft(lines[top:bottom], s, top)}
	if screen.AnyMatch(screen.From(lines, bottom), openCodeWorking()) {
		view.State = sessions.ViewWorking
	}
	return view
}

// findOpenCodeBox finds the rows of the box around the cursor, down to its lower edge.
func findOpenCodeBox(lines []string, cursor int) (top, bottom int, ok bool) {
	if cursor >= len(lines) || !openCodeBoxRow().MatchString(lines[cursor]) || strings.Count(lines[cursor], "┃") > 1 {
		return 0, 0, false
	}
	for top = cursor; top > 0 && openCodeBoxRow().MatchString(lines[top-1]) && strings.Count(lines[top-1], "┃") == 1; top-- {
	}
	for bottom = cursor; bottom < len(lines) && openCodeBoxRow().MatchString(lines[bottom]); bottom++ {
	}
	return top, bottom, bottom < len(lines) && openCodeBoxEdge().MatchString(lines[bottom])
}

// isOpenCodeShell reports the shell's mode, which the last row of the box names.
func isOpenCodeShell(rows []string) bool {
	m := openCodeBoxRow().FindStringSubmatch(rows[len(rows)-1])
	return m != nil && strings.HasPrefix(strings.TrimSpace(m[2]), "Shell")
}

// openCodeDraft is what stands in the box above the row that names the model. A suggestion has the cursor before its first
// character.
func openCodeDraft(rows []string, s sessions.Screen, top int) string {
	first := openCodeBoxRow().FindStringSubmatch(rows[s.CursorY-top])
	if before := len([]rune(first[1])) + 3; s.CursorX <= before {
		if s.CursorY-top <= 1 {
			return ""
		}
	}
	var text []string
	for _, row := range rows[:len(rows)-1] {
		text = append(text, strings.TrimPrefix(openCodeBoxRow().FindStringSubmatch(row)[2], "  "))
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}
