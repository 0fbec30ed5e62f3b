package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
	"the-loop/threads/outbox"
	"the-loop/threads/relay"
)

// answerPages is how many messages one text of an agent may take. Of a longer one the thread gets the beginning.
const answerPages = 5

// Texts renders what agents say, ask and show. The values of the environment are removed before a text is cut, so that none is hidden
// in two halves.
type Texts struct {
	Scrub func(string) string // removes the values of the environment from a text
}

// Answer renders what an agent said. It implements [relay.AnswerRenderer].
func (t Texts) Answer(ref sessions.Ref, m sessions.AgentMessage) relay.Rendering {
	text := t.Scrub(m.Text)
	pages, cut := render.FirstPages(text, answerPages)
	texts := make([]string, 0, len(pages))
	for _, p := range pages {
		texts = append(texts, p.Text)
	}
	if len(texts) == 0 {
		return relay.Rendering{}
	}
	if m.Failed {
		texts[0] = ":warning: The turn ended with an error:\n" + texts[0]
	}
	r := relay.Rendering{Texts: texts}
	if cut {
		r.FullText = fullText(ref, text)
	}
	return r
}

// fullText is a long text as a file, below the beginning of it.
func fullText(ref sessions.Ref, text string) *relay.FullText {
	n := len(utf16.Encode([]rune(text)))
	return &relay.FullText{Name: "answer.md", Content: text, Text: fmt.Sprintf("_This was the beginning of %d characters. All of it:_", n),
		Fallback: fmt.Sprintf("_This was the beginning of %d characters. All of it, on the agent's machine:_ %s", n, render.InlineCode("the-loop attach "+ref.Name()))}
}

// permissionFile is the name of the file with all of a permission request.
const permissionFile = "question.txt"

// Permission renders a permission request. One whose questions hold a value of the environment is not shown whole: an answer names its
// question by its text.
func (t Texts) Permission(ref sessions.Ref, a sessions.PermissionRequest) threads.PermissionRendering {
	hasSecret := t.scrubQuestions(&a)
	for _, part := range []*string{&a.Tool, &a.Command, &a.File, &a.Cwd, &a.Explanation, &a.Diff, &a.Plan, &a.Input} {
		*part = t.Scrub(*part)
	}
	for _, paths := range [][]string{a.CwdTargets, a.FileTargets} {
		for i := range paths {
			paths[i] = t.Scrub(paths[i])
		}
	}
	attach := "the-loop attach " + ref.Name()
	r := threads.PermissionRendering{}
	r.Text, r.Whole = render.PermissionText(a, attach)
	if hasSecret {
		r.Text += "\n:warning: A value of the environment is in it, so it is not answered here."
	}
	if hasSecret || a.Unresolved {
		r.Whole = false
		return r
	}
	if text, content := render.PermissionFile(a, attach, permissionFile); content != "" {
		r.TextWithFile, r.File = text, &outbox.TextFile{Name: permissionFile, Content: content, Fallback: ":warning: The file with all of the question could not be posted. " +
			"See it on the agent's machine: " + render.InlineCode(attach)}
	}
	return r
}

// scrubQuestions removes values of the environment from questions, and reports whether there were any.
func (t Texts) scrubQuestions(a *sessions.PermissionRequest) (found bool) {
	scrub := func(text *string) {
		clean := t.Scrub(*text)
		found = found || clean != *text
		*text = clean
	}
	questions := make([]sessions.Question, len(a.Questions))
	for i, q := range a.Questions {
		questions[i] = q
		questions[i].Options = slices.Clone(q.Options)
		scrub(&questions[i].Text)
		scrub(&questions[i].Header)
		for j := range questions[i].Options {
			scrub(&questions[i].Options[j].Label)
			scrub(&questions[i].Options[j].Description)
		}
	}
	a.Questions = questions
	return found
}

// Dialog renders a dialog on an agent's screen.
func (t Texts) Dialog(lines []string) string {
	return render.Dialog(strings.Split(t.Scrub(strings.Join(lines, "\n")), "\n"))
}
