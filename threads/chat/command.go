package chat

import (
	"strings"
	"unicode"
)

// VerbRaw is the verb that gives the agent a command of its own.
const VerbRaw = "raw"

// ParseCommand reads what follows a mention of the bot, or a slash command: a verb and its arguments. The rest of the verb
// [VerbRaw] is a command as well and normalized like one.
func ParseCommand(text string) *Command {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ':' })
	words := SplitWords(NormalizeTyping(text))
	if len(words) == 0 {
		return &Command{}
	}
	c := &Command{Verb: strings.ToLower(words[0]), Args: words[1:]}
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		c.Rest = strings.TrimSpace(text[i:])
	}
	if c.Verb == VerbRaw {
		c.Rest = NormalizeTyping(c.Rest)
	}
	return c
}

// NormalizeTyping undoes what keyboards make of quotes, hyphens, dots and spaces (--all arrives as —all). It is for commands only:
// text for an agent stays as it was written.
func NormalizeTyping(text string) string {
	var b strings.Builder
	start := true // of a word
	for _, r := range text {
		b.WriteString(normalizeRune(r, start))
		start = unicode.IsSpace(r)
	}
	return b.String()
}

// normalizeRune returns the character that was typed. At the start of a word a long dash was two hyphens.
func normalizeRune(r rune, start bool) string {
	switch {
	case r == '\n' || r == '\t' || r <= unicode.MaxASCII:
		return string(r)
	case unicode.IsSpace(r):
		return " "
	case strings.ContainsRune("–—―", r) && start:
		return "--"
	case unicode.Is(unicode.Dash, r):
		return "-"
	case strings.ContainsRune("‘’‚‛‹›", r):
		return "'"
	case strings.ContainsRune("“”„‟«»＂〝〞〟", r):
		return `"`
	case r == '…':
		return "..."
	}
	return string(r)
}

// SplitWords splits text at white space; quotes hold words together. A quote that is not closed is a plain character.
func SplitWords(text string) []string {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(text); i++ {
		ch := text[i]
		switch {
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
			continue
		case (ch == '"' || ch == '\'') && !inWord && strings.IndexByte(text[i+1:], ch) >= 0:
			end := strings.IndexByte(text[i+1:], ch)
			word.WriteString(text[i+1 : i+1+end])
			i += end + 1
		default:
			word.WriteByte(ch)
		}
		inWord = true
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}
