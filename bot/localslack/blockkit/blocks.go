// Package blockkit checks blocks and views as Slack does, and fills in what people choose and enter in them.
package blockkit

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
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
	MaxMarkdown      = 12_000
	maxActions       = 25
	maxContext       = 10
	maxURL           = 3_000
	maxOptions       = 100
)

// Block is a block, one of its elements or a view, as it was decoded from JSON.
type Block = map[string]any

// blockCheck collects what is wrong with a set of blocks, in Slack's words.
type blockCheck struct {
	view    bool
	ids     map[string]bool
	text    int // characters in all
	md      int // characters in markdown blocks
	errors  []string
	pointer string
}

// Check validates blocks as Slack does. It returns an error that names invalid_blocks, invalid_blocks_format or
// msg_blocks_too_long, with one line for each thing that is wrong.
func Check(raw string, view bool) error {
	var blocks []Block
	if err := json.Unmarshal([]byte(raw), &blocks); err != nil {
		return slackerr.New("invalid_blocks_format")
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
		return slackerr.WithMessages("invalid_arguments", b.errors...)
	case len(b.errors) > 0:
		return &slackerr.Error{Code: "invalid_blocks", Extra: map[string]any{"errors": b.errors,
			"response_metadata": map[string]any{"messages": b.errors}}}
	case !view && (b.text > maxBlocksText || b.md > MaxMarkdown):
		return slackerr.New("msg_blocks_too_long")
	}
	return nil
}

func (b *blockCheck) addError(format string, args ...any) {
	b.errors = append(b.errors, fmt.Sprintf("[ERROR] "+format, args...)+" [json-pointer:"+b.pointer+"]")
}

func (b *blockCheck) block(bl Block) {
	if id := Str(bl["block_id"]); id != "" {
		b.checkLength("block_id", id, maxID)
		if b.ids["block "+id] {
			b.addError("`block_id` %s already exists", id)
		}
		b.ids["block "+id] = true
	}
	switch kind := Str(bl["type"]); kind {
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

func (b *blockCheck) section(bl Block) {
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
	if acc, ok := bl["accessory"].(Block); ok {
		b.element(acc)
	}
}

func (b *blockCheck) input(bl Block) {
	b.textObject(bl["label"], "plain_text", 2000)
	if bl["hint"] != nil {
		b.textObject(bl["hint"], "plain_text", 2000)
	}
	el, ok := bl["element"].(Block)
	if !ok {
		b.addError("missing required field: element")
		return
	}
	b.element(el)
}

func (b *blockCheck) markdown(bl Block) {
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

func (b *blockCheck) image(bl Block) {
	if Str(bl["image_url"]) == "" && bl["slack_file"] == nil {
		b.addError("must provide either `image_url` or `slack_file`")
	}
	b.checkLength("image_url", Str(bl["image_url"]), maxURL)
	if Str(bl["alt_text"]) == "" {
		b.addError("missing required field: alt_text")
	}
	b.checkLength("alt_text", Str(bl["alt_text"]), 2000)
}

// textObject checks a composition object; kind "" allows both kinds.
func (b *blockCheck) textObject(v any, kind string, most int) {
	t, ok := v.(Block)
	text, isText := t["text"].(string)
	switch got := Str(t["type"]); {
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
		el, ok := e.(Block)
		switch {
		case !ok:
			b.addError("must be an object")
		case interactive:
			b.element(el)
		case Str(el["type"]) == "image":
			b.image(el)
		default:
			b.textObject(el, "", maxSectionText)
		}
	}
}

func (b *blockCheck) element(el Block) {
	id := Str(el["action_id"])
	b.checkLength("action_id", id, maxID)
	if id != "" && b.ids["action "+id] && !b.view {
		b.addError("`action_id` %s already exists", id)
	}
	b.ids["action "+id] = true
	switch kind := Str(el["type"]); kind {
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

func (b *blockCheck) button(el Block) {
	b.textObject(el["text"], "plain_text", maxButtonText)
	b.checkLength("value", Str(el["value"]), maxButtonValue)
	b.checkLength("url", Str(el["url"]), maxURL)
	if s := Str(el["style"]); s != "" && s != "primary" && s != "danger" {
		b.addError("style must be primary or danger")
	}
}

func (b *blockCheck) options(el Block) {
	list, _ := el["options"].([]any)
	groups, _ := el["option_groups"].([]any)
	if len(list) == 0 && len(groups) == 0 {
		b.addError("must provide either `options` or `option_groups`")
	}
	if len(list) > maxOptions {
		b.addError("no more than %d items allowed", maxOptions)
	}
	for _, o := range list {
		opt, _ := o.(Block)
		b.textObject(opt["text"], "", maxButtonText)
		b.checkLength("value", Str(opt["value"]), 150)
	}
}

func (b *blockCheck) confirm(v any) {
	c, _ := v.(Block)
	b.textObject(c["title"], "plain_text", 100)
	b.textObject(c["text"], "", 300)
	b.textObject(c["confirm"], "plain_text", 30)
	b.textObject(c["deny"], "plain_text", 30)
}

// countText adds the text of a block that is not checked further.
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

// Str is a string value, or empty when it is something else.
func Str(v any) string { s, _ := v.(string); return s }

// FillIDs gives each block the id that Slack gives to one without.
func FillIDs(raw string) json.RawMessage {
	var blocks []Block
	if json.Unmarshal([]byte(raw), &blocks) != nil || len(blocks) == 0 {
		return nil
	}
	used := map[string]bool{}
	for i, bl := range blocks {
		if Str(bl["block_id"]) == "" {
			bl["block_id"] = slackid.Hex(3)
		}
		used[Str(bl["block_id"])] = true
		fillActionIDs(bl, i)
	}
	out, err := json.Marshal(blocks)
	if err != nil {
		return json.RawMessage(raw)
	}
	return out
}

func fillActionIDs(bl Block, i int) {
	elements, _ := bl["elements"].([]any)
	for _, key := range []string{"accessory", "element"} {
		elements = append(elements, bl[key])
	}
	for j, e := range elements {
		el, ok := e.(Block)
		if !ok || Str(bl["type"]) == "rich_text" || Str(bl["type"]) == "context" {
			continue
		}
		if Str(el["action_id"]) == "" && Str(el["type"]) != "image" {
			el["action_id"] = fmt.Sprintf("%s%d%d", slackid.Hex(2), i, j)
		}
	}
}
