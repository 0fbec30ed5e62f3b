package slack

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"the-loop/bot/slack/lenientjson"
)

// contentReader turns what people see in a message into text. A part that is malformed or unknown spoils no other and is
// named: in the text, for the agent, and in missing, for the thread.
type contentReader struct {
	lookup  nameLookup
	groups  map[string]string // names of user groups, by their ids
	missing []string
	depth   int
}

// maxContentDepth is how deeply parts of a message may be nested. Slack nests no more than a few.
const maxContentDepth = 12

// read returns all that people see in the message, but for its files, and names what could not be read.
func (m message) read(l nameLookup) (text string, missing []string) {
	r := &contentReader{lookup: l, groups: groupLabels(m.Str("text"))}
	parts := []string{r.ownText(m)}
	items, ok := m.List("attachments")
	if !ok {
		parts = append(parts, r.markUnreadable("attachments"))
	}
	for _, item := range items {
		if a := lenientjson.Parse(item); a == nil {
			parts = append(parts, r.markUnreadable("an attachment"))
		} else if !isPreview(a, m) {
			parts = append(parts, r.attachment(a))
		}
	}
	return joinNonEmpty(parts), r.missing
}

// fullText is the message as its author sees it.
func (m message) fullText(l nameLookup) string {
	text, _ := m.read(l)
	return text
}

// ownText is what the message says itself, without what is attached.
func (m message) ownText(l nameLookup) string {
	r := &contentReader{lookup: l, groups: groupLabels(m.Str("text"))}
	return r.ownText(m)
}

// joinNonEmpty are the parts that are not blank, a line or more each.
func joinNonEmpty(parts []string) string {
	var all []string
	for _, part := range parts {
		if strings.TrimSpace(part) != "" {
			all = append(all, strings.TrimRight(part, "\n"))
		}
	}
	return strings.Join(all, "\n")
}

// markUnreadable notes that something cannot be read and returns the words that stand for it.
func (r *contentReader) markUnreadable(what string) string {
	r.missing = append(r.missing, what)
	return "[not readable here: " + what + "]"
}

// withDepth reads something nested, unless it is nested too deeply.
func (r *contentReader) withDepth(read func() string) string {
	if r.depth >= maxContentDepth {
		return r.markUnreadable("something that is nested deeply")
	}
	r.depth++
	defer func() { r.depth-- }()
	return read()
}

// ownText is what a message says in its blocks and its text.
func (r *contentReader) ownText(m message) string {
	parts := r.parts(m)
	if len(parts) == 1 {
		return parts[0] // as it was typed, blank lines included
	}
	return joinNonEmpty(parts)
}

// parts are the text of a message and its blocks, in order. Slack's text field repeats rich text, and nothing else of the
// blocks: it takes the place of rich text that cannot be read wholly, and stands before the other blocks unless they say
// the same.
func (r *contentReader) parts(m message) []string {
	text := decodeText(m.Str("text"), r.lookup)
	items, ok := m.List("blocks")
	if !ok {
		return []string{r.orUnreadable(text, "blocks")}
	}
	var parts []string
	rich, at := r.readRichText(items)
	if !rich.complete && strings.TrimSpace(text) != "" {
		rich.text, rich.missing = text, nil
	}
	r.missing = append(r.missing, rich.missing...)
	for i, item := range items {
		if i == at {
			parts = append(parts, rich.text)
		}
		if b := lenientjson.Parse(item); b != nil && b.Str("type") != "rich_text" {
			parts = append(parts, r.block(b))
		}
	}
	if at < 0 && !isRepeated(text, parts...) {
		parts = slices.Insert(parts, 0, text)
	}
	return parts
}

func (r *contentReader) orUnreadable(text, what string) string {
	if strings.TrimSpace(text) == "" {
		return r.markUnreadable(what)
	}
	return text
}

// richPart is all the rich text of a message.
type richPart struct {
	text     string
	missing  []string
	complete bool
}

// readRichText reads the rich text among blocks, and says at which of them it begins; -1: there is none. A block that is nothing at
// all may have been some.
func (r *contentReader) readRichText(items []rawBlock) (p richPart, at int) {
	apart := &contentReader{lookup: r.lookup, groups: r.groups}
	w := &richWriter{contentReader: apart}
	p.complete, at = true, -1
	for i, item := range items {
		b := lenientjson.Parse(item)
		switch {
		case b == nil:
			w.freshLine()
			w.WriteString(apart.markUnreadable("a block"))
			p.complete = false
		case b.Str("type") == "rich_text":
			p.complete = w.each(b, w.element) && p.complete
		default:
			continue
		}
		if at < 0 {
			at = i
		}
	}
	p.text, p.missing = strings.TrimRight(w.String(), "\n"), apart.missing
	return p, at
}

