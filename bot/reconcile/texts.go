package reconcile

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"the-loop/bot/render"
	"the-loop/sessions"
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

// Permission renders a permission request. It reports whether everything that matters is shown.
func (t Texts) Permission(ref sessions.Ref, a sessions.PermissionRequest) (text string, whole bool) {
	for _, part := range []*string{&a.Tool, &a.Command, &a.File, &a.Cwd, &a.Explanation, &a.Input} {
		*part = t.Scrub(*part)
	}
	for _, paths := range [][]string{a.CwdTargets, a.FileTargets} {
		for i := range paths {
			paths[i] = t.Scrub(paths[i])
		}
	}
	return render.PermissionText(a, "the-loop attach "+ref.Name())
}

// Dialog renders a dialog on an agent's screen.
func (t Texts) Dialog(lines []string) string {
	return render.Dialog(strings.Split(t.Scrub(strings.Join(lines, "\n")), "\n"))
}
