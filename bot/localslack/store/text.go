package store

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackid"
)

// Element is a leaf of a rich_text block.
type Element = map[string]any

var (
	preformatted  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)```(.+?)```\n?") })
	inlineCode    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`[^`\n]+`") })
	composedToken = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`https?://[^\s<>|]+` +
			`|[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+\.[A-Za-z]{2,}` +
			`|[@#][\p{L}\p{N}._\-]+` +
			`|\b[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)*\.(?:com|org|net|io|dev|ai|app|md|rs|sh|py)\b(?:/[^\s<>|]*)?` +
			`|:[a-z0-9_+\-]+:`)
	})
	// MrkdwnToken is a link, a mention or another reference in message text.
	MrkdwnToken = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<([^<>]+)>`) })
)

// emojis are the few that people of this workspace have: Slack turns them into a name in the text, and keeps their
// code points in the blocks alone.
var emojis = []struct{ char, name, code string }{
	{"👨‍👩‍👧", "man-woman-girl", "1f468-200d-1f469-200d-1f467"},
	{"👍", "+1", "1f44d"}, {"🎉", "tada", "1f389"}, {"🚀", "rocket", "1f680"}, {"✅", "white_check_mark", "2705"},
	{"👀", "eyes", "1f440"}, {"🔥", "fire", "1f525"}, {"🙏", "pray", "1f64f"}, {"😀", "grinning", "1f600"},
	{"🇩🇪", "de", "1f1e9-1f1ea"},
}

// Escape is all that Slack escapes in text.
func Escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// ParseComposed turns what a person types into the text and blocks that Slack stores: URLs, mail addresses and things that
// look like a domain (README.md) become links, names become mentions, emoji become names. The caller holds Mu.
func (w *Places) ParseComposed(text string) (wire string, blocks json.RawMessage) {
	var b strings.Builder
	var parts []Element
	at := 0
	for _, m := range preformatted().FindAllStringSubmatchIndex(text, -1) {
		w.appendSection(text[at:m[0]], &b, &parts)
		inner := strings.TrimPrefix(text[m[2]:m[3]], "\n")
		elements := linkElements(strings.TrimSuffix(inner, "\n"), nil)
		parts = append(parts, Element{"type": "rich_text_preformatted", "elements": elements, "border": 0})
		b.WriteString("```" + w.renderMrkdwn(linkElements(text[m[2]:m[3]], nil)) + "```")
		if strings.HasSuffix(text[m[0]:m[1]], "\n") {
			b.WriteString("\n")
		}
		at = m[1]
	}
	w.appendSection(text[at:], &b, &parts)
	return b.String(), richTextBlock(parts)
}

// appendSection adds running text, with its inline code.
func (w *Places) appendSection(text string, b *strings.Builder, parts *[]Element) {
	if text == "" {
		return
	}
	var elements []Element
	at := 0
	for _, m := range inlineCode().FindAllStringIndex(text, -1) {
		elements = append(elements, w.parseTokens(text[at:m[0]])...)
		elements = append(elements, linkElements(text[m[0]+1:m[1]-1], Element{"code": true})...)
		at = m[1]
	}
	elements = append(elements, w.parseTokens(text[at:])...)
	b.WriteString(w.renderMrkdwn(elements))
	*parts = append(*parts, Element{"type": "rich_text_section", "elements": elements})
}

// parseTokens finds what Slack recognises while a person types.
func (w *Places) parseTokens(text string) []Element {
	var out []Element
	at := 0
	for _, m := range composedToken().FindAllStringIndex(text, -1) {
		word := text[m[0]:m[1]]
		el, used := w.ParseToken(word)
		if el == nil {
			continue
		}
		out = append(out, textElements(text[at:m[0]])...)
		out = append(out, el)
		at = m[0] + used
	}
	return append(out, textElements(text[at:])...)
}

// ParseToken resolves one word; used is how much of it belongs to the token.
func (w *Places) ParseToken(word string) (el Element, used int) {
	trimmed := strings.TrimRight(word, ".,!?;:'\")-")
	switch {
	case strings.HasPrefix(word, "http://"), strings.HasPrefix(word, "https://"):
		return Element{"type": "link", "url": trimmed}, len(trimmed)
	case word[0] == '@':
		return w.parseMention(trimmed), len(trimmed)
	case word[0] == '#':
		if ch := w.FindChannel(trimmed); ch != nil && ch.Kind == PublicChannel {
			return Element{"type": "channel", "channel_id": ch.ID}, len(trimmed)
		}
	case word[0] == ':':
		for _, e := range emojis {
			if word == ":"+e.name+":" {
				return Element{"type": "emoji", "name": e.name, "unicode": e.code}, len(word)
			}
		}
	case strings.Contains(word, "@"):
		return Element{"type": "link", "url": "mailto:" + word, "text": word}, len(word)
	default:
		return Element{"type": "link", "url": "http://" + trimmed, "text": trimmed}, len(trimmed)
	}
	return nil, 0
}

func (w *Places) parseMention(word string) Element {
	name := word[1:]
	switch name {
	case "here", "channel", "everyone":
		return Element{"type": "broadcast", "range": name}
	}
	if p := w.FindMember(name); p != nil {
		return Element{"type": "user", "user_id": p.ID}
	}
	for _, g := range w.Groups {
		if g.Handle == name {
			return Element{"type": "usergroup", "usergroup_id": g.ID}
		}
	}
	return nil
}

func (w *Places) groupHandle(group string) string {
	for _, g := range w.Groups {
		if g.ID == group {
			return g.Handle
		}
	}
	return ""
}

// textElements is text without tokens, apart from emoji.
func textElements(text string) []Element {
	if text == "" {
		return nil
	}
	for _, e := range emojis {
		if before, after, found := strings.Cut(text, e.char); found {
			out := append(textElements(before), Element{"type": "emoji", "name": e.name, "unicode": e.code})
			return append(out, textElements(after)...)
		}
	}
	return []Element{{"type": "text", "text": text}}
}

// linkElements finds full URLs only, as Slack does within code.
func linkElements(text string, style Element) []Element {
	var out []Element
	add := func(el Element) {
		if style != nil {
			el["style"] = style
		}
		out = append(out, el)
	}
	at := 0
	for _, m := range composedToken().FindAllStringIndex(text, -1) {
		word := text[m[0]:m[1]]
		if !strings.HasPrefix(word, "http") || !strings.Contains(word, "://") {
			continue
		}
		word = strings.TrimRight(word, ".,!?;:'\")-")
		if m[0] > at {
			add(Element{"type": "text", "text": text[at:m[0]]})
		}
		add(Element{"type": "link", "url": word})
		at = m[0] + len(word)
	}
	if at < len(text) {
		add(Element{"type": "text", "text": text[at:]})
	}
	return out
}

// renderMrkdwn writes elements as message text.
func (w *Places) renderMrkdwn(elements []Element) string {
	var b strings.Builder
	code := false
	for _, el := range elements {
		style, _ := el["style"].(Element)
		if now := style["code"] == true; now != code {
			b.WriteByte('`')
			code = now
		}
		b.WriteString(w.RenderElement(el))
	}
	if code {
		b.WriteByte('`')
	}
	return b.String()
}

