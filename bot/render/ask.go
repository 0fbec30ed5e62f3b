package render

import (
	"fmt"
	"strings"
	"unicode"

	"the-loop/sessions"
)

// How much of what an agent asks is shown: all of it together stays below what fits into a message.
const (
	maxCommand = 7000
	maxInput   = 2500
	maxWhy     = 300
	maxPath    = 500
	maxDialog  = 2500
)

// Ask shows a question of an agent's: the tool, what it would do, where, and why. Everything is text; what cannot be seen
// is written as its number, so that nothing hides in a command. attach is the command that shows the rest of what is cut.
func Ask(a sessions.Ask, attach string) string {
	head := "The agent asks: *" + Name(seen(a.Tool)) + "*"
	if a.Permit {
		head = "The agent asks to use *" + Name(seen(a.Tool)) + "*"
	}
	if a.Cwd != "" {
		head += " in " + Code(brief(a.Cwd, maxPath))
	}
	parts := []string{head}
	if a.File != "" {
		parts = append(parts, "File: "+Code(brief(a.File, maxPath)))
	}
	if a.Command != "" {
		parts = append(parts, shown(a.Command, maxCommand, attach))
	}
	if a.Why != "" {
		parts = append(parts, "It says: "+Escape(tamer.Replace(oneLine(brief(a.Why, maxWhy)))))
	}
	if a.Input != "" {
		parts = append(parts, shown(a.Input, maxInput, attach))
	}
	return strings.Join(parts, "\n")
}

// shown is a block of text. Where it is cut, it says how much is missing, and where all of it is.
func shown(text string, limit int, attach string) string {
	text = seen(text)
	head := begins(text, limit)
	block := Preformatted(head)
	if missing := units(text) - units(head); missing > 0 {
		block += fmt.Sprintf("\n:warning: This is only the beginning: %d more characters follow. All of it, on the agent's machine: %s", missing, Code(attach))
	}
	return block
}

// brief is the beginning of a text, with a mark where it is cut.
func brief(text string, limit int) string {
	text = seen(text)
	if head := begins(text, limit); head != text {
		return head + "…"
	}
	return text
}

// begins is as much of a text as takes limit characters in a message.
func begins(text string, limit int) string {
	for i, r := range text {
		if limit -= units(Escape(string(r))); limit < 0 {
			return text[:i]
		}
	}
	return text
}

// Dialog shows the lines of a dialog on an agent's screen.
func Dialog(lines []string) string {
	return Preformatted(brief(strings.Join(lines, "\n"), maxDialog))
}

// seen writes the characters that cannot be seen, or change how others are, as their numbers.
func seen(text string) string {
	hidden := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r))
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
