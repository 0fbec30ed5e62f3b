package blockkit

import (
	"encoding/json"

	"the-loop/bot/localslack/slackerr"
)

const (
	maxViewTitle       = 24
	maxPrivateMetadata = 3_000
	maxViewBytes       = 250_000
	// MaxViewStack is how many modals somebody can have open.
	MaxViewStack = 3
)

// ParseView checks a view as Slack does.
func ParseView(raw json.RawMessage, kind string) (Block, error) {
	var b Block
	if len(raw) > maxViewBytes {
		return nil, slackerr.New("view_too_large")
	}
	if json.Unmarshal(raw, &b) != nil || b == nil {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] view must be an object [json-pointer:/view]")
	}
	chk := &blockCheck{view: true, ids: map[string]bool{}, pointer: "/view"}
	if got := Str(b["type"]); got != kind {
		chk.addError("must be %s", kind)
	}
	chk.checkLength("private_metadata", Str(b["private_metadata"]), maxPrivateMetadata)
	chk.checkLength("callback_id", Str(b["callback_id"]), maxID)
	chk.checkLength("external_id", Str(b["external_id"]), maxID)
	if kind == "modal" {
		chk.modal(b)
	}
	if len(chk.errors) > 0 {
		return nil, slackerr.WithMessages("invalid_arguments", chk.errors...)
	}
	blocks, err := json.Marshal(b["blocks"])
	if err != nil {
		return nil, err
	}
	return b, Check(string(blocks), true)
}

func (b *blockCheck) modal(v Block) {
	b.textObject(v["title"], "plain_text", maxViewTitle)
	inputs := false
	list, ok := v["blocks"].([]any)
	if !ok {
		b.addError("missing required field: blocks")
	}
	for _, e := range list {
		bl, _ := e.(Block)
		inputs = inputs || Str(bl["type"]) == "input"
	}
	if inputs && v["submit"] == nil {
		b.addError("missing required field: submit")
	}
	for _, k := range []string{"submit", "close"} {
		if v[k] != nil {
			b.textObject(v[k], "plain_text", maxViewTitle)
		}
	}
}
