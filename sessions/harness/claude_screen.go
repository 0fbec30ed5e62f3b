package harness

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"the-loop/sessions"
	"the-loop/sessions/harness/screen"
)

// claudePrompt begins the input box. The no-break space tells it from the pointer in menus and dialogs and from messages
// of the past, which have a plain one (2.1.197).
const claudePrompt = "❯\u00a0"

var (
	claudeRule     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^──.*─$`) })
	claudeSpinner  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[·✢✳✶✻✽*] \S.*…( \(.*)?$`) })
	claudeTurnDone = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[·✢✳✶✻✽*] \S+ for `) })
	claudePointer  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*❯ `) })
	claudeMenu     = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`Showing detailed transcript|search prompts:|⌕ Search|^\s*Rewind$|` +
			`Esc to (close|clear)|to navigate|←/→ to|Enter to set as default|enter to open|Enter to view|` +
			`Type a task to start another session`)
	})
	claudeFoldedPaste = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[Pasted text #\d+ \+(\d+) lines\]$`) })
	claudeQuestion    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`Do you want|\b1\. Yes|trust this folder|Enter to select · ↑/↓ to navigate · Esc to cancel|Would you like`)
	})
)

// ParseScreen reads the screen. It says ready only while the cursor stands in the input box: every dialog and menu that was seen
// takes either the box or the cursor away. What it does not know is a dialog, since text is held back then.
func (c Claude) ParseScreen(s sessions.Screen) sessions.View {
	lines := screen.Lines(s)
	if screen.IsBlank(lines) {
		return sessions.View{State: sessions.ViewStarting}
	}
	top, bottom, ok := findClaudeBox(lines, s.CursorY)
	if !ok {
		return parseClaudeDialog(lines)
	}
	below := screen.From(lines, bottom+1)
	switch {
	case strings.HasPrefix(lines[top], "!"): // what is pasted now would run in a shell
		return sessions.View{State: sessions.ViewMenu, Lines: lines[top:bottom]}
	case screen.AnyMatch(below, claudePointer()), screen.AnyMatch(below, claudeMenu()), screen.AnyMatch(lines[:top], claudeSessionList()):
		return parseClaudeDialog(lines)
	}
	view := sessions.View{State: sessions.ViewReady, Box: claudeDraft(lines[top:bottom], s, top)}
	if m := claudeFoldedPaste().FindStringSubmatch(view.Box); m != nil {
		view.FoldedLines, _ = strconv.Atoi(m[1]) // of digits; too many are no number of lines that anybody pasted
	}
	if isClaudeWorking(lines[:top], below) {
		view.State = sessions.ViewWorking
	}
	return view
}

// claudeSessionList is the view of all sessions, whose box starts another one.
var claudeSessionList = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ Type a task to start another session|^\s*▘▘ ▝▝\s+\d+ awaiting input`)
})

// findClaudeBox finds the rows of the input box around the cursor: below a rule, above the next one.
func findClaudeBox(lines []string, cursor int) (top, bottom int, ok bool) {
	for top = min(cursor, len(lines)-1); top > 0; top-- {
		if claudeRule().MatchString(lines[top]) {
			return 0, 0, false
		}
		if claudeRule().MatchString(lines[top-1]) {
			break
		}
	}
	if top <= 0 || !isClaudeBoxStart(lines[top]) {
		return 0, 0, false
	}
	n := slices.IndexFunc(lines[top:], claudeRule().MatchString)
	if n < 0 || cursor >= top+n {
		return 0, 0, false
	}
	return top, top + n, true
}

func isClaudeBoxStart(line string) bool {
	return strings.HasPrefix(line, claudePrompt) || strings.HasPrefix(line, "!\u00a0")
}

// claudeDraft is what stands in the box. A single line with the cursor before its first character is a suggestion of the
// program's, not a draft.
func claudeDraft(rows []string, s sessions.Screen, top int) string {
	if len(rows) == 1 && s.CursorY == top && s.CursorX <= len([]rune(claudePrompt)) {
		return ""
	}
	text := make([]string, len(rows))
	for i, row := range rows {
		text[i] = strings.TrimPrefix(strings.TrimPrefix(row, claudePrompt), "  ")
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}

// isClaudeWorking reports a running turn. The hint below the box is not always there; the line above it is.
func isClaudeWorking(above, below []string) bool {
	if slices.ContainsFunc(below, func(l string) bool { return strings.Contains(l, "esc to interrupt") }) {
		return true
	}
	for _, l := range slices.Backward(above) {
		switch {
		case claudeSpinner().MatchString(l):
			return true
		case claudeTurnDone().MatchString(l), strings.HasPrefix(l, "❯"):
			return false
		}
	}
	return false
}

// parseClaudeDialog is a screen without a box that takes text.
func parseClaudeDialog(lines []string) sessions.View {
	view := sessions.View{State: sessions.ViewDialog, Lines: claudeDialogLines(lines)}
	if screen.AnyMatch(view.Lines, claudeMenu()) && !screen.AnyMatch(view.Lines, claudeQuestion()) {
		view.State = sessions.ViewMenu
	}
	return view
}

// claudeDialogLines are the lines from the last rule that spans the screen on: what is asked, without the talk above it.
func claudeDialogLines(lines []string) []string {
	last := screen.LastLines(lines, screen.MaxDialogLines)
	for i := len(last) - 2; i >= 0; i-- {
		if claudeRule().MatchString(last[i]) && strings.TrimSpace(strings.Trim(last[i], "─")) == "" && len(last)-i > 3 {
			return last[i+1:]
		}
	}
	return last
}
