package envstate

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// minSecret is how many characters a value needs to be scrubbed: shorter ones stand in ordinary text by chance.
const minSecret = 6

// Scrubber replaces values by their names in text that others will read.
type Scrubber struct {
	// In a closure for the same reason as in [File].
	secrets func() []secret
}

// secret is a text that must not be seen, without line breaks.
type secret struct{ name, text string }

// NewScrubber prepares a scrubber for values of six characters and more. Each line of a value that has several is
// looked for as well.
func NewScrubber(values map[string]string) *Scrubber {
	var secrets []secret
	for name, value := range values {
		lines := strings.FieldsFunc(value, isBreak)
		for _, text := range append(lines, strings.Join(lines, "")) {
			text = strings.TrimSpace(text)
			if utf8.RuneCountInString(text) >= minSecret {
				secrets = append(secrets, secret{name: name, text: text})
			}
		}
	}
	// The longest first, so that it names the place where several meet.
	slices.SortFunc(secrets, func(a, b secret) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.name, b.name), cmp.Compare(a.text, b.text))
	})
	secrets = slices.Compact(secrets)
	return &Scrubber{secrets: func() []secret { return secrets }}
}

// Scrub replaces every occurrence of a value by [NAME], also one that a terminal broke into several lines. Where
// occurrences overlap all of it is replaced, under the name of the longest. A nil or zero Scrubber changes nothing.
func (s *Scrubber) Scrub(text string) string {
	if s == nil || s.secrets == nil {
		return text
	}
	found := find(text, s.secrets())
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
	length     int // of the secret that gave the name
}

// find returns the stretches to replace, in order, none touching the inside of another.
func find(text string, secrets []secret) []span {
	flat, at := unbreak(text)
	var found []span
	for _, secret := range secrets {
		n := len(secret.text)
		for from := 0; from+n <= len(flat); {
			i := strings.Index(flat[from:], secret.text)
			if i < 0 {
				break
			}
			start := from + i
			found = append(found, span{at(start), at(start+n-1) + 1, secret.name, n})
			from = start + 1 // a value may overlap itself
		}
	}
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return merge(found)
}

// merge joins spans that overlap, under the name of the longest secret. They come sorted by start.
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

func isBreak(r rune) bool { return r == '\n' || r == '\r' }

// unbreak returns text without its line breaks, and what turns a place in that into a place in text.
func unbreak(text string) (string, func(int) int) {
	if !strings.ContainsFunc(text, isBreak) {
		return text, func(i int) int { return i }
	}
	flat := make([]byte, 0, len(text))
	places := make([]int, 0, len(text))
	for i := range len(text) {
		if !isBreak(rune(text[i])) {
			flat = append(flat, text[i])
			places = append(places, i)
		}
	}
	return string(flat), func(i int) int { return places[i] }
}
