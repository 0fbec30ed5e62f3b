package gemini

import (
	"regexp"
	"strings"
	"sync"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

var (
	workingPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .*esc to cancel`)
	})
	questionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*│\s*● \d+\. `) })
	rulePattern     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^─+$`) })
)

// ParseScreen parses the screen. It is ready only while the cursor is in the box, which the rule above it and its pointer
// show (0.61.0): dialogs take the box away.
func (g Harness) ParseScreen(s sessions.Screen) sessions.View {
	lines := screen.Lines(s)
	if screen.IsBlank(lines) {
		return sessions.View{State: sessions.ViewStarting}
	}
	top, ok := findBox(lines, s.CursorY)
	switch {
	case !ok || screen.AnyMatch(lines, questionPattern()):
		return sessions.View{State: sessions.ViewDialog, Lines: screen.LastLines(lines, screen.MaxDialogLines)}
	case strings.HasPrefix(lines[top], " !"): // what is pasted now would run in a shell
		return sessions.View{State: sessions.ViewMenu, Lines: lines[top : s.CursorY+1]}
	}
	view := sessions.View{State: sessions.ViewReady, Box: draft(lines, s, top)}
	if screen.AnyMatch(lines[:top], workingPattern()) {
		view.State = sessions.ViewWorking
	}
	return view
}

// findBox returns the first row of the box that the cursor is in.
func findBox(lines []string, cursor int) (top int, ok bool) {
	for top = min(cursor, len(lines)-1); top >= 0; top-- {
		if strings.HasPrefix(lines[top], " > ") || strings.HasPrefix(lines[top], " ! ") {
			break
		}
		if lines[top] != "" && !strings.HasPrefix(lines[top], "   ") {
			return 0, false
		}
	}
	for i := top - 1; i >= max(0, top-4); i-- {
		if rulePattern().MatchString(lines[i]) {
			return top, true
		}
	}
	return 0, false
}

// draft returns the text in the box, down to the footer. A suggestion of the program's has the cursor before its first character.
func draft(lines []string, s sessions.Screen, top int) string {
	if s.CursorY == top && s.CursorX <= 3 {
		return ""
	}
	text := []string{strings.TrimPrefix(lines[top], " > ")}
	for _, l := range lines[top+1:] {
		if l != "" && !strings.HasPrefix(l, "   ") {
			break
		}
		text = append(text, strings.TrimPrefix(l, "   "))
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}
