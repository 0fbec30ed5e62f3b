package bot

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// typedFromBlocks renders rich text as it was typed. ok is false when a block, or anything in one, is not known or
// malformed: then the text field is the better source.
func (m message) typedFromBlocks(l lookup) (text string, ok bool) {
	items, ok := m.list("blocks")
	if !ok || len(items) == 0 {
		return "", false
	}
	w := &richWriter{lookup: l, groups: groupLabels(m.str("text"))}
	for _, item := range items {
		block := loose(item)
		if block.str("type") != "rich_text" || !w.each(block, w.element) {
			return "", false
		}
	}
	return strings.TrimRight(w.String(), "\n"), true
}

// groupLabels are the names of user groups that the text field tells: rich text has only their ids, and asking for them
// would need one more scope.
func groupLabels(text string) map[string]string {
	labels := map[string]string{}
	for _, t := range token.FindAllString(text, -1) {
		if id, label, ok := strings.Cut(strings.Trim(t, "<>"), "|"); ok && strings.HasPrefix(id, "!subteam^") {
			labels[strings.TrimPrefix(id, "!subteam^")] = entities.Replace(label)
		}
	}
	return labels
}

// richWriter collects typed text. Its methods return false at the first thing that they do not know.
type richWriter struct {
	strings.Builder
	lookup lookup
	groups map[string]string
}

// each gives every element of o to f.
func (w *richWriter) each(o object, f func(object) bool) bool {
	items, ok := o.list("elements")
	for _, item := range items {
		ok = ok && f(loose(item))
	}
	return ok
}

// freshLine begins a new line unless one is just beginning.
func (w *richWriter) freshLine() {
	if s := w.String(); s != "" && !strings.HasSuffix(s, "\n") {
		w.WriteByte('\n')
	}
}

// element writes one part of a rich_text block.
func (w *richWriter) element(o object) bool {
	w.freshLine()
	switch o.str("type") {
	case "rich_text_section":
		return w.each(o, w.inline)
	case "rich_text_list":
		return w.list(o)
	case "rich_text_quote":
		return w.quote(o)
	case "rich_text_preformatted":
		return w.preformatted(o)
	}
	return false
}

// nested renders the inline elements of o apart.
func (w *richWriter) nested(o object, plain bool) (string, bool) {
	inner := &richWriter{lookup: w.lookup, groups: w.groups}
	f := inner.inline
	if plain {
		f = inner.inlinePlain
	}
	ok := inner.each(o, f)
	return inner.String(), ok
}

func (w *richWriter) quote(o object) bool {
	text, ok := w.nested(o, false)
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		w.WriteString("> " + line + "\n")
	}
	return ok
}

func (w *richWriter) preformatted(o object) bool {
	text, ok := w.nested(o, true)
	w.WriteString("```" + o.str("language") + "\n" + strings.TrimRight(text, "\n") + "\n```\n")
	return ok
}

// list writes one list; a deeper one is a list of its own with a higher indent. Four spaces are a level under either
// kind of mark.
func (w *richWriter) list(o object) bool {
	indent := strings.Repeat("    ", min(max(o.num("indent"), 0), 8))
	number := o.num("offset")
	return w.each(o, func(item object) bool {
		mark := "- "
		if o.str("style") == "ordered" {
			number++
			mark = strconv.Itoa(number) + ". "
		}
		text, ok := w.nested(item, false)
		text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+indent+strings.Repeat(" ", len(mark)))
		w.WriteString(indent + mark + text + "\n")
		return ok && item.str("type") == "rich_text_section"
	})
}

func (w *richWriter) inline(o object) bool {
	text, ok := w.inlineText(o)
	w.WriteString(marked(text, o.obj("style")))
	return ok
}

// inlinePlain is for code: no marks, and a link is what was typed.
func (w *richWriter) inlinePlain(o object) bool {
	if o.str("type") == "link" {
		w.WriteString(first(o.str("text"), o.str("url")))
		return true
	}
	text, ok := w.inlineText(o)
	w.WriteString(text)
	return ok
}

func (w *richWriter) inlineText(o object) (text string, ok bool) {
	switch o.str("type") {
	case "text":
		var s string
		return o.str("text"), json.Unmarshal(o["text"], &s) == nil
	case "link":
		return typedLink(o.str("url"), o.str("text")), o.str("url") != ""
	case "user":
		return w.lookup.memberName(o.str("user_id"), ""), o.str("user_id") != ""
	case "channel":
		return w.lookup.channelName(o.str("channel_id"), ""), o.str("channel_id") != ""
	case "usergroup":
		id := o.str("usergroup_id")
		return groupName(id, w.groups[id]), id != ""
	case "broadcast":
		return "@" + o.str("range"), o.str("range") != ""
	case "emoji":
		return typedEmoji(o), o.str("name") != "" || o.str("unicode") != ""
	case "date":
		return typedDate(o), o.has("timestamp")
	case "color":
		return o.str("value"), o.str("value") != ""
	}
	return "", false
}

// typedEmoji is the character, or :name: for an emoji that has none.
func typedEmoji(o object) string {
	var runes []rune
	for hex := range strings.SplitSeq(o.str("unicode"), "-") {
		r, err := strconv.ParseUint(hex, 16, 21)
		if err != nil || r == 0 || !unicode.IsGraphic(rune(r)) && r != 0x200D && r < 0xFE00 {
			return ":" + o.str("name") + ":"
		}
		runes = append(runes, rune(r))
	}
	return string(runes)
}

func typedDate(o object) string {
	return first(o.str("fallback"), time.Unix(int64(o.num("timestamp")), 0).UTC().Format(time.RFC3339))
}

// marked puts the marks of Slack's composer around text, inside its outer white space, where they would not count.
func marked(text string, style object) string {
	core := strings.TrimSpace(text)
	if core == "" {
		return text
	}
	before, after, _ := strings.Cut(text, core)
	for _, m := range []struct{ style, mark string }{{"code", "`"}, {"strike", "~"}, {"italic", "_"}, {"bold", "*"}} {
		if style.is(m.style) {
			core = m.mark + core + m.mark
		}
	}
	return before + core + after
}
