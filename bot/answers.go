package bot

import (
	"fmt"
	"unicode/utf16"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/relay"
)

// answerPages is how many messages one text of an agent's may take. Of a longer one the thread gets the beginning.
const answerPages = 5

// renderAnswer makes messages of what an agent said, without the values of the environment: they are taken out before the text is
// cut, so that none is hidden in two halves.
func (b *Bot) renderAnswer(ref sessions.Ref, said sessions.AgentMessage) relay.Rendering {
	text := b.scrub(said.Text)
	pages, cut := render.Beginning(text, answerPages)
	texts := make([]string, 0, len(pages))
	for _, p := range pages {
		texts = append(texts, p.Text)
	}
	if len(texts) == 0 {
		return relay.Rendering{}
	}
	if said.Failed {
		texts[0] = ":warning: The turn ended with an error:\n" + texts[0]
	}
	r := relay.Rendering{Texts: texts}
	if cut {
		r.FullText = fullText(ref, text)
	}
	return r
}

// whole is a text of which the thread has the beginning.
func fullText(ref sessions.Ref, text string) *relay.FullText {
	n := len(utf16.Encode([]rune(text)))
	return &relay.FullText{Name: "answer.md", Content: text, Text: fmt.Sprintf("_This was the beginning of %d characters. All of it:_", n),
		Fallback: fmt.Sprintf("_This was the beginning of %d characters. All of it, on the agent's machine:_ %s", n, render.Code("the-loop attach "+ref.Name()))}
}
