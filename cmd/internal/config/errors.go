package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Problem is one thing that is wrong, or worth a warning, and what to do about it.
type Problem struct {
	File    string
	Line    int    // from 1; 0 when it concerns the file as a whole
	Column  int    // from 1; 0 as for Line
	Key     string // dotted, as in standingSessions.sessions[1].name; empty for the whole file
	Message string // "what is wrong — what to do"
}

// String is the problem on one line: FILE:LINE: KEY: message.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": " + p.Message)
	return b.String()
}

// Error is a configuration that was refused. It has at least one problem, in the order of the file.
type Error struct{ Problems []Problem }

// maxProblemsShown keeps a file that is wrong throughout from filling the terminal.
const maxProblemsShown = 30

// Error gives each problem a line of its own; of very many only the first.
func (e *Error) Error() string {
	lines := make([]string, 0, min(len(e.Problems), maxProblemsShown)+1)
	for _, p := range e.Problems[:min(len(e.Problems), maxProblemsShown)] {
		lines = append(lines, p.String())
	}
	if more := len(e.Problems) - maxProblemsShown; more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more problems", e.Problems[0].File, more))
	}
	return strings.Join(lines, "\n")
}

// joinProblems sorts problems into an error; nil when there are none.
func joinProblems(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Key, b.Key))
	})
	return &Error{Problems: slices.Compact(sorted)}
}

// newFileError is an error about the file as a whole.
func newFileError(file, format string, args ...any) error {
	return &Error{Problems: []Problem{{File: file, Message: redact(fmt.Sprintf(format, args...))}}}
}

var (
	// secretPattern is anything that looks like a credential: Slack's, GitHub's, the model vendors'.
	secretPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(xox[a-z](\.xox[a-z])?-|xapp-|gh[pousr]_|github_pat_|\bsk-)[A-Za-z0-9._=-]+`)
	})
	// slackTokenPattern is what is long enough to be a Slack token and no mere mention of its kind.
	slackTokenPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(xox[a-z](\.xox[a-z])?|xapp)-[A-Za-z0-9-]{8,}`) })
)

// redact takes out what could be a credential: messages quote what stands in the file.
func redact(s string) string { return secretPattern().ReplaceAllString(s, "[not shown]") }

// quoteValue quotes a value of the file for a message: short, on one line, and without credentials.
func quoteValue(s string) string {
	const limit = 40
	s = redact(s)
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
