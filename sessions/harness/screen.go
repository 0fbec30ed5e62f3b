package harness

import (
	"regexp"
	"slices"
	"strings"

	"the-loop/sessions"
)

// maxDialogLines is how many lines of a dialog are shown to a person.
const maxDialogLines = 20

// screenLines are the lines of a screen without what is blank at their ends.
func screenLines(s sessions.Screen) []string {
	lines := strings.Split(s.Text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return lines
}

// isBlank reports a screen on which nothing stands.
func isBlank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
}

// lastLines are the last lines on which something stands.
func lastLines(lines []string, n int) []string {
	var last []string
	for _, l := range slices.Backward(lines) {
		if strings.TrimSpace(l) != "" && len(last) < n {
			last = append(last, l)
		}
	}
	slices.Reverse(last)
	return last
}

// linesFrom is lines[i:], and empty beyond the end.
func linesFrom(lines []string, i int) []string { return lines[min(max(i, 0), len(lines)):] }

// anyMatch reports whether one of the lines matches.
func anyMatch(lines []string, re *regexp.Regexp) bool {
	return slices.ContainsFunc(lines, re.MatchString)
}
