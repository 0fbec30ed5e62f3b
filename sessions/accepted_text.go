package sessions

import (
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// AcceptedText recognizes a text that an agent accepted where it still stands in the agent's input box. It does not hold the text.
type AcceptedText struct {
	sum   Sum
	lines int // line feeds in it
	at    time.Time
}

// staleDraftMaxAge is how long after a text was accepted an equal one in the box is taken for its copy: a copy is there at once.
const staleDraftMaxAge = time.Minute

// NewAcceptedText makes the AcceptedText of a text, normal its words, that was accepted at a time.
func NewAcceptedText(text, normal string, at time.Time) AcceptedText {
	return AcceptedText{sum: Fingerprint(screenForm(normal)), lines: strings.Count(text, "\n"), at: at}
}

// IsCopy reports whether the text in the box of a screen, normal its words, is a copy of the accepted one.
func (t AcceptedText) IsCopy(v View, normal string, now time.Time) bool {
	if now.Sub(t.at) > staleDraftMaxAge {
		return false
	}
	return v.FoldedLines > 0 && v.FoldedLines == t.lines || Fingerprint(screenForm(normal)) == t.sum
}

// screenForm is what a screen shows of a text for certain: lines wrap, and terminals drop marks and joiners that they cannot
// place.
func screenForm(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.In(r, unicode.M, unicode.Cf) {
			return -1
		}
		return r
	}, norm.NFD.String(text))
}
