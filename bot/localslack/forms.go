package localslack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// selectedState returns what the state of an element holds when somebody entered value; several choices are separated by
// commas.
func selectedState(el block, value string) (block, error) {
	kind := str(el["type"])
	switch {
	case strings.HasSuffix(kind, "_input"):
		return block{"value": value}, nil
	case kind == "static_select", kind == "radio_buttons", kind == "overflow":
		opt, err := findOption(el, value)
		return block{"selected_option": opt}, err
	case kind == "checkboxes", kind == "multi_static_select":
		var opts []block
		for v := range strings.SplitSeq(value, ",") {
			opt, err := findOption(el, v)
			if err != nil {
				return nil, err
			}
			opts = append(opts, opt)
		}
		return block{"selected_options": opts}, nil
	case strings.HasSuffix(kind, "s_select") && !strings.HasPrefix(kind, "multi_"):
		return block{"selected_" + strings.TrimSuffix(kind, "s_select"): value}, nil
	case kind == "datepicker", kind == "timepicker":
		return block{"selected_" + strings.TrimSuffix(kind, "picker"): value}, nil
	}
	return nil, refusedf("nothing can be entered in a %s", kind)
}

func findOption(el block, value string) (block, error) {
	list, _ := el["options"].([]any)
	groups, _ := el["option_groups"].([]any)
	for _, g := range groups {
		more, _ := g.(block)["options"].([]any)
		list = append(list[:len(list):len(list)], more...)
	}
	for _, o := range list {
		if opt, ok := o.(block); ok && str(opt["value"]) == value {
			return opt, nil
		}
	}
	return nil, refusedf("there is no option %q", value)
}

// initialState is the state of an element that nobody touched.
func initialState(el block) block {
	out := block{"type": el["type"]}
	for _, key := range []string{"initial_value", "initial_option", "initial_options", "initial_conversation", "initial_channel", "initial_user"} {
		if v := el[key]; v != nil {
			name := strings.Replace(key, "initial_", "selected_", 1)
			if key == "initial_value" {
				name = "value"
			}
			out[name] = v
		}
	}
	if strings.HasSuffix(str(el["type"]), "_input") && out["value"] == nil {
		out["value"] = nil
	}
	return out
}

// fillInputs enters values (block_id → value) in a view's inputs. It returns the state, and what the Slack client itself
// finds wrong, by block_id.
func fillInputs(blocks json.RawMessage, values map[string]string) (state block, wrong map[string]string, err error) {
	var list []block
	if err := json.Unmarshal(blocks, &list); err != nil {
		return nil, nil, err
	}
	state, wrong = block{}, map[string]string{}
	known := map[string]bool{}
	for _, bl := range list {
		id := str(bl["block_id"])
		known[id] = true
		for _, el := range elementsOf(bl) {
			if kind := str(el["type"]); kind == "button" || kind == "image" || str(bl["type"]) == "context" {
				continue
			}
			got, msg, err := fillInput(bl, el, values)
			if err != nil {
				return nil, nil, err
			}
			if msg != "" {
				wrong[id] = msg
			}
			state[id] = block{str(el["action_id"]): got}
		}
	}
	for id := range values {
		if !known[id] {
			return nil, nil, refusedf("the view has no block %s", id)
		}
	}
	return state, wrong, nil
}

func fillInput(bl, el block, values map[string]string) (state block, wrong string, err error) {
	state = initialState(el)
	value, given := values[str(bl["block_id"])]
	if given && value != "" {
		chosen, err := selectedState(el, value)
		if err != nil {
			return nil, "", err
		}
		for k, v := range chosen {
			state[k] = v
		}
	}
	if given && value == "" {
		state = block{"type": el["type"], "value": nil}
	}
	if str(bl["type"]) != "input" {
		return state, "", nil
	}
	return state, validationMessage(bl, el, state), nil
}

