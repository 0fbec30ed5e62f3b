package localslack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
)

// Submit presses a modal's submit button with values by block_id. It returns what the app, or the Slack client itself,
// finds wrong, by block_id; the modal stays open then. Otherwise it closes, or becomes what the app answers.
func (p *Person) Submit(ctx context.Context, viewID string, values map[string]string) (map[string]string, error) {
	w := p.w
	w.Mu.Lock()
	v := w.ViewsByID[viewID]
	if v == nil || !slices.Contains(w.ViewStacks[p.ID], viewID) {
		w.Mu.Unlock()
		return nil, slackerr.Refusedf("%s has no view %s open", p.Name, viewID)
	}
	state, wrong, err := blockkit.FillInputs(v.Blocks, values)
	if err != nil || len(wrong) > 0 {
		w.Mu.Unlock()
		return wrong, err
	}
	v.State = state
	pl := w.newInteraction("view_submission", p)
	pl["trigger_id"] = w.NewTrigger(p.ID, v.ID)
	pl["view"], pl["response_urls"] = v.Payload(w.Store), []any{}
	w.Mu.Unlock()
	ack, err := w.SendAndAwaitAck(ctx, &socket.Delivery{Kind: "interactive", Payload: w.EncodeJSON(pl), AcceptsPayload: true})
	if err != nil {
		return nil, fmt.Errorf("submit the modal: %w", err)
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.handleSubmissionAck(p, v, ack)
}

// submissionResponse is what an ack of view_submission may hold.
type submissionResponse struct {
	Action string            `json:"response_action"`
	Errors map[string]string `json:"errors"`
	View   json.RawMessage   `json:"view"`
}

// handleSubmissionAck does what the app answered to a submission.
func (w *Workspace) handleSubmissionAck(p *Person, v *store.OpenView, ack json.RawMessage) (map[string]string, error) {
	var a submissionResponse
	if len(ack) > 0 {
		if err := json.Unmarshal(ack, &a); err != nil {
			return nil, fmt.Errorf("%w: the answer to the modal cannot be read", slackerr.ErrNoAnswer)
		}
	}
	defer w.Notify()
	switch a.Action {
	case "errors":
		return a.Errors, checkErrors(v.Blocks, a.Errors)
	case "update":
		return nil, w.ChangeView(v, a.View)
	case "push":
		_, err := w.PushView(p.ID, a.View, v)
		return nil, err
	case "clear":
		w.CloseViewsFrom(p.ID, 0)
	case "":
		w.CloseViewsFrom(p.ID, slices.Index(w.ViewStacks[p.ID], v.ID))
	default:
		return nil, fmt.Errorf("%w: response_action %q is unknown", slackerr.ErrNoAnswer, a.Action)
	}
	return nil, nil
}

// checkErrors refuses errors that belong to no input: Slack shows the person nothing but a general failure then.
func checkErrors(blocks json.RawMessage, errs map[string]string) error {
	var list []blockkit.Block
	if err := json.Unmarshal(blocks, &list); err != nil {
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
	w.Mu.Lock()
	at := slices.Index(w.ViewStacks[p.ID], viewID)
	if at < 0 {
		w.Mu.Unlock()
		return slackerr.Refusedf("%s has no view %s open", p.Name, viewID)
	}
	v := w.ViewsByID[viewID]
	w.CloseViewsFrom(p.ID, at)
	w.Notify()
	pl := w.newInteraction("view_closed", p)
	pl["view"], pl["is_cleared"] = v.Payload(w.Store), false
	w.Mu.Unlock()
	if !v.NotifyOnClose {
		return nil
	}
	_, err := w.SendAndAwaitAck(ctx, &socket.Delivery{Kind: "interactive", Payload: w.EncodeJSON(pl)})
	return err
}
