package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"the-loop/sessions"
)

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape makes text that stands in a message mean itself: Slack gives & < > a meaning of their own and no others.
func Escape(text string) string { return escaper.Replace(text) }

var markNeutralizer = strings.NewReplacer("*", "∗", "_", "ˍ", "~", "∼", "`", "ˋ")

// EscapeName makes somebody's or something's name safe to stand in a sentence with Slack's marks: it is escaped, stays on one
// line, is cut to 80 characters, and characters that would switch emphasis on are replaced by ones that look alike.
func EscapeName(name string) string {
	return Escape(markNeutralizer.Replace(sessions.Truncate(oneLine(name), 80)))
}

// InlineCode is text as inline code on one line. A backtick, which would end it, is replaced by one that looks alike.
func InlineCode(text string) string {
	text = strings.ReplaceAll(oneLine(text), "`", "ˋ")
	if text == "" {
		return ""
	}
	return "`" + Escape(text) + "`"
}

// Preformatted is text as a block of code. Three backticks, which would end it, are replaced by ones that look alike.
func Preformatted(text string) string {
	text = strings.ReplaceAll(sessions.Clean(text), "```", "ˋˋˋ")
	return "```\n" + Escape(text) + "\n```"
}

func oneLine(text string) string { return strings.Join(strings.Fields(sessions.Clean(text)), " ") }

const fence = "```"

// Split cuts text into parts of at most limit characters each, at line borders where there are any, else between words,
// else anywhere but inside an entity (&amp;), a token (<…>) or a character. A block of code that is cut is closed in one
// part and opened again in the next. Characters are counted as UTF-16 units, the way that counts most. limit must be
// 32 or more.
func Split(text string, limit int) []string {
	var parts []string
	open := false // the rest starts inside a block of code
	for {
		room, prefix := limit, ""
		if open {
			prefix = fence + "\n"
			room -= len(prefix)
		}
		if utf16Len(text) <= room {
			return append(parts, prefix+text)
		}
		n := cutIndex(text, room-len("\n"+fence))
		part := text[:n]
		open = open != (strings.Count(part, fence)%2 == 1)
		suffix := ""
		if open {
			suffix = "\n" + fence
		}
		parts = append(parts, prefix+strings.TrimRight(part, "\n")+suffix)
		text = strings.TrimPrefix(text[n:], "\n")
	}
}

// cutIndex returns the length in bytes of the longest good first part of text that has at most room UTF-16 units.
func cutIndex(text string, room int) int {
	end := utf16Prefix(text, room)
	head := text[:end]
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		return i + 1
	}
	if i := strings.LastIndexFunc(head, unicode.IsSpace); i > len(head)/2 {
		end = i + 1
	}
	end = backOff(text, end, "&", ";")
	end = backOff(text, end, "<", ">")
	return backOffFence(text, end)
}

// backOff keeps a cut at end from falling between start and stop, when they stand close together.
func backOff(text string, end int, start, stop string) int {
	i := strings.LastIndex(text[:end], start)
	if i <= 0 || strings.Contains(text[i:end], stop) {
		return end
	}
	if j := strings.Index(text[i:], stop); j < 0 || j > end/2 {
		return end
	}
	return i
}

// backOffFence keeps a cut from falling between the backticks of a fence.
func backOffFence(text string, end int) int {
	start := end
	for start > 1 && start > end-2 && text[start-1] == '`' && end < len(text) && text[end] == '`' {
		start--
	}
	return start
}

func utf16Prefix(text string, room int) int {
	n := 0
	for i, r := range text {
		if n += utf16RuneLen(r); n > room {
			return i
		}
	}
	return len(text)
}

func utf16Len(text string) int {
	n := 0
	for _, r := range text {
		n += utf16RuneLen(r)
	}
	return n
}

func utf16RuneLen(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// Truncate shortens text to at most limit characters and ends it with an ellipsis where something was cut.
func Truncate(text string, limit int) string {
	if utf16Len(text) <= limit {
		return text
	}
	head := text[:utf16Prefix(text, limit-1)]
	for !utf8.ValidString(head) && head != "" {
		head = head[:len(head)-1]
	}
	if i := strings.LastIndexByte(head, '&'); i >= 0 && !strings.Contains(head[i:], ";") {
		head = head[:i]
	}
	if i := strings.LastIndexByte(head, '<'); i >= 0 && !strings.Contains(head[i:], ">") {
		head = head[:i]
	}
	return head + "…"
}
