package blockkit

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"the-loop/bot/localslack/slackerr"
)

// SelectedState returns what the state of an element holds when somebody entered value; several choices are separated by
// commas.
func SelectedState(el Block, value string) (Block, error) {
	kind := Str(el["type"])
	switch {
	case strings.HasSuffix(kind, "_input"):
		return Block{"value": value}, nil
	case kind == "static_select", kind == "radio_buttons", kind == "overflow":
		opt, err := findOption(el, value)
		return Block{"selected_option": opt}, err
	case kind == "checkboxes", kind == "multi_static_select":
		var opts []Block
		for v := range strings.SplitSeq(value, ",") {
			opt, err := findOption(el, v)
			if err != nil {
				return nil, err
			}
			opts = append(opts, opt)
		}
		return Block{"selected_options": opts}, nil
	case strings.HasSuffix(kind, "s_select") && !strings.HasPrefix(kind, "multi_"):
		return Block{"selected_" + strings.TrimSuffix(kind, "s_select"): value}, nil
	case kind == "datepicker", kind == "timepicker":
		return Block{"selected_" + strings.TrimSuffix(kind, "picker"): value}, nil
	}
	return nil, slackerr.Refusedf("nothing can be entered in a %s", kind)
}

func findOption(el Block, value string) (Block, error) {
	list, _ := el["options"].([]any)
	groups, _ := el["option_groups"].([]any)
	for _, g := range groups {
		more, _ := g.(Block)["options"].([]any)
		list = append(list[:len(list):len(list)], more...)
	}
	for _, o := range list {
		if opt, ok := o.(Block); ok && Str(opt["value"]) == value {
			return opt, nil
		}
	}
	return nil, slackerr.Refusedf("there is no option %q", value)
}

// initialState is the state of an element that nobody touched.
func initialState(el Block) Block {
	out := Block{"type": el["type"]}
	for _, key := range []string{"initial_value", "initial_option", "initial_options", "initial_conversation", "initial_channel", "initial_user"} {
		if v := el[key]; v != nil {
			name := strings.Replace(key, "initial_", "selected_", 1)
			if key == "initial_value" {
				name = "value"
			}
			out[name] = v
		}
	}
	if strings.HasSuffix(Str(el["type"]), "_input") && out["value"] == nil {
		out["value"] = nil
	}
	return out
}

// FillInputs enters values (block_id → value) in a view's inputs. It returns the state, and what the Slack client itself
// finds wrong, by block_id.
func FillInputs(blocks json.RawMessage, values map[string]string) (state Block, wrong map[string]string, err error) {
	var list []Block
	if err := json.Unmarshal(blocks, &list); err != nil {
		return nil, nil, err
	}
	state, wrong = Block{}, map[string]string{}
	known := map[string]bool{}
	for _, bl := range list {
		id := Str(bl["block_id"])
		known[id] = true
		for _, el := range elementsOf(bl) {
			if kind := Str(el["type"]); kind == "button" || kind == "image" || Str(bl["type"]) == "context" {
				continue
			}
			got, msg, err := fillInput(bl, el, values)
			if err != nil {
				return nil, nil, err
			}
			if msg != "" {
				wrong[id] = msg
			}
			state[id] = Block{Str(el["action_id"]): got}
		}
	}
	for id := range values {
		if !known[id] {
			return nil, nil, slackerr.Refusedf("the view has no block %s", id)
		}
	}
	return state, wrong, nil
}

func fillInput(bl, el Block, values map[string]string) (state Block, wrong string, err error) {
	state = initialState(el)
	value, given := values[Str(bl["block_id"])]
	if given && value != "" {
		chosen, err := SelectedState(el, value)
		if err != nil {
			return nil, "", err
		}
		for k, v := range chosen {
			state[k] = v
		}
	}
	if given && value == "" {
		state = Block{"type": el["type"], "value": nil}
	}
	if Str(bl["type"]) != "input" {
		return state, "", nil
	}
	return state, validationMessage(bl, el, state), nil
}

// validationMessage is what the Slack client says below an input without asking the app.
func validationMessage(bl, el, state Block) string {
	empty := true
	for k, v := range state {
		if k != "type" && v != nil {
			empty = false
		}
	}
	text := Str(state["value"])
	n := float64(utf8.RuneCountInString(text))
	least, _ := el["min_length"].(float64)
	most, capped := el["max_length"].(float64)
	switch {
	case empty && bl["optional"] != true:
		return "Please complete this required field."
	case !empty && n < least && text != "":
		return "Please enter at least " + strconv.Itoa(int(least)) + " characters."
	case capped && n > most:
		return "Please enter no more than " + strconv.Itoa(int(most)) + " characters."
	}
	return ""
}
