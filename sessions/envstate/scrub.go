package envstate

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// minSecret is how many characters a value needs to be scrubbed: shorter ones stand in ordinary text by chance.
const minSecret = 6

// Secret is a value that must not be seen, and the name that may be seen instead.
type Secret struct{ Name, Value string }

// Scrubber replaces values by their names in text that others will read.
type Scrubber struct {
	// In a closure for the same reason as in [File].
	find func(text string) []span
}

// NewScrubber prepares a scrubber for values of six characters and more. Each line of a value that has several is
// looked for as well.
func NewScrubber(values map[string]string) *Scrubber {
	secrets := make([]Secret, 0, len(values))
	for name, value := range values {
		secrets = append(secrets, Secret{name, value})
	}
	return NewSecretScrubber(secrets)
}

// NewSecretScrubber is [NewScrubber] for secrets of which several may have one name.
func NewSecretScrubber(secrets []Secret) *Scrubber {
	var f forms
	for _, s := range secrets {
		f.add(s)
	}
	if len(f.plain) == 0 {
		return &Scrubber{}
	}
	plain, squeezed, decoded := newMatcher(f.plain), newMatcher(f.squeezed), newMatcher(f.decoded)
	return &Scrubber{find: func(text string) []span { return findSpans(text, plain, squeezed, decoded) }}
}

// forms are the patterns of all secrets, by what of a text they are looked for in.
type forms struct {
	plain    []pattern // the text as it is
	squeezed []pattern // its normal form
	decoded  []pattern // its normal form, decoded
}

// add takes the forms of a secret, and of each line of one that has several.
func (f *forms) add(s Secret) {
	lines := strings.FieldsFunc(s.Value, isLineBreak)
	f.addText(s.Name, s.Value)
	if len(lines) > 1 {
		for _, line := range lines {
			f.addText(s.Name, line)
		}
	}
}

func (f *forms) addText(name, text string) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) < minSecret {
		return
	}
	f.plain = append(f.plain, pattern{text: text, name: name})
	for _, written := range withLetterEscapes(text) {
		f.addNormal(name, written)
	}
	for _, coded := range encodings(text) {
		form := normalForm(coded, false)
		f.squeezed = append(f.squeezed, pattern{text: form, name: name})
		f.decoded = append(f.decoded, pattern{text: form, name: name})
	}
}

// addNormal takes the normal forms of a text, unless hardly anything is left of it in them.
func (f *forms) addNormal(name, text string) {
	if form := normalForm(text, false); utf8.RuneCountInString(form) >= minSecret {
		f.squeezed = append(f.squeezed, pattern{text: form, name: name})
	}
	if form := normalForm(text, true); utf8.RuneCountInString(form) >= minSecret {
		f.decoded = append(f.decoded, pattern{text: form, name: name})
	}
	f.addCore(name, text)
}

// What of a value may be taken for a part of an escape that begins before it or ends after it.
var (
	escapeEnd   = regexp.MustCompile(`^[0-9A-Fa-f]{1,2}`)
	escapeBegin = regexp.MustCompile(`(%[0-9A-Fa-f]?|&#?[0-9A-Za-z]{0,7})$`)
)

// addCore takes the decoded form of a text without what may be taken for a part of an escape together with what is around it,
// at either end and at both.
func (f *forms) addCore(name, text string) {
	lead, trail := len(escapeEnd.FindString(text)), len(escapeBegin.FindString(text))
	for _, cut := range [][2]int{{lead, 0}, {0, trail}, {lead, trail}} {
		if cut[0]+cut[1] == 0 || cut[0]+cut[1] > len(text) {
			continue
		}
		core := normalForm(text[cut[0]:len(text)-cut[1]], true)
		if utf8.RuneCountInString(core) >= minSecret {
			f.decoded = append(f.decoded, pattern{core, name, cut[0], min(cut[1], 1)})
		}
	}
}

// letterEscapes are the control characters that are written as a backslash and a letter, which is what normal forms have of that.
var letterEscapes = strings.NewReplacer("\n", "n", "\r", "r", "\t", "t", "\b", "b", "\f", "f", "\v", "v")

// withLetterEscapes is the text, and as it is where control characters are written with letters.
func withLetterEscapes(text string) []string {
	if other := letterEscapes.Replace(text); other != text {
		return []string{text, other}
	}
	return []string{text}
}

// encodings are the hexadecimal and Base64 forms of a text. In Base64 a text begins at one of three places of a group of four
// letters; the letters at its ends that depend on what is around it are left out.
func encodings(text string) []string {
	digits := hex.EncodeToString([]byte(text))
	all := []string{digits, strings.ToUpper(digits)}
	for before := range 3 {
		data := append(make([]byte, before), text...)
		start, end := (8*before+5)/6, 8*len(data)/6
		all = append(all, base64.RawStdEncoding.EncodeToString(data)[start:end], base64.RawURLEncoding.EncodeToString(data)[start:end])
	}
	return all
}

// Scrub replaces every occurrence of a value by [NAME], in each of the forms that the package comment lists. Where
// occurrences overlap all of it is replaced, under the name of the longest. A nil or zero Scrubber changes nothing.
func (s *Scrubber) Scrub(text string) string {
	if s == nil || s.find == nil {
		return text
	}
	found := s.find(text)
	if len(found) == 0 {
		return text
	}
	var out strings.Builder
	end := 0
	for _, f := range found {
		out.WriteString(text[end:f.start])
		out.WriteString("[" + f.name + "]")
		end = f.end
	}
	out.WriteString(text[end:])
	return out.String()
}

// Scrub is [NewScrubber] and [Scrubber.Scrub] in one.
func Scrub(text string, values map[string]string) string { return NewScrubber(values).Scrub(text) }

// span is a stretch of text that must not be seen.
type span struct {
	start, end int
	name       string
	length     int // of the pattern that gave the name
}

// findSpans returns the stretches to replace, in order, none touching the inside of another.
func findSpans(text string, plain, squeezed, decoded *matcher) []span {
	var found []span
	plain.each([]byte(text), func(start int, p pattern) {
		found = append(found, span{start, start + len(p.text), p.name, len(p.text)})
	})
	found = squeezed.findIn(text, false, found)
	if strings.ContainsAny(text, `\%&`) { // else nothing is written in escapes
		found = decoded.findIn(text, true, found)
	}
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return merge(found)
}

// findIn adds what is found in the normal form of text.
func (m *matcher) findIn(text string, decode bool, found []span) []span {
	form, marks := normalize(text, decode)
	m.each(form, func(start int, p pattern) {
		first, last := marks[max(0, start-p.leadingBytes)], marks[min(len(marks)-1, start+len(p.text)-1+p.trailingBytes)]
		found = append(found, span{int(first.start), int(last.end), p.name, len(p.text)})
	})
	return found
}

// merge joins spans that overlap, under the name of the longest pattern. They come sorted by start.
func merge(spans []span) []span {
	merged := spans[:0]
	for _, next := range spans {
		if len(merged) == 0 || next.start >= merged[len(merged)-1].end {
			merged = append(merged, next)
			continue
		}
		last := &merged[len(merged)-1]
		last.end = max(last.end, next.end)
		if next.length > last.length {
			last.name, last.length = next.name, next.length
		}
	}
	return merged
}

func isLineBreak(r rune) bool { return r == '\n' || r == '\r' }
