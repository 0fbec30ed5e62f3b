package localslack

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Block Kit's limits, in characters unless said otherwise.
const (
	maxMessageBlocks = 50
	maxViewBlocks    = 100
	maxBlocksText    = 13_200 // all the text of one message's blocks; measured by others, not documented
	maxSectionText   = 3_000
	maxField         = 2_000
	maxFields        = 10
	maxHeader        = 150
	maxButtonText    = 75
	maxButtonValue   = 2_000
	maxID            = 255 // action_id, block_id, callback_id
	maxMarkdown      = 12_000
	maxActions       = 25
	maxContext       = 10
	maxURL           = 3_000
	maxOptions       = 100
)

type block = map[string]any

// blockCheck collects what is wrong with a set of blocks, in Slack's words.
type blockCheck struct {
	view    bool
	ids     map[string]bool
	text    int // characters in all
	md      int // characters in markdown blocks
	errors  []string
	pointer string
}

// checkBlocks validates blocks as Slack does. It returns an error that names invalid_blocks, invalid_blocks_format or
// msg_blocks_too_long, with one line for each thing that is wrong.
func checkBlocks(raw string, view bool) error {
	var blocks []block
	if err := json.Unmarshal([]byte(raw), &blocks); err != nil {
		return newAPIError("invalid_blocks_format")
	}
	most := maxMessageBlocks
	if view {
		most = maxViewBlocks
	}
	b := &blockCheck{view: view, ids: map[string]bool{}}
	if len(blocks) > most {
		b.pointer = "/blocks"
		b.addError("no more than %d items allowed", most)
	}
	for i, bl := range blocks {
		b.pointer = fmt.Sprintf("/blocks/%d", i)
		b.block(bl)
	}
	switch {
	case len(b.errors) > 0 && view:
		return newArgError("invalid_arguments", b.errors...)
	case len(b.errors) > 0:
		return &apiError{code: "invalid_blocks", extra: jsonObject{"errors": b.errors,
			"response_metadata": jsonObject{"messages": b.errors}}}
	case !view && (b.text > maxBlocksText || b.md > maxMarkdown):
		return newAPIError("msg_blocks_too_long")
	}
	return nil
}

func (b *blockCheck) addError(format string, args ...any) {
	b.errors = append(b.errors, fmt.Sprintf("[ERROR] "+format, args...)+" [json-pointer:"+b.pointer+"]")
}

func (b *blockCheck) block(bl block) {
	if id := str(bl["block_id"]); id != "" {
		b.checkLength("block_id", id, maxID)
		if b.ids["block "+id] {
			b.addError("`block_id` %s already exists", id)
		}
		b.ids["block "+id] = true
	}
	switch kind := str(bl["type"]); kind {
	case "section":
		b.section(bl)
	case "header":
		b.textObject(bl["text"], "plain_text", maxHeader)
	case "actions":
		b.elements(bl["elements"], maxActions, true)
	case "context":
		b.elements(bl["elements"], maxContext, false)
	case "input":
		b.input(bl)
	case "markdown":
		b.markdown(bl)
	case "image":
		b.image(bl)
	case "divider", "rich_text", "video", "file", "table", "context_actions":
		b.countText(bl)
	default:
		b.addError("unsupported type: %s", kind)
	}
}

func (b *blockCheck) section(bl block) {
	fields, _ := bl["fields"].([]any)
	if bl["text"] == nil && len(fields) == 0 {
		b.addError("must provide either `text` or `fields`")
	}
	if bl["text"] != nil {
		b.textObject(bl["text"], "", maxSectionText)
	}
	if len(fields) > maxFields {
		b.addError("no more than %d items allowed", maxFields)
	}
	for _, f := range fields {
		b.textObject(f, "", maxField)
	}
	if acc, ok := bl["accessory"].(block); ok {
		b.element(acc)
	}
}

func (b *blockCheck) input(bl block) {
	b.textObject(bl["label"], "plain_text", 2000)
	if bl["hint"] != nil {
		b.textObject(bl["hint"], "plain_text", 2000)
	}
	el, ok := bl["element"].(block)
	if !ok {
		b.addError("missing required field: element")
		return
	}
	b.element(el)
}

func (b *blockCheck) markdown(bl block) {
	text, ok := bl["text"].(string)
	switch {
	case b.view:
		b.addError("unsupported type: markdown")
	case !ok || text == "":
		b.addError("missing required field: text")
	}
	b.md += utf8.RuneCountInString(text)
	b.text += utf8.RuneCountInString(text)
}

func (b *blockCheck) image(bl block) {
	if str(bl["image_url"]) == "" && bl["slack_file"] == nil {
		b.addError("must provide either `image_url` or `slack_file`")
	}
	b.checkLength("image_url", str(bl["image_url"]), maxURL)
	if str(bl["alt_text"]) == "" {
		b.addError("missing required field: alt_text")
	}
	b.checkLength("alt_text", str(bl["alt_text"]), 2000)
}

