package interact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/bot/slack"
)

const (
	// submitAckWithin is how long the work of a submitted form may take before the ack says that it goes on: the ack is due in 3 s.
	submitAckWithin = 1200 * time.Millisecond
	// updateDelay lies between an ack that changes a modal and the next change of it, so that they are not applied in the wrong order.
	updateDelay = 500 * time.Millisecond
)

// titleSession is the title of a modal about a session.
const titleSession = "Session"

// explainExpiredTrigger adds what to do to the error of a modal that was opened too late.
func explainExpiredTrigger(err error) error {
	switch slack.ErrorCode(err) {
	case "expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id":
		return fmt.Errorf("the form was opened too late, after more than three seconds: try again (%w)", err)
	}
	return err
}

// modals opens and fills modals.
type modals struct {
	views Views
	scrub func(string) string
	log   *slog.Logger
}

// openView opens a modal for the member; from a modal it goes on top of that.
func (m *modals) openView(ctx context.Context, a Interaction, view slackgo.ModalViewRequest) (id string, err error) {
	if a.View.Kind == kindModal {
		return m.views.PushView(ctx, a.TriggerID, view)
	}
	return m.views.OpenView(ctx, a.TriggerID, view)
}

// text is a modal that shows a text. One that does not fit is replaced by a sentence.
func (m *modals) text(title, text string, buttons ...render.Button) slackgo.ModalViewRequest {
	view, err := render.TextModal(title, m.scrub(text), buttons...)
	if err != nil {
		m.log.Error("a modal does not fit Slack's limits", "title", title, "error", err)
		view, _ = render.TextModal(title, "This cannot be shown here.") // without buttons nothing can be too much
	}
	return view
}

// open opens a modal at once, because a trigger is valid for 3 s only, and fills it when its content is there.
func (m *modals) open(ctx context.Context, a Interaction, title string, content func(ctx context.Context) (slackgo.ModalViewRequest, error)) error {
	id, err := m.openView(ctx, a, m.text(title, "One moment …"))
	if err != nil {
		return explainExpiredTrigger(err)
	}
	view, err := content(ctx)
	if err != nil {
		view = m.text(title, failed(err))
	}
	return m.views.UpdateView(ctx, id, view)
}

// failed is an error as the answer to a member.
func failed(err error) string { return "That did not work: " + render.Escape(err.Error()) }

// ackWhenDone does the work of a submitted modal. When it is done in time the ack shows the result, and errors at their field. Else the
// modal shows that the work goes on, and the result later.
func (m *modals) ackWhenDone(ctx context.Context, a Interaction, working string, work func(ctx context.Context) (string, error)) any {
	type outcome struct {
		text string
		err  error
	}
	done, acked := make(chan outcome, 1), make(chan struct{})
	a.runDetached(func(ctx context.Context) {
		text, err := work(ctx)
		done <- outcome{text, err}
		select {
		case <-acked:
		case <-ctx.Done():
			return
		}
		select {
		case o := <-done: // too late for the ack
			m.showResultLater(ctx, a.View.ID, o.text, o.err)
		default:
		}
	})
	defer close(acked)
	timer := time.NewTimer(submitAckWithin)
	defer timer.Stop()
	select {
	case o := <-done:
		return m.ackPayload(o.text, o.err)
	case <-timer.C:
	case <-ctx.Done():
	}
	return updateResponse(m.text(titleSession, working))
}

// ackPayload is the ack of a modal whose work is done.
func (m *modals) ackPayload(text string, err error) any {
	var field *command.FieldError
	switch {
	case errors.As(err, &field):
		return map[string]any{"response_action": "errors", "errors": map[string]string{field.Field: render.Truncate(m.scrub(err.Error()), render.MaxSection)}}
	case err != nil:
		return updateResponse(m.text(titleSession, failed(err)))
	}
	return updateResponse(m.text(titleSession, text))
}

func updateResponse(view slackgo.ModalViewRequest) any {
	return map[string]any{"response_action": "update", "view": view}
}

func (m *modals) showResultLater(ctx context.Context, id, text string, err error) {
	timer := time.NewTimer(updateDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	if err != nil {
		text = failed(err)
	}
	if err := m.views.UpdateView(ctx, id, m.text(titleSession, text)); err != nil {
		m.log.Warn("could not show the result of a form", "result", text, "error", err)
	}
}