// validationMessage is what the Slack client says below an input without asking the app.
func validationMessage(bl, el, state block) string {
	empty := true
	for k, v := range state {
		if k != "type" && v != nil {
			empty = false
		}
	}
	text := str(state["value"])
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

// Submit presses a modal's submit button with values by block_id. It returns what the app, or the Slack client itself,
// finds wrong, by block_id; the modal stays open then. Otherwise it closes, or becomes what the app answers.
func (p *Person) Submit(ctx context.Context, viewID string, values map[string]string) (map[string]string, error) {
	w := p.w
	w.mu.Lock()
	v := w.views[viewID]
	if v == nil || !slices.Contains(w.viewStacks[p.ID], viewID) {
		w.mu.Unlock()
		return nil, refusedf("%s has no view %s open", p.Name, viewID)
	}
	state, wrong, err := fillInputs(v.Blocks, values)
	if err != nil || len(wrong) > 0 {
		w.mu.Unlock()
		return wrong, err
	}
	v.state = state
	pl := w.newInteraction("view_submission", p)
	pl["trigger_id"] = w.newTrigger(p.ID, v.ID)
	pl["view"], pl["response_urls"] = v.payload(w), []any{}
	w.mu.Unlock()
	ack, err := w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "interactive", payload: w.encodeJSON(pl), acceptsPayload: true})
	if err != nil {
		return nil, fmt.Errorf("submit the modal: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handleSubmissionAck(p, v, ack)
}

// submissionResponse is what an ack of view_submission may hold.
type submissionResponse struct {
	Action string            `json:"response_action"`
	Errors map[string]string `json:"errors"`
	View   json.RawMessage   `json:"view"`
}

// handleSubmissionAck does what the app answered to a submission.
func (w *Workspace) handleSubmissionAck(p *Person, v *view, ack json.RawMessage) (map[string]string, error) {
	var a submissionResponse
	if len(ack) > 0 {
		if err := json.Unmarshal(ack, &a); err != nil {
			return nil, fmt.Errorf("%w: the answer to the modal cannot be read", ErrNoAnswer)
		}
	}
	defer w.notify()
	switch a.Action {
	case "errors":
		return a.Errors, v.checkErrors(a.Errors)
	case "update":
		return nil, w.changeView(v, a.View)
	case "push":
		_, err := w.pushView(p.ID, a.View, v)
		return nil, err
	case "clear":
		w.closeViewsFrom(p.ID, 0)
	case "":
		w.closeViewsFrom(p.ID, slices.Index(w.viewStacks[p.ID], v.ID))
	default:
		return nil, fmt.Errorf("%w: response_action %q is unknown", ErrNoAnswer, a.Action)
	}
	return nil, nil
}

// checkErrors refuses errors that belong to no input: Slack shows the person nothing but a general failure then.
func (v *view) checkErrors(errs map[string]string) error {
	var list []block
	if err := json.Unmarshal(v.Blocks, &list); err != nil {
		return err
	}
	inputs := map[string]bool{}
	for _, bl := range list {
		if str(bl["type"]) == "input" {
			inputs[str(bl["block_id"])] = true
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("%w: errors without an error", ErrNoAnswer)
	}
	for id := range errs {
		if !inputs[id] {
			return fmt.Errorf("%w: the answer names %q, which is no input's block_id", ErrNoAnswer, id)
		}
	}
	return nil
}

// CloseView presses a modal's cancel; the app hears of it when it asked to (notify_on_close).
func (p *Person) CloseView(ctx context.Context, viewID string) error {
	w := p.w
	w.mu.Lock()
	at := slices.Index(w.viewStacks[p.ID], viewID)
	if at < 0 {
		w.mu.Unlock()
		return refusedf("%s has no view %s open", p.Name, viewID)
	}
	v := w.views[viewID]
	w.closeViewsFrom(p.ID, at)
	w.notify()
	pl := w.newInteraction("view_closed", p)
	pl["view"], pl["is_cleared"] = v.payload(w), false
	w.mu.Unlock()
	if !v.notifyOnClose {
		return nil
	}
	_, err := w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "interactive", payload: w.encodeJSON(pl)})
	return err
}
