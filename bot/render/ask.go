package render

import (
	"fmt"
	"regexp"
	"strings"

	"the-loop/sessions"
)

// How much of what an agent asks is shown: all of it together stays below what fits into a message.
const (
	maxAsk     = 11000
	maxCommand = 7000
	maxInput   = 2500
	maxWhy     = 300
	maxPath    = 4200 // no system takes longer ones
	maxTool    = 200
	maxInline  = 300 // longer paths stand in a block
	maxDialog  = 2500
	askSpare   = 1200 // for what is said about the rest
)

// Ask shows a question of an agent's: the tool, what it would do, where, and why. Everything is text; what cannot be seen
// is written as its number, so that nothing hides in a command, and it is said where letters mislead. attach is the command
// that shows the rest of what is cut. whole reports whether all that matters is there: the tool, the paths and where they
// lead to, and the command.
func Ask(a sessions.PermissionRequest, attach string) (text string, whole bool) {
	q := &question{room: maxAsk - askSpare, attach: attach, whole: !a.Unresolved}
	q.head(a)
	q.place("File: ", a.File, a.FileTargets)
	if a.Command != "" {
		block, all := q.shown(a.Command, maxCommand)
		q.add(block)
		q.whole = q.whole && all
	}
	if a.Explanation != "" {
		why, all := q.begins(reveal(a.Explanation, true), maxWhy)
		q.add("It says: " + Code(ellipsis(why, all)))
	}
	if a.Input != "" {
		block, _ := q.shown(a.Input, maxInput)
		q.add(block)
	}
	texts := append(append([]string{a.Tool, a.Cwd, a.File, a.Command, a.Explanation, a.Input}, a.CwdTargets...), a.FileTargets...)
	q.parts = append(q.parts, deceptions(texts...)...)
	if !q.whole {
		q.parts = append(q.parts, q.why(a))
	}
	return strings.Join(q.parts, "\n"), q.whole
}

// question is the text of a question, part by part.
type question struct {
	parts  []string
	room   int // characters that are left
	attach string
	whole  bool
}

func (q *question) add(part string) {
	q.parts = append(q.parts, part)
	q.room -= units(part) + 1
}

// plainTool are the names of tools that mean nothing to Slack.
var plainTool = regexp.MustCompile(`^[A-Za-z0-9]+$`)

func (q *question) head(a sessions.PermissionRequest) {
	name, all := q.begins(reveal(a.Tool, true), maxTool)
	q.whole = q.whole && all
	if name = ellipsis(name, all); plainTool.MatchString(name) {
		name = "*" + name + "*"
	} else {
		name = Code(name)
	}
	head := "The agent asks: " + name
	if a.Decidable {
		head = "The agent asks to use " + name
	}
	if a.Cwd == "" {
		q.add(head)
		return
	}
	q.place(head+" in ", a.Cwd, a.CwdTargets)
}

// place adds a path as it was given and what it leads to.
func (q *question) place(before, path string, leads []string) {
	if path == "" {
		return
	}
	q.add(before + q.path(path))
	for i, to := range leads {
		before := "which leads to "
		if i > 0 {
			before = "or, where “..” is taken after links are followed, to "
		}
		q.add(before + q.path(to))
	}
}

// path is a path, in a block when it is long. One that is not all there is not to be decided on.
func (q *question) path(path string) string {
	text, all := q.begins(reveal(path, true), maxPath)
	q.whole = q.whole && all
	if text = ellipsis(text, all); units(text) > maxInline {
		return "\n" + Preformatted(text)
	}
	return Code(text)
}

// shown is a block of text. Where it is cut, it says how much is missing, and where all of it is.
func (q *question) shown(text string, limit int) (block string, all bool) {
	text = reveal(text, false)
	head, all := q.begins(text, limit)
	block = Preformatted(head)
	if !all {
		block += fmt.Sprintf("\n:warning: This is only the beginning: %d more characters follow. All of it, on the agent's machine: %s",
			units(text)-units(head), Code(q.attach))
	}
	return block, all
}

// why says why a question is not decided here.
func (q *question) why(a sessions.PermissionRequest) string {
	if a.Unresolved {
		return ":warning: I could not find out where its paths lead to, so it is not decided here. See it on the agent's machine: " + Code(q.attach)
	}
	return ":warning: It is too long to be shown whole, so it is not decided here. See it on the agent's machine: " + Code(q.attach)
}

// begins is as much of a text as there is room for, and at most limit characters.
func (q *question) begins(text string, limit int) (head string, all bool) {
	head = begins(text, max(0, min(limit, q.room)))
	return head, head == text
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

func ellipsis(text string, all bool) string {
	if all {
		return text
	}
	return text + "…"
}

// Dialog shows the lines of a dialog on an agent's screen.
func Dialog(lines []string) string {
	trimmed := make([]string, 0, len(lines))
	for _, line := range lines {
		trimmed = append(trimmed, strings.TrimRight(line, " "))
	}
	text := reveal(strings.Trim(strings.Join(trimmed, "\n"), "\n"), false)
	head := begins(text, maxDialog)
	return Preformatted(ellipsis(head, head == text))
}
