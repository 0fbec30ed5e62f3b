// Package visible shows texts of agents so that nothing in them hides: what cannot be seen is written as its number, and letters that
// mislead are pointed out.
package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"

	"the-loop/sessions"
)

// How many blanks and line breaks in a row are shown as such. More could push what follows out of sight.
const (
	maxBlankRun = 40
	maxBreakRun = 3
)

// Show writes a text so that nothing in it hides and no two texts look the same: a character that cannot be seen, or
// changes how others are, becomes its number, as ⟨U+3164⟩ or ⟨U+3164×5⟩. So do the second way to write the same character
// (e and an accent), marks that stand on no letter of their script, and the two characters that would make this ambiguous.
// On one line (inline) every line break and every blank that is not a single one between words is a number, in a block those
// that cannot be seen there.
func Show(text string, inline bool) string {
	w := invisibleWriter{inline: inline}
	for len(text) > 0 {
		n := norm.NFC.NextBoundaryInString(text, true)
		w.addSegment(text[:n])
		text = text[n:]
	}
	w.flush(0)
	return w.b.String()
}

// invisibleWriter writes runs of the same character.
type invisibleWriter struct {
	inline      bool
	b           strings.Builder
	lastWritten rune // the last one that was written as itself; 0: none, or a number

	char     rune // of the run that is collected
	count    int
	asNumber bool // it is written as its number
	isByte   bool // it is a byte that is no character
}

// addSegment takes what Unicode normalises as one.
func (w *invisibleWriter) addSegment(s string) {
	composed := norm.NFC.IsNormalString(s)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			w.add(rune(s[0]), true, true)
		default:
			w.add(r, !isPlainlyVisible(r) || !composed && r > unicode.MaxASCII, false)
		}
		s = s[n:]
	}
}

// isPlainlyVisible reports a character that may be shown as itself, as far as it alone decides.
func isPlainlyVisible(r rune) bool {
	return r == '\n' || sessions.IsVisible(r) && r != '⟨' && r != 'ˋ' && r != utf8.RuneError
}

func (w *invisibleWriter) add(r rune, number, raw bool) {
	if w.count > 0 && w.char == r && w.asNumber == number && w.isByte == raw {
		w.count++
		return
	}
	w.flush(r)
	w.char, w.count, w.asNumber, w.isByte = r, 1, number, raw
}

// flush writes the run that was collected. next follows it; 0: nothing does.
func (w *invisibleWriter) flush(next rune) {
	if w.count == 0 {
		return
	}
	start, end := w.b.Len() == 0, next == 0
	switch {
	case w.asNumber || unicode.IsMark(w.char) && (w.count > 1 || !w.canCarryMark(w.char)):
		w.writeNumber()
	case w.char == '\n' && (w.inline || start || end):
		w.writeNumber()
	case w.char == '\n' && w.count > maxBreakRun:
		w.writeNumber()
		w.b.WriteByte('\n')
		w.lastWritten = '\n'
	case w.char == ' ' && (end || next == '\n' || w.inline && (start || w.count > 1) || w.count > maxBlankRun):
		w.writeNumber()
	default:
		w.b.WriteString(strings.Repeat(string(w.char), w.count))
		w.lastWritten = w.char
	}
	w.count = 0
}

func (w *invisibleWriter) writeNumber() {
	name := fmt.Sprintf("U+%04X", w.char)
	if w.isByte {
		name = fmt.Sprintf("0x%02X", w.char)
	}
	if w.count > 1 {
		name += fmt.Sprintf("×%d", w.count)
	}
	w.b.WriteString("⟨" + name + "⟩")
	w.lastWritten = 0
}

// canCarryMark reports whether the character before is a letter that a mark may stand on: one of the mark's own script.
func (w *invisibleWriter) canCarryMark(mark rune) bool {
	script := scriptOf(mark)
	return script != "" && scriptOf(w.lastWritten) == script && (unicode.IsLetter(w.lastWritten) || unicode.IsMark(w.lastWritten))
}

// scriptOf is the name of a character's script; empty for what many scripts have in common.
func scriptOf(r rune) string {
	if r <= unicode.MaxASCII {
		if unicode.IsLetter(r) {
			return "Latin"
		}
		return ""
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			if name == "Common" || name == "Inherited" {
				return ""
			}
			return name
		}
	}
	return ""
}

// SpoofingWarnings says what in texts can be seen and misleads all the same: letters of several scripts in one word, and text that
// runs from right to left. Empty: nothing.
func SpoofingWarnings(texts ...string) []string {
	var mixed []string
	rightToLeft := false
	for _, text := range texts {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
			if scripts := scriptsOf(word); !isAllowedMix(scripts) && !slices.Contains(mixed, describeMixedWord(word, scripts)) {
				mixed = append(mixed, describeMixedWord(word, scripts))
			}
		}
		rightToLeft = rightToLeft || strings.ContainsFunc(text, isRightToLeft)
	}
	var lines []string
	if more := len(mixed) - maxMixedWords; more > 0 {
		mixed = append(mixed[:maxMixedWords], fmt.Sprintf("and in %d more", more))
	}
	if len(mixed) > 0 {
		lines = append(lines, ":warning: Letters of different scripts stand in one word: "+strings.Join(mixed, "; "))
	}
	if rightToLeft {
		lines = append(lines, ":warning: It has letters that are written from right to left: what stands beside them may be shown in another order.")
	}
	return lines
}

// How much is told of words with letters of several scripts.
const (
	maxMixedWords = 3
	maxMixedRunes = 24
)

// describeMixedWord shows a word with those letters as numbers that are not Latin, or where there is no Latin one, all but the first
// script's.
func describeMixedWord(word string, scripts []string) string {
	base := scripts[0]
	if slices.Contains(scripts, "Latin") {
		base = "Latin"
	}
	var b strings.Builder
	for i, r := range []rune(word) {
		if i == maxMixedRunes {
			b.WriteString("…")
			break
		}
		if script := scriptOf(r); script != base && script != "" || !isPlainlyVisible(r) || unicode.IsMark(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return "`" + b.String() + "` (" + strings.Join(scripts, ", ") + ")" // letters and digits need no escape
}

// scriptsOf are the scripts of a word's letters, in their order.
func scriptsOf(word string) (scripts []string) {
	for _, r := range word {
		if script := scriptOf(r); script != "" && !slices.Contains(scripts, script) {
			scripts = append(scripts, script)
		}
	}
	return scripts
}

// allowedScriptMixes are the scripts that are mixed in one word where nobody means to mislead (UTS 39, highly restrictive).
var allowedScriptMixes = [][]string{{"Latin", "Han", "Hiragana", "Katakana"}, {"Latin", "Han", "Bopomofo"}, {"Latin", "Han", "Hangul"}}

func isAllowedMix(scripts []string) bool {
	if len(scripts) < 2 {
		return true
	}
	return slices.ContainsFunc(allowedScriptMixes, func(allowed []string) bool {
		return !slices.ContainsFunc(scripts, func(s string) bool { return !slices.Contains(allowed, s) })
	})
}

// isRightToLeft reports a character that is written from right to left.
func isRightToLeft(r rune) bool {
	if r <= unicode.MaxASCII {
		return false
	}
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}
