package blockkit

import (
	"encoding/json"

	"the-loop/bot/localslack/slackerr"
)

// ElementAction is an element that somebody uses. An empty block is whichever has it first.
type ElementAction struct {
	Block, Action string
	Value         []string
}

// FindAction returns the action that pressing an element makes.
func FindAction(blocks json.RawMessage, on ElementAction) (Block, error) {
	var list []Block
	if err := json.Unmarshal(blocks, &list); err != nil {
		return nil, slackerr.Refusedf("the message has no buttons")
	}
	for _, bl := range list {
		if on.Block != "" && on.Block != Str(bl["block_id"]) {
			continue
		}
		for _, el := range elementsOf(bl) {
			if Str(el["action_id"]) == on.Action {
				return newAction(bl, el, on.Value)
			}
		}
	}
	return nil, slackerr.Refusedf("there is nothing with action_id %s to press", on.Action)
}

func elementsOf(bl Block) []Block {
	var out []Block
	list, _ := bl["elements"].([]any)
	for _, e := range append(list[:len(list):len(list)], bl["accessory"], bl["element"]) {
		if el, ok := e.(Block); ok {
			out = append(out, el)
		}
	}
	return out
}

func newAction(bl, el Block, value []string) (Block, error) {
	action := Block{"action_id": el["action_id"], "block_id": bl["block_id"], "type": el["type"]}
	if Str(el["type"]) == "button" {
		action["text"] = el["text"]
		for _, key := range []string{"value", "style"} {
			if el[key] != nil {
				action[key] = el[key]
			}
		}
		return action, nil
	}
	if len(value) == 0 {
		return nil, slackerr.Refusedf("a %s needs a value", el["type"])
	}
	chosen, err := SelectedState(el, value[0])
	if err != nil {
		return nil, err
	}
	for k, v := range chosen {
		action[k] = v
	}
	return action, nil
}
