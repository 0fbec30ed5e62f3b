package bot

import (
	"context"
	"errors"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"the-loop/bot/command"
	"the-loop/bot/render"
	"the-loop/bot/slack"
)

const (
	// submitAckWithin is how long a submitted form may take before it shows that it is being worked on: its ack is due in 3 s.
	submitAckWithin = 1200 * time.Millisecond
	// updateDelay lies between an ack that changes a modal and our next change of it, so that they are not taken in the
	// wrong order.
	updateDelay = 500 * time.Millisecond
)

// titleSession is the title of a modal about a session.
const titleSession = "Session"

// explainExpiredTrigger says what to do about a modal that could not be opened in time.
func explainExpiredTrigger(err error) error {
	switch slack.ErrorCode(err) {
	case "expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id":
		return fmt.Errorf("a form opens only within three seconds, and they were over: try again (%w)", err)
	}
	return err
}

// notice is a modal that says something. It can always be shown: what does not fit is said to be so.
func (b *Bot) textModal(title, text string, buttons ...render.Button) slackgo.ModalViewRequest {
	view, err := render.Notice(title, b.scrub(text), buttons...)
	if err != nil {
		b.o.Log.Error("a modal does not fit Slack's limits", "title", title, "error", err)
		view, _ = render.Notice(title, "This cannot be shown here.") // without buttons nothing can be too much
	}
	return view
}

// openModal opens a modal at once, because the trigger is good for 3 s only, and fills it when its content is there.
func (b *Bot) openModal(ctx context.Context, a Interaction, title string, content func(ctx context.Context) (slackgo.ModalViewRequest, error)) error {
	id, err := b.openView(ctx, a, b.textModal(title, "One moment …"))
	if err != nil {
		return explainExpiredTrigger(err)
	}
	view, err := content(ctx)
	if err != nil {
		view = b.textModal(title, failed(err))
	}
	return b.o.Client.UpdateView(ctx, id, view)
}

// failed is an error as who acted is told of it.
func failed(err error) string { return "That did not work: " + render.Escape(err.Error()) }

// soon does the work of a submitted modal. When it is done in time the answer travels with the ack: errors at their
// field, or what came of it. Else the modal shows that it is worked on, and what came of it later.
func (b *Bot) ackWhenDone(ctx context.Context, a Interaction, working string, work func(ctx context.Context) (string, error)) any {
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
		case o := <-done: // nobody took it in time
			b.showResultLater(ctx, a.View.ID, o.text, o.err)
		default:
		}
	})
	defer close(acked)
	timer := time.NewTimer(submitAckWithin)
	defer timer.Stop()
	select {
	case o := <-done:
		return b.ackPayload(o.text, o.err)
	case <-timer.C:
	case <-ctx.Done():
	}
	return updateResponse(b.textModal(titleSession, working))
}

// ackPayload is what a modal is acked with when its work is done.
func (b *Bot) ackPayload(text string, err error) any {
	var field *command.FieldError
	switch {
	case errors.As(err, &field):
		return map[string]any{"response_action": "errors", "errors": map[string]string{field.Field: render.Cut(b.scrub(err.Error()), render.MaxSection)}}
	case err != nil:
		return updateResponse(b.textModal(titleSession, failed(err)))
	}
	return updateResponse(b.textModal(titleSession, text))
}

func updateResponse(view slackgo.ModalViewRequest) any {
	return map[string]any{"response_action": "update", "view": view}
}

func (b *Bot) showResultLater(ctx context.Context, id, text string, err error) {
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
	if err := b.o.Client.UpdateView(ctx, id, b.textModal(titleSession, text)); err != nil {
		b.o.Log.Warn("could not show what came of a form", "said", text, "error", err)
	}
}

// answerInView answers an act that happened in a modal or in the Home tab.
func (b *Bot) answerInView(ctx context.Context, a Interaction, text string) {
	var err error
	switch a.View.Kind {
	case kindModal:
		err = b.o.Client.UpdateView(ctx, a.View.ID, b.textModal(titleSession, text))
	case kindHome:
		err = b.home.publish(ctx, a.Actor, text)
	}
	if err != nil {
		b.o.Log.Warn("cannot answer", "name", a.Name, "view", a.View.Kind, "error", err)
	}
}
