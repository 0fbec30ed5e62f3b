package slack

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"the-loop/bot/slack/lenientjson"
)

// groupLabels are the names of user groups that the text field tells: rich text has only their ids, and asking for them
// would need one more scope.
func groupLabels(text string) map[string]string {
	labels := map[string]string{}
	for _, t := range tokenPattern.FindAllString(text, -1) {
		if id, label, ok := strings.Cut(strings.Trim(t, "<>"), "|"); ok && strings.HasPrefix(id, "!subteam^") {
			labels[strings.TrimPrefix(id, "!subteam^")] = unescapeEntities.Replace(label)
		}
	}
	return labels
}

// richWriter collects typed text. Its methods write what they can and return false where something was unknown or malformed:
// then the text field of the message is the better source, if it has one.
type richWriter struct {
	strings.Builder
	*contentReader
}

// each calls f with every element of o.
func (w *richWriter) each(o lenientjson.Object, f func(lenientjson.Object) bool) bool {
	items, ok := o.List("elements")
	if !ok {
		w.WriteString(w.markUnreadable("a text"))
	}
	for _, item := range items {
		if x := lenientjson.Parse(item); x != nil {
			ok = f(x) && ok
			continue
		}
		w.WriteString(w.markUnreadable("a part of a text"))
		ok = false
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
func (w *richWriter) element(o lenientjson.Object) bool {
	w.freshLine()
	switch o.Str("type") {
	case "rich_text_section":
		return w.each(o, w.inline)
	case "rich_text_list":
		return w.list(o)
	case "rich_text_quote":
		return w.quote(o)
	case "rich_text_preformatted":
		return w.preformatted(o)
	}
	if items, _ := o.List("elements"); len(items) > 0 {
		return w.each(o, w.inline)
	}
	text, ok := w.unknownElement(o)
	w.WriteString(text)
	return ok
}

// unknownElement is what people see of an element that is not known.
func (w *richWriter) unknownElement(o lenientjson.Object) (text string, ok bool) {
	text = w.withDepth(func() string { return w.members(o) })
	if text = cmp.Or(text, o.Str("fallback")); text != "" {
		return text, true
	}
	return w.markUnreadable(w.describeKind("a part", o.Str("type"))), false
}

// nested renders the inline elements of o apart.
func (w *richWriter) nested(o lenientjson.Object, plain bool) (string, bool) {
	inner := &richWriter{contentReader: w.contentReader}
	f := inner.inline
	if plain {
		f = inner.inlinePlain
	}
	ok := inner.each(o, f)
	return inner.String(), ok
}

func (w *richWriter) quote(o lenientjson.Object) bool {
	text, ok := w.nested(o, false)
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		w.WriteString("> " + line + "\n")
	}
	return ok
}

func (w *richWriter) preformatted(o lenientjson.Object) bool {
	text, ok := w.nested(o, true)
	w.WriteString("```" + o.Str("language") + "\n" + strings.TrimRight(text, "\n") + "\n```\n")
	return ok
}

// list writes one list; a deeper one is a list of its own with a higher indent. Four spaces are a level under either
// kind of mark.
func (w *richWriter) list(o lenientjson.Object) bool {
	indent := strings.Repeat("    ", min(max(o.Num("indent"), 0), 8))
	number := o.Num("offset")
	return w.each(o, func(item lenientjson.Object) bool {
		mark := "- "
		if o.Str("style") == "ordered" {
			number++
			mark = strconv.Itoa(number) + ". "
		}
		text, ok := w.listItem(item)
		text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+indent+strings.Repeat(" ", len(mark)))
		w.WriteString(indent + mark + text + "\n")
		return ok
	})
}

// listItem renders an item of a list.
func (w *richWriter) listItem(item lenientjson.Object) (string, bool) {
	if item.Str("type") == "rich_text_section" {
		return w.nested(item, false)
	}
	return w.nestedPart(item)
}

// nestedPart renders a part that stands within another.
func (w *richWriter) nestedPart(o lenientjson.Object) (text string, ok bool) {
	inner := &richWriter{contentReader: w.contentReader}
	text = w.withDepth(func() string {
		ok = inner.element(o)
		return strings.TrimRight(inner.String(), "\n")
	})
	return text, ok
}

func (w *richWriter) inline(o lenientjson.Object) bool {
	text, ok := w.inlineText(o)
	w.WriteString(applyStyle(text, o.Obj("style")))
	return ok
}

