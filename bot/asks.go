package bot

import (
	"context"
	"errors"
	"strings"
	"time"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
)

// askText shows what an agent asks, without the values of the environment: they are taken out before the text is cut. It
// reports whether all that matters is shown.
func (b *Bot) askText(ref sessions.Ref, a sessions.Ask) (text string, whole bool) {
	for _, part := range []*string{&a.Tool, &a.Command, &a.File, &a.Cwd, &a.Why, &a.Input} {
		*part = b.scrubbed(*part)
	}
	for _, places := range [][]string{a.CwdAt, a.FileAt} {
		for i := range places {
			places[i] = b.scrubbed(places[i])
		}
	}
	return render.Ask(a, "the-loop attach "+ref.Name())
}

// dialogText shows what stands in a dialog on an agent's screen.
func (b *Bot) dialogText(lines []string) string {
	return render.Dialog(strings.Split(b.scrubbed(strings.Join(lines, "\n")), "\n"))
}

// rule is a button that decides a question of an agent's.
func (b *Bot) rule(v sessions.Verdict) Handler {
	return func(ctx context.Context, a Act) (string, error) {
		return b.threads.Rule(ctx, threads.Ruling{Token: a.Value, Verdict: v, Actor: a.Actor, TS: a.TS})
	}
}

// askReason opens the modal that asks for the reason. Of a question that is not open any more it is said so instead.
func (b *Bot) askReason(ctx context.Context, a Act) (string, error) {
	if why, ok := b.threads.Asked(ctx, a.Value); !ok {
		return why, ctx.Err()
	}
	_, err := b.o.Client.openView(ctx, a, render.Reason(a.Value))
	return "", tooLate(err)
}

// submitReason decides with the reason that was given. What came of it is shown in the modal.
func (b *Bot) submitReason(ctx context.Context, a Act) any {
	field := loose(a.Payload).obj("view").obj("state").obj("values").obj(render.FieldReason).obj(render.FieldValue)
	return b.soon(ctx, a, "Telling the agent …", func(ctx context.Context) (string, error) {
		text, err := b.threads.Rule(ctx, threads.Ruling{Token: a.View.Meta, Verdict: sessions.VerdictDeny,
			Reason: strings.TrimSpace(field.str("value")), Actor: a.Actor})
		if errors.Is(err, threads.ErrDenied) { // taken off the list meanwhile
			return "", nil
		}
		return text, err
	})
}

// How often the screens are looked at for dialogs that no hook tells of, and what one look may take. There is a pause between
// two looks, so that a thousand sessions cost no more than a hundred and are seen less often.
const (
	screensEvery = 15 * time.Second
	screenPause  = 100 * time.Millisecond
	lookTime     = 5 * time.Second
)

// watchScreens tells the threads what their agents' screens show, one after the other.
func (b *Bot) watchScreens(ctx context.Context) {
	tick := time.NewTicker(b.o.Looks)
	defer tick.Stop()
	pause := time.NewTicker(min(screenPause, b.o.Looks))
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for id, ref := range b.threads.Sessions() {
			if !b.threads.Bound(id) {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
				b.lookAt(ctx, id, ref)
			}
		}
	}
}

// lookAt looks at one screen. A session that does not run has none.
func (b *Bot) lookAt(ctx context.Context, id string, ref sessions.Ref) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if view, err := b.o.Core.View(ctx, sessions.ViewRequest{Ref: ref, ID: id}); err == nil {
		b.threads.Seen(id, view)
	}
}
