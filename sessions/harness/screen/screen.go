package screen

import (
	"regexp"
	"slices"
	"strings"

	"the-loop/sessions"
)

// MaxDialogLines is how many lines of a dialog are shown to a person.
const MaxDialogLines = 20

// Lines returns the lines of a screen without the blanks at their ends.
func Lines(s sessions.Screen) []string {
	lines := strings.Split(s.Text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return lines
}

// IsBlank reports whether all lines are blank.
func IsBlank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
}

// LastLines returns the last n lines that are not blank.
func LastLines(lines []string, n int) []string {
	var last []string
	for _, l := range slices.Backward(lines) {
		if strings.TrimSpace(l) != "" && len(last) < n {
			last = append(last, l)
		}
	}
	slices.Reverse(last)
	return last
}

// From returns lines[i:], and nothing where i is beyond the end.
func From(lines []string, i int) []string { return lines[min(max(i, 0), len(lines)):] }

// AnyMatch reports whether one of the lines matches.
func AnyMatch(lines []string, re *regexp.Regexp) bool {
	return slices.ContainsFunc(lines, re.MatchString)
}
