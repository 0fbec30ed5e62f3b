package bot

import (
	"encoding/json"
	"strings"

	"the-loop/sessions"
)

// rawBlock is one element of an array, not decoded.
type rawBlock = json.RawMessage

// seenMembers are the members of blocks, attachments and what is in them that people see, in the order in which they do.
var seenMembers = []string{"pretext", "author_name", "author_subname", "provider_name", "caption", "title", "rich_text_title", "subtitle", "header",
	"x_label", "y_label", "categories", "label", "name", "text", "subtext", "body", "value", "description", "fields", "details", "output", "message",
	"chart", "axis_config", "segments", "series", "data", "element", "elements", "child_blocks", "blocks", "cards", "tasks", "sources",
	"accessory", "actions", "options", "placeholder", "hint", "hero_image", "icon", "alt_text", "footer"}

// quietBlocks are the kinds of blocks that may hold nothing to read.
var quietBlocks = map[string]bool{"divider": true, "section": true, "context": true, "actions": true, "context_actions": true, "header": true,
	"container": true, "rich_text": true, "markdown": true}

// block reads one block, or one element of a block.
func (r *contentReader) block(o object) string {
	return r.within(func() string {
		switch kind := o.str("type"); kind {
		case "rich_text":
			w := &richWriter{contentReader: r}
			w.each(o, w.element)
			return strings.TrimRight(w.String(), "\n")
		case "table", "data_table":
			return joined([]string{r.text(o, "caption"), r.table(o)})
		case "image":
			return r.image(o)
		case "mrkdwn":
			return typedFromText(o.str("text"), r.lookup)
		case "markdown", "plain_text", "raw_text":
			return o.str("text")
		case "divider":
			return "---"
		default:
			return r.other(o, kind)
		}
	})
}

// other reads a block by what its members are called.
func (r *contentReader) other(o object, kind string) string {
	text := r.members(o)
	switch {
	case text != "":
		return text
	case o.str("fallback") != "":
		return typedFromText(o.str("fallback"), r.lookup)
	case quietBlocks[kind]:
		return ""
	}
	return r.lost(kindName("a part", kind))
}

// kindName names a part by its kind, which may be anything.
func kindName(what, kind string) string {
	if kind = sessions.Handle(kind); kind == "" {
		return what
	}
	return what + " of the kind “" + kind + "”"
}

func (r *contentReader) image(o object) string {
	title, alt := r.text(o, "title"), r.text(o, "alt_text")
	if repeats(alt, title) {
		alt = ""
	}
	return "[image: " + first(oneLine(joined([]string{title, alt})), oneLine(o.str("image_url")), "without a name") + "]"
}

// members reads what people see of an object. A title with an address is a link, a label with a value one line.
func (r *contentReader) members(o object) string {
	var parts []string
	for _, key := range seenMembers {
		switch {
		case !o.has(key), key == "value" && o.has("text"): // that of a button or an option is not shown
		case key == "value" && len(parts) > 0:
			last := &parts[len(parts)-1]
			*last += ": " + r.text(o, key)
		case key == "title" || key == "text":
			parts = append(parts, r.linked(o, key))
		default:
			parts = append(parts, r.text(o, key))
		}
	}
	return joined(parts)
}

// linked reads a member that may be the label of the object's address.
func (r *contentReader) linked(o object, key string) string {
	text := r.text(o, key)
	address := first(o.str("title_link"), o.str("title_url"), o.str("url"))
	if key == "text" && o.has("title") || text == "" || address == "" || strings.Contains(text, "\n") {
		return text
	}
	return typedLink(address, text)
}

// text reads a member, whatever it is made of.
func (r *contentReader) text(o object, key string) string {
	if !o.has(key) {
		return ""
	}
	if s := o.str(key); s != "" {
		return typedFromText(s, r.lookup)
	}
	if inner := o.obj(key); inner != nil {
		return r.block(inner)
	}
	items, ok := o.list(key)
	if !ok {
		if string(o[key]) == `""` {
			return ""
		}
		return r.lost("a member called " + key)
	}
	parts := make([]string, 0, len(items))
	for _, item := range items {
		parts = append(parts, r.item(item))
	}
	return joined(parts)
}

// item reads one element of an array.
func (r *contentReader) item(item rawBlock) string {
	if o := loose(item); o != nil {
		return r.block(o)
	}
	if list, ok := (object{"": item}).list(""); ok && len(list) > 0 {
		return r.row(list)
	}
	if s := (object{"": item}).str(""); s != "" || string(item) == `""` || string(item) == "null" {
		return typedFromText(s, r.lookup)
	}
	return r.lost("a part")
}

// table reads rows as lines of cells.
func (r *contentReader) table(o object) string {
	rows, ok := o.list("rows")
	if !ok || len(rows) == 0 {
		return r.lost("a table")
	}
	lines := make([]string, 0, len(rows))
	for _, raw := range rows {
		cells, ok := (object{"": raw}).list("")
		if !ok {
			lines = append(lines, r.lost("a row of a table"))
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
	o := loose(raw)
	switch {
	case string(raw) == "null" || o != nil && o.has("text") && string(o["text"]) == `""` && len(o) <= 2:
		return ""
	case o != nil && o.str("type") == "raw_number":
		return first(o.str("text"), o.str("value"))
	}
	return r.item(raw)
}