// textObject checks a composition object; kind "" allows both kinds.
func (b *blockCheck) textObject(v any, kind string, most int) {
	t, ok := v.(block)
	text, isText := t["text"].(string)
	switch got := str(t["type"]); {
	case !ok:
		b.addError("missing required field: text")
		return
	case got != "plain_text" && got != "mrkdwn", kind != "" && got != kind:
		b.addError("unsupported type: %s", got)
	case !isText || text == "":
		b.addError("must be more than 0 characters")
	}
	b.checkLength("text", text, most)
	b.text += utf8.RuneCountInString(text)
}

func (b *blockCheck) checkLength(name, v string, most int) {
	if utf8.RuneCountInString(v) > most {
		b.addError("must be less than %d characters: `%s`", most+1, name)
	}
}

func (b *blockCheck) elements(v any, most int, interactive bool) {
	list, _ := v.([]any)
	if len(list) == 0 {
		b.addError("missing required field: elements")
	}
	if len(list) > most {
		b.addError("no more than %d items allowed", most)
	}
	for _, e := range list {
		el, ok := e.(block)
		switch {
		case !ok:
			b.addError("must be an object")
		case interactive:
			b.element(el)
		case str(el["type"]) == "image":
			b.image(el)
		default:
			b.textObject(el, "", maxSectionText)
		}
	}
}

func (b *blockCheck) element(el block) {
	id := str(el["action_id"])
	b.checkLength("action_id", id, maxID)
	if id != "" && b.ids["action "+id] && !b.view {
		b.addError("`action_id` %s already exists", id)
	}
	b.ids["action "+id] = true
	switch kind := str(el["type"]); kind {
	case "button":
		b.button(el)
	case "static_select", "multi_static_select", "radio_buttons", "checkboxes", "overflow":
		b.options(el)
	case "image":
		b.image(el)
	case "":
		b.addError("missing required field: type")
	case "plain_text_input", "rich_text_input", "email_text_input", "url_text_input", "number_input":
		if !b.view {
			return // Slack allows inputs in messages too
		}
	}
	if el["placeholder"] != nil {
		b.textObject(el["placeholder"], "plain_text", 150)
	}
	if el["confirm"] != nil {
		b.confirm(el["confirm"])
	}
}

func (b *blockCheck) button(el block) {
	b.textObject(el["text"], "plain_text", maxButtonText)
	b.checkLength("value", str(el["value"]), maxButtonValue)
	b.checkLength("url", str(el["url"]), maxURL)
	if s := str(el["style"]); s != "" && s != "primary" && s != "danger" {
		b.addError("style must be primary or danger")
	}
}

func (b *blockCheck) options(el block) {
	list, _ := el["options"].([]any)
	groups, _ := el["option_groups"].([]any)
	if len(list) == 0 && len(groups) == 0 {
		b.addError("must provide either `options` or `option_groups`")
	}
	if len(list) > maxOptions {
		b.addError("no more than %d items allowed", maxOptions)
	}
	for _, o := range list {
		opt, _ := o.(block)
		b.textObject(opt["text"], "", maxButtonText)
		b.checkLength("value", str(opt["value"]), 150)
	}
}

func (b *blockCheck) confirm(v any) {
	c, _ := v.(block)
	b.textObject(c["title"], "plain_text", 100)
	b.textObject(c["text"], "", 300)
	b.textObject(c["confirm"], "plain_text", 30)
	b.textObject(c["deny"], "plain_text", 30)
}

// count adds the text of a block that is not checked further.
func (b *blockCheck) countText(v any) {
	switch t := v.(type) {
	case map[string]any:
		for k, e := range t {
			if s, ok := e.(string); ok && (k == "text" || k == "url") {
				b.text += utf8.RuneCountInString(s)
			}
			b.countText(e)
		}
	case []any:
		for _, e := range t {
			b.countText(e)
		}
	}
}

func str(v any) string { s, _ := v.(string); return s }

// fillBlockIDs gives each block the id that Slack gives to one without.
func fillBlockIDs(raw string) json.RawMessage {
	var blocks []block
	if json.Unmarshal([]byte(raw), &blocks) != nil || len(blocks) == 0 {
		return nil
	}
	used := map[string]bool{}
	for i, bl := range blocks {
		if str(bl["block_id"]) == "" {
			bl["block_id"] = randomHex(3)
		}
		used[str(bl["block_id"])] = true
		fillActionIDs(bl, i)
	}
	out, err := json.Marshal(blocks)
	if err != nil {
		return json.RawMessage(raw)
	}
	return out
}

func fillActionIDs(bl block, i int) {
	elements, _ := bl["elements"].([]any)
	for _, key := range []string{"accessory", "element"} {
		elements = append(elements, bl[key])
	}
	for j, e := range elements {
		el, ok := e.(block)
		if !ok || str(bl["type"]) == "rich_text" || str(bl["type"]) == "context" {
			continue
		}
		if str(el["action_id"]) == "" && str(el["type"]) != "image" {
			el["action_id"] = fmt.Sprintf("%s%d%d", randomHex(2), i, j)
		}
	}
}