// RenderElement writes one element as message text.
func (w *Places) RenderElement(el Element) string {
	switch el["type"] {
	case "user":
		return "<@" + blockkit.Str(el["user_id"]) + ">"
	case "channel":
		id := blockkit.Str(el["channel_id"])
		return "<#" + id + "|" + w.ChannelsByID[id].Name + ">"
	case "usergroup":
		return "<!subteam^" + blockkit.Str(el["usergroup_id"]) + "|@" + w.groupHandle(blockkit.Str(el["usergroup_id"])) + ">"
	case "broadcast":
		return "<!" + blockkit.Str(el["range"]) + ">"
	case "emoji":
		return ":" + blockkit.Str(el["name"]) + ":"
	case "link":
		if label := blockkit.Str(el["text"]); label != "" {
			return "<" + Escape(blockkit.Str(el["url"])) + "|" + Escape(label) + ">"
		}
		return "<" + Escape(blockkit.Str(el["url"])) + ">"
	}
	return Escape(blockkit.Str(el["text"]))
}

// RichTextFromMrkdwn is the rich_text block that Slack makes of an app's text.
func RichTextFromMrkdwn(wire string) json.RawMessage {
	if wire == "" {
		return nil
	}
	var elements []Element
	at := 0
	text := func(s string) {
		if s != "" {
			elements = append(elements, Element{"type": "text", "text": unescape(s)})
		}
	}
	for _, m := range MrkdwnToken().FindAllStringSubmatchIndex(wire, -1) {
		text(wire[at:m[0]])
		elements = append(elements, parseMrkdwnToken(wire[m[2]:m[3]]))
		at = m[1]
	}
	text(wire[at:])
	return richTextBlock([]Element{{"type": "rich_text_section", "elements": elements}})
}

// parseMrkdwnToken reads what stands between < and >.
func parseMrkdwnToken(token string) Element {
	ref, label, _ := strings.Cut(token, "|")
	switch {
	case strings.HasPrefix(ref, "@"):
		return Element{"type": "user", "user_id": ref[1:]}
	case strings.HasPrefix(ref, "#"):
		return Element{"type": "channel", "channel_id": ref[1:]}
	case strings.HasPrefix(ref, "!subteam^"):
		return Element{"type": "usergroup", "usergroup_id": strings.TrimPrefix(ref, "!subteam^")}
	case ref == "!here", ref == "!channel", ref == "!everyone":
		return Element{"type": "broadcast", "range": ref[1:]}
	}
	el := Element{"type": "link", "url": unescape(ref)}
	if label != "" {
		el["text"] = unescape(label)
	}
	return el
}

func richTextBlock(parts []Element) json.RawMessage {
	if len(parts) == 0 {
		return nil
	}
	out, err := json.Marshal([]blockkit.Block{{"type": "rich_text", "block_id": slackid.Hex(3), "elements": parts}})
	if err != nil {
		return nil
	}
	return out
}
