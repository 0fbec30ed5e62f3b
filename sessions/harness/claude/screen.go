package claude

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

// boxPrompt begins the input box. The no-break space tells it from the pointer in menus and dialogs and from messages
// of the past, which have a plain one (2.1.197).
const boxPrompt = "❯\u00a0"

var (
	rulePattern     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^──.*─$`) })
	spinnerPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[·✢✳✶✻✽*] \S.*…( \(.*)?$`) })
	turnDonePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[·✢✳✶✻✽*] \S+ for `) })
	pointerPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*❯ `) })
	menuPattern     = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`Showing detailed transcript|search prompts:|⌕ Search|^\s*Rewind$|` +
			`Esc to (close|clear)|to navigate|←/→ to|Enter to set as default|enter to open|Enter to view|` +
			`Type a task to start another session`)
	})
	foldedPastePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[Pasted text #\d+ \+(\d+) lines\]$`) })
	questionPattern    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`Do you want|\b1\. Yes|trust this folder|Enter to select · .* to navigate · Esc to cancel|Would you like`)
	})
)

// ParseScreen parses the screen. It is ready only while the cursor is in the input box: every known dialog and menu hides the box or
// the cursor. An unknown screen is a dialog, so that text is held.
func (c Harness) ParseScreen(s sessions.Screen) sessions.View {
	lines := screen.Lines(s)
	if screen.IsBlank(lines) {
		return sessions.View{State: sessions.ViewStarting}
	}
	top, bottom, ok := findBox(lines, s.CursorY)
	if !ok {
		return parseDialog(lines)
	}
	below := screen.From(lines, bottom+1)
	switch {
	case strings.HasPrefix(lines[top], "!"): // what is pasted now would run in a shell
		return sessions.View{State: sessions.ViewMenu, Lines: lines[top:bottom]}
	case screen.AnyMatch(below, pointerPattern()), screen.AnyMatch(below, menuPattern()), screen.AnyMatch(lines[:top], sessionListPattern()):
		return parseDialog(lines)
	}
	view := sessions.View{State: sessions.ViewReady, Box: draft(lines[top:bottom], s, top)}
	if m := foldedPastePattern().FindStringSubmatch(view.Box); m != nil {
		view.FoldedLines, _ = strconv.Atoi(m[1]) // of digits; too many are no number of lines that anybody pasted
	}
	if isWorking(lines[:top], below) {
		view.State = sessions.ViewWorking
	}
	return view
}

// sessionListPattern matches the list of all sessions, whose box starts another one.
var sessionListPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ Type a task to start another session|^\s*▘▘ ▝▝\s+\d+ awaiting input`)
})

// findBox returns the rows of the input box around the cursor: below a rule, above the next one.
func findBox(lines []string, cursor int) (top, bottom int, ok bool) {
	for top = min(cursor, len(lines)-1); top > 0; top-- {
		if rulePattern().MatchString(lines[top]) {
			return 0, 0, false
		}
		if rulePattern().MatchString(lines[top-1]) {
			break
		}
	}
	if top <= 0 || !isBoxStart(lines[top]) {
		return 0, 0, false
	}
	n := slices.IndexFunc(lines[top:], rulePattern().MatchString)
	if n < 0 || cursor >= top+n {
		return 0, 0, false
	}
	return top, top + n, true
}

func isBoxStart(line string) bool {
	return strings.HasPrefix(line, boxPrompt) || strings.HasPrefix(line, "!\u00a0")
}

// draft returns the text in the box. A single line with the cursor before its first character is the program's suggestion.
func draft(rows []string, s sessions.Screen, top int) string {
	if len(rows) == 1 && s.CursorY == top && s.CursorX <= len([]rune(boxPrompt)) {
		return ""
	}
	text := make([]string, len(rows))
	for i, row := range rows {
		text[i] = strings.TrimPrefix(strings.TrimPrefix(row, boxPrompt), "  ")
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}

// isWorking reports whether a turn runs. The hint below the box is not always there; the line above it is.
func isWorking(above, below []string) bool {
	if slices.ContainsFunc(below, func(l string) bool { return strings.Contains(l, "esc to interrupt") }) {
		return true
	}
	for _, l := range slices.Backward(above) {
		switch {
		case spinnerPattern().MatchString(l):
			return true
		case turnDonePattern().MatchString(l), strings.HasPrefix(l, "❯"):
			return false
		}
	}
	return false
}

// parseDialog parses a screen without a box that accepts text.
func parseDialog(lines []string) sessions.View {
	view := sessions.View{State: sessions.ViewDialog, Lines: dialogLines(lines)}
	if screen.AnyMatch(view.Lines, menuPattern()) && !screen.AnyMatch(view.Lines, questionPattern()) {
		view.State = sessions.ViewMenu
	}
	return view
}

// dialogLines returns the lines below the last rule across the screen: the question without the conversation above it.
func dialogLines(lines []string) []string {
	last := screen.LastLines(lines, screen.MaxDialogLines)
	for i := len(last) - 2; i >= 0; i-- {
		if rulePattern().MatchString(last[i]) && strings.TrimSpace(strings.Trim(last[i], "─")) == "" && len(last)-i > 3 {
			return last[i+1:]
		}
	}
	return last
}
