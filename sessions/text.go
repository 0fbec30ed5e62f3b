package sessions

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Clean makes text safe to paste into a terminal and keeps it otherwise as it was written: CRLF, CR and the Unicode
// line separators become LF, TAB stays, every other control character (C0, DEL, C1: so every escape sequence) goes
// away, invisible and bidirectional format characters go (joiners and tags inside an emoji stay), invalid UTF-8 becomes
// U+FFFD, and trailing newlines go. What comes out holds neither ESC nor CR, so it can neither end a bracketed paste
// nor submit.
func Clean(text string) string {
	runes := []rune(strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD"))
	var b strings.Builder
	b.Grow(len(text))
	for i, r := range runes {
		switch {
		case r == '\r' || r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r):
		case isInvisible(r) && !insideEmoji(runes, i):
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// isInvisible reports zero-width and bidirectional format characters. Agents ask for a second Enter when they meet them
// (Claude Code 2.1: "Removed N invisible characters"), and they can hide text from the person who reads the thread.
func isInvisible(r rune) bool {
	switch {
	case r == '\u00AD', r == '\u061C', r == '\u180E', r == '\uFEFF':
		return true
	case r >= '\u200B' && r <= '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2060' && r <= '\u206F':
		return true
	case r >= '\uFFF9' && r <= '\uFFFB':
		return true
	}
	return isTag(r)
}

func isTag(r rune) bool { return r >= 0xE0000 && r <= 0xE007F }

// insideEmoji reports whether the joiner or tag at runes[i] belongs to an emoji: a zero-width joiner between two
// pictographs, or a tag that follows the black flag or another such tag.
func insideEmoji(runes []rune, i int) bool {
	switch {
	case runes[i] == '\u200D':
		return i > 0 && i+1 < len(runes) && isPictograph(runes[i-1]) && isPictograph(runes[i+1])
	case isTag(runes[i]):
		for i--; i >= 0 && isTag(runes[i]); i-- {
		}
		return i >= 0 && runes[i] == '\U0001F3F4'
	}
	return false
}

// isPictograph reports symbols, emoji modifiers and variation selectors: what stands beside a joiner in an emoji.
func isPictograph(r rune) bool {
	return r == '\uFE0F' || unicode.Is(unicode.So, r) || r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2190 && r <= 0x2BFF
}

// Sum is a fingerprint of a cleaned text, hex SHA-256 over its words in NFC. Agents trim lines and turn tabs into spaces, so
// white space does not count; some compose what is decomposed (Claude Code 2.1.197), so neither does that.
type Sum string

// Fingerprint is the [Sum] of text.
func Fingerprint(text string) Sum {
	h := sha256.New()
	for i, word := range strings.Fields(norm.NFC.String(text)) {
		if i > 0 {
			h.Write([]byte{' '})
		}
		h.Write([]byte(word))
	}
	return Sum(hex.EncodeToString(h.Sum(nil)))
}

// Truncate is text cut to at most n runes, with an ellipsis where something was cut.
func Truncate(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:max(0, n-1)]) + "…"
}