// inlinePlain is for code: no marks, and a link is what was typed.
func (w *richWriter) inlinePlain(o lenientjson.Object) bool {
	if o.Str("type") == "link" {
		w.WriteString(cmp.Or(o.Str("text"), o.Str("url")))
		return true
	}
	text, ok := w.inlineText(o)
	w.WriteString(text)
	return ok
}

func (w *richWriter) inlineText(o lenientjson.Object) (text string, ok bool) {
	kind := o.Str("type")
	if strings.HasPrefix(kind, "rich_text") {
		return w.nestedPart(o)
	}
	known := inlineRenderers[kind]
	if known == nil {
		return w.unknownElement(o)
	}
	if text, ok = known(w, o); !ok {
		text, _ = w.unknownElement(o)
	}
	return text, ok
}

// inlineRenderers render the elements that are known. ok is false where the element lacks what makes it one.
var inlineRenderers = map[string]func(w *richWriter, o lenientjson.Object) (text string, ok bool){
	"text": func(_ *richWriter, o lenientjson.Object) (string, bool) {
		var s string
		return o.Str("text"), json.Unmarshal(o["text"], &s) == nil
	},
	"link": func(_ *richWriter, o lenientjson.Object) (string, bool) {
		return decodeLink(o.Str("url"), o.Str("text")), o.Str("url") != ""
	},
	"user":                userMention,
	"canvas_user_mention": userMention,
	"channel": func(w *richWriter, o lenientjson.Object) (string, bool) {
		return w.lookup.channelName(o.Str("channel_id"), ""), o.Str("channel_id") != ""
	},
	"usergroup": func(w *richWriter, o lenientjson.Object) (string, bool) {
		id := o.Str("usergroup_id")
		return w.lookup.groupName(id, w.groups[id]), id != ""
	},
	"team": func(w *richWriter, o lenientjson.Object) (string, bool) {
		return w.lookup.prefixedHandle("@", o.Str("team_id")), o.Str("team_id") != ""
	},
	"broadcast": func(w *richWriter, o lenientjson.Object) (string, bool) {
		return w.lookup.prefixedHandle("@", o.Str("range")), o.Str("range") != ""
	},
	"emoji": func(_ *richWriter, o lenientjson.Object) (string, bool) {
		return decodeEmoji(o), o.Str("name") != "" || o.Str("unicode") != ""
	},
	"date": func(_ *richWriter, o lenientjson.Object) (string, bool) { return decodeDate(o), o.Has("timestamp") },
	"color": func(_ *richWriter, o lenientjson.Object) (string, bool) {
		return o.Str("value"), o.Str("value") != ""
	},
}

func userMention(w *richWriter, o lenientjson.Object) (string, bool) {
	return w.lookup.memberName(o.Str("user_id")), o.Str("user_id") != ""
}

// decodeEmoji is the character, or :name: for an emoji that has none.
func decodeEmoji(o lenientjson.Object) string {
	var runes []rune
	for hex := range strings.SplitSeq(o.Str("unicode"), "-") {
		r, err := strconv.ParseUint(hex, 16, 21)
		if err != nil || r == 0 || !unicode.IsGraphic(rune(r)) && r != 0x200D && r < 0xFE00 {
			return emojiName(o.Str("name"))
		}
		runes = append(runes, rune(r))
	}
	return string(runes)
}

// emojiName is an emoji by its name, which Slack keeps to one word of at most 100 characters.
func emojiName(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_+'-", r)
	}
	if name == "" || utf8.RuneCountInString(name) > 100 || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return ":emoji:"
	}
	return ":" + name + ":"
}

func decodeDate(o lenientjson.Object) string {
	return cmp.Or(o.Str("fallback"), time.Unix(int64(o.Num("timestamp")), 0).UTC().Format(time.RFC3339))
}

// applyStyle puts the marks of Slack's composer around text, inside its outer white space, where they would not count.
func applyStyle(text string, style lenientjson.Object) string {
	core := strings.TrimSpace(text)
	if core == "" {
		return text
	}
	before, after, _ := strings.Cut(text, core)
	for _, m := range []struct{ style, mark string }{{"code", "`"}, {"strike", "~"}, {"italic", "_"}, {"bold", "*"}} {
		if style.IsTrue(m.style) {
			core = m.mark + core + m.mark
		}
	}
	return before + core + after
}
