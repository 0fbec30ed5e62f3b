package sessions

import "unicode"

// IsVisible reports whether a character shows by itself as something that can be told from nothing. Among white space that is
// the plain space alone. What Unicode says of a character decides: controls, format characters, separators, private use and
// what no character is assigned to are not visible, and neither is what is to be ignored where it cannot be shown, such as
// the Hangul fillers, variation selectors and tags.
func IsVisible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) && !isBlankGlyph(r)
}

// isBlankGlyph reports the few characters that Unicode counts among symbols and letters and that fonts draw as nothing.
func isBlankGlyph(r rune) bool {
	switch r {
	case '\u2800', // the Braille pattern without dots
		'\uFFFC',                   // what stands for an object
		'\U0001D159',               // the null notehead
		'\U00013441', '\U00013442': // blanks of Egyptian hieroglyphs
		return true
	}
	return false
}
