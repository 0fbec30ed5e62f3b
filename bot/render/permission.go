package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"the-loop/bot/render/visible"
	"the-loop/sessions"
)

// How much of what an agent asks is shown: all of it together stays below what fits into a message.
const (
	maxPermission     = 11000
	maxCommand        = 7000
	maxInput          = 2500
	maxExplanation    = 300
	maxPath           = 4200 // no system takes longer ones
	maxTool           = 200
	maxInlinePath     = 300 // longer paths stand in a block
	maxDialog         = 2500
	permissionReserve = 1200 // for what is said about the rest
)

// PermissionText shows a question of an agent's: the tool, what it would do, where, and why. Everything is text; what cannot be seen
// is written as its number, so that nothing hides in a command, and it is said where letters mislead. attach is the command
// that shows the rest of what is cut. whole reports whether all that matters is there: the tool, the paths and where they
// lead to, the command, the plan and the questions.
func PermissionText(a sessions.PermissionRequest, attach string) (text string, whole bool) {
	q := writePermission(a, attach, "")
	return strings.Join(q.parts, "\n"), q.complete
}

// PermissionFile is [PermissionText] beside a file with all of it, which is posted first. The content is empty when nothing is cut.
func PermissionFile(a sessions.PermissionRequest, attach, name string) (text, content string) {
	q := writePermission(a, attach, name)
	if !q.cut {
		return "", ""
	}
	return strings.Join(q.parts, "\n"), permissionContent(a)
}

// permissionContent is all of a question, as a text.
func permissionContent(a sessions.PermissionRequest) string {
	var b strings.Builder
	add := func(name string, texts ...string) {
		for _, text := range texts {
			if text != "" {
				fmt.Fprintf(&b, "%s:\n%s\n\n", name, visible.Show(text, false))
			}
		}
	}
	add("Tool", a.Tool)
	add("Folder", a.Cwd)
	add("which leads to", a.CwdTargets...)
	add("File", a.File)
	add("which leads to", a.FileTargets...)
	add("Command", a.Command)
	add("Change", a.Diff)
	if a.Plan != "" {
		add("Plan", a.Plan)
	}
	for i, block := range questionBlocks(a) {
		if a.Plan == "" {
			add(fmt.Sprintf("Question %d", i+1), block)
		}
	}
	add("It says", a.Explanation)
	add("Input", a.Input)
	return b.String()
}

func writePermission(a sessions.PermissionRequest, attach, file string) *permissionWriter {
	q := &permissionWriter{remaining: maxPermission - permissionReserve, attach: attach, file: file, complete: !a.Unresolved}
	q.writeHeader(a)
	for _, block := range questionBlocks(a) {
		text, all := q.codeBlock(block, maxCommand)
		q.add(text)
		q.complete = q.complete && all
	}
	q.addPath("File: ", a.File, a.FileTargets)
	if a.Command != "" {
		block, all := q.codeBlock(a.Command, maxCommand)
		q.add(block)
		q.complete = q.complete && all
	}
	if a.Diff != "" {
		block, _ := q.codeBlock(a.Diff, maxCommand)
		q.add(block)
	}
	if a.Explanation != "" {
		why, all := q.truncate(visible.Show(a.Explanation, true), maxExplanation)
		q.add("It says: " + InlineCode(withEllipsis(why, all)))
	}
	if a.Input != "" {
		block, _ := q.codeBlock(a.Input, maxInput)
		q.add(block)
	}
	texts := slices.Concat([]string{a.Tool, a.Cwd, a.File, a.Command, a.Diff, a.Explanation, a.Input}, questionBlocks(a), a.CwdTargets, a.FileTargets)
	q.parts = append(q.parts, visible.SpoofingWarnings(texts...)...)
	if !q.complete {
		q.parts = append(q.parts, q.undecidableNote(a))
	}
	return q
}

// questionBlocks are what an agent asks beside permission, a block for each question, or the plan.
func questionBlocks(a sessions.PermissionRequest) []string {
	if a.Plan != "" {
		return []string{a.Plan}
	}
	var blocks []string
	for _, question := range a.Questions {
		var b strings.Builder
		b.WriteString(question.Text)
		if question.Multiple {
			b.WriteString(" (more than one may be chosen)")
		}
		for i, o := range question.Options {
			fmt.Fprintf(&b, "\n%d. %s", i+1, o.Label)
			if o.Description != "" {
				b.WriteString(": " + o.Description)
			}
		}
		blocks = append(blocks, b.String())
	}
	return blocks
}

