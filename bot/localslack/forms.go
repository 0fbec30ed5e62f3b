package localslack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
)

// Submit presses a modal's submit button with values by block_id. It returns what the app, or the Slack client itself,
// finds wrong, by block_id; the modal stays open then. Otherwise it closes, or becomes what the app answers.
func (p *Person) Submit(ctx context.Context, viewID string, values map[string]string) (map[string]string, error) {
	w := p.w
	w.mu.Lock()
	v := w.views[viewID]
	if v == nil || !slices.Contains(w.viewStacks[p.ID], viewID) {
		w.mu.Unlock()
		return nil, slackerr.Refusedf("%s has no view %s open", p.Name, viewID)
	}
	state, wrong, err := blockkit.FillInputs(v.Blocks, values)
	if err != nil || len(wrong) > 0 {
		w.mu.Unlock()
		return wrong, err
	}
	v.state = state
	pl := w.newInteraction("view_submission", p)
	pl["trigger_id"] = w.newTrigger(p.ID, v.ID)
	pl["view"], pl["response_urls"] = v.payload(w.Store), []any{}
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
			return nil, fmt.Errorf("%w: the answer to the modal cannot be read", slackerr.ErrNoAnswer)
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
		return nil, fmt.Errorf("%w: response_action %q is unknown", slackerr.ErrNoAnswer, a.Action)
	}
	return nil, nil
}

// checkErrors refuses errors that belong to no input: Slack shows the person nothing but a general failure then.
func (v *view) checkErrors(errs map[string]string) error {
	var list []blockkit.Block
	if err := json.Unmarshal(v.Blocks, &list); err != nil {
		return err
	}
	inputs := map[string]bool{}
	for _, bl := range list {
		if blockkit.Str(bl["type"]) == "input" {
			inputs[blockkit.Str(bl["block_id"])] = true
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("%w: errors without an error", slackerr.ErrNoAnswer)
	}
	for id := range errs {
		if !inputs[id] {
			return fmt.Errorf("%w: the answer names %q, which is no input's block_id", slackerr.ErrNoAnswer, id)
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
		return slackerr.Refusedf("%s has no view %s open", p.Name, viewID)
	}
	v := w.views[viewID]
	w.closeViewsFrom(p.ID, at)
	w.notify()
	pl := w.newInteraction("view_closed", p)
	pl["view"], pl["is_cleared"] = v.payload(w.Store), false
	w.mu.Unlock()
	if !v.notifyOnClose {
		return nil
	}
	_, err := w.sendAndAwaitAck(ctx, &envelopeDelivery{kind: "interactive", payload: w.encodeJSON(pl)})
	return err
}
