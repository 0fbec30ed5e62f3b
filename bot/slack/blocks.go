package slack

import (
	"cmp"
	"encoding/json"
	"strings"

	"the-loop/bot/slack/lenientjson"
)

// rawBlock is one element of an array, not decoded.
type rawBlock = json.RawMessage

// visibleMembers are the members of blocks, attachments and what is in them that people see, in the order in which they do.
var visibleMembers = []string{"pretext", "author_name", "author_subname", "provider_name", "caption", "title", "rich_text_title", "subtitle", "header",
	"x_label", "y_label", "categories", "label", "name", "text", "subtext", "body", "value", "description", "fields", "details", "output", "message",
	"chart", "axis_config", "segments", "series", "data", "element", "elements", "child_blocks", "blocks", "cards", "tasks", "sources",
	"accessory", "actions", "options", "placeholder", "hint", "hero_image", "icon", "alt_text", "footer"}

// possiblyEmptyBlocks are the kinds of blocks that may hold nothing to read.
var possiblyEmptyBlocks = map[string]bool{"divider": true, "section": true, "context": true, "actions": true, "context_actions": true, "header": true,
	"container": true, "rich_text": true, "markdown": true}

// block reads one block, or one element of a block.
func (r *contentReader) block(o lenientjson.Object) string {
	return r.withDepth(func() string {
		switch kind := o.Str("type"); kind {
		case "rich_text":
			w := &richWriter{contentReader: r}
			w.each(o, w.element)
			return strings.TrimRight(w.String(), "\n")
		case "table", "data_table":
			return joinNonEmpty([]string{r.text(o, "caption"), r.table(o)})
		case "image":
			return r.image(o)
		case "mrkdwn":
			return decodeText(o.Str("text"), r.lookup)
		case "markdown", "plain_text", "raw_text":
			return o.Str("text")
		case "divider":
			return "---"
		default:
			return r.unknownBlock(o, kind)
		}
	})
}

// unknownBlock reads a block by what its members are called.
func (r *contentReader) unknownBlock(o lenientjson.Object, kind string) string {
	text := r.members(o)
	switch {
	case text != "":
		return text
	case o.Str("fallback") != "":
		return decodeText(o.Str("fallback"), r.lookup)
	case possiblyEmptyBlocks[kind]:
		return ""
	}
	return r.markUnreadable(r.describeKind("a part", kind))
}

// describeKind names a part by its kind, which may be anything.
func (r *contentReader) describeKind(what, kind string) string {
	if kind = r.lookup.Handle(kind); kind == "" {
		return what
	}
	return what + " of the kind “" + kind + "”"
}

func (r *contentReader) image(o lenientjson.Object) string {
	title, alt := r.text(o, "title"), r.text(o, "alt_text")
	if isRepeated(alt, title) {
		alt = ""
	}
	return "[image: " + cmp.Or(r.lookup.oneLine(joinNonEmpty([]string{title, alt})), r.lookup.oneLine(o.Str("image_url")), "without a name") + "]"
}

// members reads what people see of an object. A title with an address is a link, a label with a value one line.
func (r *contentReader) members(o lenientjson.Object) string {
	var parts []string
	for _, key := range visibleMembers {
		switch {
		case !o.Has(key), key == "value" && o.Has("text"): // that of a button or an option is not shown
		case key == "value" && len(parts) > 0:
			last := &parts[len(parts)-1]
			*last += ": " + r.text(o, key)
		case key == "title" || key == "text":
			parts = append(parts, r.linkedText(o, key))
		default:
			parts = append(parts, r.text(o, key))
		}
	}
	return joinNonEmpty(parts)
}

// linkedText reads a member that may be the label of the object's address.
func (r *contentReader) linkedText(o lenientjson.Object, key string) string {
	text := r.text(o, key)
	address := cmp.Or(o.Str("title_link"), o.Str("title_url"), o.Str("url"))
	if key == "text" && o.Has("title") || text == "" || address == "" || strings.Contains(text, "\n") {
		return text
	}
	return decodeLink(address, text)
}

// text reads a member, whatever it is made of.
func (r *contentReader) text(o lenientjson.Object, key string) string {
	if !o.Has(key) {
		return ""
	}
	if s := o.Str(key); s != "" {
		return decodeText(s, r.lookup)
	}
	if inner := o.Obj(key); inner != nil {
		return r.block(inner)
	}
	items, ok := o.List(key)
	if !ok {
		if string(o[key]) == `""` {
			return ""
		}
		return r.markUnreadable("a member called " + key)
	}
	parts := make([]string, 0, len(items))
	for _, item := range items {
		parts = append(parts, r.item(item))
	}
	return joinNonEmpty(parts)
}

// item reads one element of an array.
func (r *contentReader) item(item rawBlock) string {
	if o := lenientjson.Parse(item); o != nil {
		return r.block(o)
	}
	if list, ok := (lenientjson.Object{"": item}).List(""); ok && len(list) > 0 {
		return r.row(list)
	}
	if s := (lenientjson.Object{"": item}).Str(""); s != "" || string(item) == `""` || string(item) == "null" {
		return decodeText(s, r.lookup)
	}
	return r.markUnreadable("a part")
}

// table reads rows as lines of cells.
func (r *contentReader) table(o lenientjson.Object) string {
	rows, ok := o.List("rows")
	if !ok || len(rows) == 0 {
		return r.markUnreadable("a table")
	}
	lines := make([]string, 0, len(rows))
	for _, raw := range rows {
		cells, ok := (lenientjson.Object{"": raw}).List("")
		if !ok {
			lines = append(lines, r.markUnreadable("a row of a table"))
			continue
		}
		lines = append(lines, r.row(cells))
	}
	return strings.Join(lines, "\n")
}

// row reads cells, each on one line.
func (r *contentReader) row(cells []rawBlock) string {
	texts := make([]string, 0, len(cells))
	for _, raw := range cells {
		text := strings.Join(strings.Fields(r.cell(raw)), " ")
		texts = append(texts, strings.ReplaceAll(text, "|", `\|`))
	}
	return "| " + strings.Join(texts, " | ") + " |"
}

// cell reads one cell. An empty one is nothing that is missing.
func (r *contentReader) cell(raw rawBlock) string {
	o := lenientjson.Parse(raw)
	switch {
	case string(raw) == "null" || o != nil && o.Has("text") && string(o["text"]) == `""` && len(o) <= 2:
		return ""
	case o != nil && o.Str("type") == "raw_number":
		return cmp.Or(o.Str("text"), o.Str("value"))
	}
	return r.item(raw)
}
