package bot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"the-loop/bot/render"
)

const (
	// soonEnough is how long a submitted form may take before it shows that it is being worked on: its ack is due in 3 s.
	soonEnough = 1200 * time.Millisecond
	// afterAck lies between an ack that changes a modal and our next change of it, so that they are not taken in the
	// wrong order.
	afterAck = 500 * time.Millisecond
)

// titleSession is the title of a modal about a session.
const titleSession = "Session"

// tooLate says what to do about a modal that could not be opened in time.
func tooLate(err error) error {
	switch code(err) {
	case "expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id":
		return fmt.Errorf("a form opens only within three seconds, and they were over: try again (%w)", err)
	}
	return err
}

// notice is a modal that says something. It can always be shown: what does not fit is said to be so.
func (b *Bot) notice(title, text string, buttons ...render.Button) slack.ModalViewRequest {
	view, err := render.Notice(title, b.scrubbed(text), buttons...)
	if err != nil {
		b.o.Log.Error("a modal does not fit Slack's limits", "title", title, "error", err)
		view, _ = render.Notice(title, "This cannot be shown here.") // without buttons nothing can be too much
	}
	return view
}

// modal opens a modal at once, because the trigger is good for 3 s only, and fills it when its content is there.
func (b *Bot) modal(ctx context.Context, a Act, title string, content func(ctx context.Context) (slack.ModalViewRequest, error)) error {
	id, err := b.o.Client.openView(ctx, a, b.notice(title, "One moment …"))
	if err != nil {
		return tooLate(err)
	}
	view, err := content(ctx)
	if err != nil {
		view = b.notice(title, failed(err))
	}
	return b.o.Client.updateView(ctx, id, view)
}

// failed is an error as who acted is told of it.
func failed(err error) string { return "That did not work: " + render.Escape(err.Error()) }

// soon does the work of a submitted modal. When it is done in time the answer travels with the ack: errors at their
// field, or what came of it. Else the modal shows that it is worked on, and what came of it later.
func (b *Bot) soon(ctx context.Context, a Act, working string, work func(ctx context.Context) (string, error)) any {
	type outcome struct {
		text string
		err  error
	}
	done, acked := make(chan outcome, 1), make(chan struct{})
	a.later(func(ctx context.Context) {
		text, err := work(ctx)
		done <- outcome{text, err}
		select {
		case <-acked:
		case <-ctx.Done():
			return
		}
		select {
		case o := <-done: // nobody took it in time
			b.showLate(ctx, a.View.ID, o.text, o.err)
		default:
		}
	})
	defer close(acked)
	timer := time.NewTimer(soonEnough)
	defer timer.Stop()
	select {
	case o := <-done:
		return b.verdict(o.text, o.err)
	case <-timer.C:
	case <-ctx.Done():
	}
	return update(b.notice(titleSession, working))
}

// verdict is what a modal is acked with when its work is done.
func (b *Bot) verdict(text string, err error) any {
	var field *fieldError
	switch {
	case errors.As(err, &field):
		return map[string]any{"response_action": "errors", "errors": map[string]string{field.field: render.Cut(b.scrubbed(err.Error()), render.MaxSection)}}
	case err != nil:
		return update(b.notice(titleSession, failed(err)))
	}
	return update(b.notice(titleSession, text))
}

func update(view slack.ModalViewRequest) any {
	return map[string]any{"response_action": "update", "view": view}
}

func (b *Bot) showLate(ctx context.Context, id, text string, err error) {
	timer := time.NewTimer(afterAck)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	if err != nil {
		text = failed(err)
	}
	if err := b.o.Client.updateView(ctx, id, b.notice(titleSession, text)); err != nil {
		b.o.Log.Warn("could not show what came of a form", "said", text, "error", err)
	}
}

// inView answers an act that happened in a modal or in the Home tab.
func (b *Bot) inView(ctx context.Context, a Act, text string) {
	var err error
	switch a.View.Kind {
	case kindModal:
		err = b.o.Client.updateView(ctx, a.View.ID, b.notice(titleSession, text))
	case kindHome:
		err = b.home.show(ctx, a.Actor, text)
	}
	if err != nil {
		b.o.Log.Warn("cannot answer", "name", a.Name, "view", a.View.Kind, "error", err)
	}
}