// permissionWriter is the text of a question, part by part.
type permissionWriter struct {
	parts     []string
	remaining int // characters that are left
	attach    string
	file      string // with all of it; empty: there is none
	cut       bool   // something is not all there
	complete  bool   // all that matters is there
}

func (q *permissionWriter) add(part string) {
	q.parts = append(q.parts, part)
	q.remaining -= utf16Len(part) + 1
}

// plainToolName are the names of tools that mean nothing to Slack.
var plainToolName = regexp.MustCompile(`^[A-Za-z0-9]+$`)

func (q *permissionWriter) writeHeader(a sessions.PermissionRequest) {
	name, all := q.truncate(visible.Show(a.Tool, true), maxTool)
	q.complete = q.complete && all
	if name = withEllipsis(name, all); plainToolName.MatchString(name) {
		name = "*" + name + "*"
	} else {
		name = InlineCode(name)
	}
	head := "The agent asks: " + name
	switch {
	case len(a.Questions) > 0:
		head = "The agent has a question"
	case a.Plan != "":
		head = "The agent has a plan"
	case a.Decidable:
		head = "The agent asks to use " + name
	}
	if a.Cwd == "" {
		q.add(head)
		return
	}
	q.addPath(head+" in ", a.Cwd, a.CwdTargets)
}

// addPath adds a path as it was given and what it leads to.
func (q *permissionWriter) addPath(before, path string, leads []string) {
	if path == "" {
		return
	}
	q.add(before + q.formatPath(path))
	for i, to := range leads {
		before := "which leads to "
		if i > 0 {
			before = "or, where “..” is taken after links are followed, to "
		}
		q.add(before + q.formatPath(to))
	}
}

// formatPath is a path, in a block when it is long. One that is not all there is not to be decided on.
func (q *permissionWriter) formatPath(path string) string {
	text, all := q.truncate(visible.Show(path, true), maxPath)
	q.complete = q.complete && all
	if text = withEllipsis(text, all); utf16Len(text) > maxInlinePath {
		return "\n" + Preformatted(text)
	}
	return InlineCode(text)
}

// codeBlock is a block of text. Where it is cut, it says how much is missing, and where all of it is.
func (q *permissionWriter) codeBlock(text string, limit int) (block string, all bool) {
	text = visible.Show(text, false)
	head, all := q.truncate(text, limit)
	block = Preformatted(head)
	if !all {
		block += fmt.Sprintf("\n:warning: This is only the beginning: %d more characters follow. %s", utf16Len(text)-utf16Len(head), q.whereAll())
	}
	return block, all
}

// whereAll says where all of the question is.
func (q *permissionWriter) whereAll() string {
	if q.file != "" {
		return "All of it is in the file " + InlineCode(q.file) + " above."
	}
	return "All of it, on the agent's machine: " + InlineCode(q.attach)
}

// undecidableNote says why a question is not decided here, or what to read first.
func (q *permissionWriter) undecidableNote(a sessions.PermissionRequest) string {
	if a.Unresolved {
		return ":warning: I could not find out where its paths lead to, so it is not decided here. See it on the agent's machine: " + InlineCode(q.attach)
	}
	if q.file != "" {
		return ":warning: It is too long to be shown whole here. " + q.whereAll() + " Read it before you decide."
	}
	return ":warning: It is too long to be shown whole, so it is not decided here. See it on the agent's machine: " + InlineCode(q.attach)
}

// truncate is as much of a text as there is room for, and at most limit characters.
func (q *permissionWriter) truncate(text string, limit int) (head string, all bool) {
	head = truncateEscaped(text, max(0, min(limit, q.remaining)))
	q.cut = q.cut || head != text
	return head, head == text
}

// truncateEscaped is as much of a text as takes limit characters in a message.
func truncateEscaped(text string, limit int) string {
	for i, r := range text {
		if limit -= utf16Len(Escape(string(r))); limit < 0 {
			return text[:i]
		}
	}
	return text
}

func withEllipsis(text string, all bool) string {
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
	text := visible.Show(strings.Trim(strings.Join(trimmed, "\n"), "\n"), false)
	head := truncateEscaped(text, maxDialog)
	return Preformatted(withEllipsis(head, head == text))
}