// isRepeated reports whether a text is said already by parts, by one or by all of them, whatever its marks and white space are.
func isRepeated(text string, parts ...string) bool {
	same := func(part string) bool { return lettersIn(part) == lettersIn(text) }
	return strings.TrimSpace(text) == "" || same(joinNonEmpty(parts)) || slices.ContainsFunc(parts, same)
}

func lettersIn(text string) string {
	letters := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.S) && !strings.ContainsRune("`~<>|", r) {
			return r
		}
		return -1
	}, text)
	if letters == "" {
		return strings.TrimSpace(text)
	}
	return letters
}

// isPreview reports whether nobody wrote an attachment: Slack, or an app, added what stands behind a link of the message. A
// forwarded message has an address too; is_share tells it, and where that is missing its address, which is not in the text.
func isPreview(a lenientjson.Object, m message) bool {
	address := cmp.Or(a.Str("from_url"), a.Str("original_url"), a.Str("app_unfurl_url"))
	switch {
	case a.IsTrue("is_share"):
		return false
	case isQuotedMessage(a):
		bare, _, _ := strings.Cut(address, "?")
		return address != "" && strings.Contains(unescapeSlashes(m.Str("text")+string(m.Object["blocks"])), bare)
	}
	return address != "" || a.IsTrue("is_app_unfurl") || a.Has("service_name")
}

// unescapeSlashes is JSON without the backslashes that some write before slashes.
func unescapeSlashes(text string) string { return strings.ReplaceAll(text, `\/`, "/") }

// isQuotedMessage reports whether an attachment is a message from elsewhere.
func isQuotedMessage(a lenientjson.Object) bool {
	return a.IsTrue("is_share") || a.IsTrue("is_msg_unfurl") || a.IsTrue("is_reply_unfurl") || a.Has("message_blocks")
}

// noPreview stands in an attachment that has no text.
const noPreview = "[no preview available]"

// attachment reads a card, a table that was pasted, or a message from elsewhere.
func (r *contentReader) attachment(a lenientjson.Object) string {
	if isQuotedMessage(a) {
		return r.withDepth(func() string { return r.quotedMessage(a) })
	}
	text := r.withDepth(func() string { return r.members(a) })
	switch {
	case text != "":
		return text
	case a.Str("fallback") != "" && a.Str("fallback") != noPreview:
		return decodeText(a.Str("fallback"), r.lookup)
	case a.Str("image_url") != "":
		return "[image: " + r.lookup.oneLine(a.Str("image_url")) + "]"
	case len(a.Objects("files")) > 0: // they are fetched
		return ""
	}
	return r.markUnreadable("an attachment")
}

// quotedMessage reads a message from elsewhere, with who wrote it, and where if that is told.
func (r *contentReader) quotedMessage(a lenientjson.Object) string {
	head := "Message from " + cmp.Or(r.lookup.DisplayName(a.Str("author_name")), r.lookup.DisplayName(a.Str("author_subname")), r.lookup.prefixedHandle("@", a.Str("author_id")), "somebody")
	if a.Str("channel_id") != "" || a.Str("channel_name") != "" {
		head += " in " + r.lookup.channelName(a.Str("channel_id"), a.Str("channel_name"))
	}
	var parts []string
	items, ok := a.List("message_blocks")
	for _, item := range items {
		inner := message{Object: lenientjson.Parse(item).Obj("message")}
		ok = ok && inner.Object != nil
		if inner.Object != nil {
			parts = append(parts, r.parts(inner)...)
		}
	}
	if !ok {
		parts = append(parts, r.markUnreadable("a message"))
	}
	said := joinNonEmpty(parts)
	if text := decodeText(a.Str("text"), r.lookup); !isRepeated(text, parts...) {
		said = joinNonEmpty([]string{text, said})
	}
	rest := lenientjson.Object{}
	for key, value := range a {
		if key != "text" && key != "author_name" && key != "author_subname" && key != "footer" {
			rest[key] = value
		}
	}
	said = joinNonEmpty([]string{said, r.members(rest)})
	if said == "" && len(a.Objects("files")) == 0 {
		said = r.orUnreadable(strings.ReplaceAll(decodeText(a.Str("fallback"), r.lookup), noPreview, ""), "a message")
	}
	return head + ":\n" + quoteLines(said)
}

// quoteLines is text with a mark before each line.
func quoteLines(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ")
}
