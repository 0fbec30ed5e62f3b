package harness

import (
	"regexp"
	"strings"
	"sync"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

var (
	geminiWorking = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .*esc to cancel`)
	})
	geminiQuestion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*│\s*● \d+\. `) })
	geminiRule     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^─+$`) })
)

// ParseScreen reads the screen. It says ready only while the cursor stands in the box, which the rule above it and its pointer
// show (0.61.0): dialogs take the box away.
func (g Gemini) ParseScreen(s sessions.Screen) sessions.View {
	lines := screen.Lines(s)
	if screen.IsBlank(lines) {
		return sessions.View{State: sessions.ViewStarting}
	}
	top, ok := findGeminiBox(lines, s.CursorY)
	switch {
	case !ok || screen.AnyMatch(lines, geminiQuestion()):
		return sessions.View{State: sessions.ViewDialog, Lines: screen.LastLines(lines, screen.MaxDialogLines)}
	case strings.HasPrefix(lines[top], " !"): // what is pasted now would run in a shell
		return sessions.View{State: sessions.ViewMenu, Lines: lines[top : s.CursorY+1]}
	}
	view := sessions.View{State: sessions.ViewReady, Box: geminiDraft(lines, s, top)}
	if screen.AnyMatch(lines[:top], geminiWorking()) {
		view.State = sessions.ViewWorking
	}
	return view
}

// findGeminiBox finds the first row of the box that the cursor stands in.
func findGeminiBox(lines []string, cursor int) (top int, ok bool) {
	for top = min(cursor, len(lines)-1); top >= 0; top-- {
		if strings.HasPrefix(lines[top], " > ") || strings.HasPrefix(lines[top], " ! ") {
			break
		}
		if lines[top] != "" && !strings.HasPrefix(lines[top], "   ") {
			return 0, false
		}
	}
	for i := top - 1; i >= max(0, top-4); i-- {
		if geminiRule().MatchString(lines[i]) {
			return top, true
		}
	}
	return 0, false
}

// geminiDraft is what stands in the box: until the last row above the footer, which two lines of columns make. A suggestion
// has the cursor before its first character.
func geminiDraft(lines []string, s sessions.Screen, top int) string {
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
