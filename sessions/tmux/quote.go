package tmux

import (
	"fmt"
	"strings"
)

// quote writes s as one word of tmux's command language. Every byte that the parser could take for something else is
// escaped, and bytes outside printable ASCII are written in octal: within single quotes tmux 3.3a ends the word at a
// byte that is not UTF-8 and runs the rest. So is #: run-shell expands formats in the command that it puts off, at once
// and for whatever pane is current then, so that a guard in it would be decided long before it counts.
func quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20 || c >= 0x7f || c == '#':
			fmt.Fprintf(&b, `\%03o`, c)
		case strings.IndexByte("\\\"$~`", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// command writes one command of tmux's language.
func command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// sequence joins commands so that one which fails keeps those after it from running.
func sequence(commands ...string) string { return strings.Join(commands, " ; ") }

// argument protects a word of a client's argv, where a trailing semicolon would end the command.
func argument(s string) string {
	if strings.HasSuffix(s, ";") {
		return s[:len(s)-1] + `\;`
	}
	return s
}
