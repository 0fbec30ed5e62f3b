package sessions

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
)

// Limits of names that people chose, in characters as they are seen.
const (
	MaxDisplayName = 24
	maxHandle      = 40
	maxMarks       = 2 // on one letter
)

// DisplayName is what somebody calls himself, safe to stand in a text: letters and digits with single spaces, hyphens, dots
// and apostrophes between them, one line, short. So it begins like no command and holds nothing that frames a name. Empty
// when nothing is left.
func DisplayName(text string) string {
	var b strings.Builder
	n, joint := 0, ""
	for g := uniseg.NewGraphemes(norm.NFC.String(text)); g.Next(); {
		letter := lettersOf(g.Runes())
		if letter == "" {
			joint += g.Str()
			continue
		}
		if n > 0 {
			letter = jointOf(joint) + letter
		}
		if n += uniseg.GraphemeClusterCount(letter); n > MaxDisplayName {
			return b.String() + "…"
		}
		b.WriteString(letter)
		joint = ""
	}
	return b.String()
}

// jointOf is what is left of what stands between two letters.
func jointOf(joint string) string {
	switch joint {
	case "", "-", ".", "'", "’", ". ":
		return joint
	}
	return " "
}

// Handle is the name of a channel, a group or a member's id, safe to stand behind its # or @: one word of letters, digits,
// hyphens, dots and underscores. Empty when nothing is left.
func Handle(text string) string {
	var b strings.Builder
	n := 0
	for g := uniseg.NewGraphemes(norm.NFC.String(text)); g.Next(); {
		char := lettersOf(g.Runes())
		if char == "" && strings.Contains("-._+", g.Str()) {
			char = g.Str()
		}
		if char == "" {
			continue
		}
		if n++; n > maxHandle {
			return b.String() + "…"
		}
		b.WriteString(char)
	}
	return b.String()
}

// lettersOf is a character that is seen as one letter or digit, with at most a few marks; empty: it is none.
func lettersOf(runes []rune) string {
	var b strings.Builder
	marks := 0
	for i, r := range runes {
		switch {
		case !IsVisible(r):
		case unicode.IsMark(r) && b.Len() > 0:
			if marks++; marks <= maxMarks {
				b.WriteRune(r)
			}
		case unicode.In(r, unicode.L, unicode.N):
			b.WriteRune(r)
		case i == 0:
			return ""
		}
	}
	return b.String()
}
