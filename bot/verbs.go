package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"the-loop/bot/render"
	"the-loop/bot/slack"
	"the-loop/sessions"
	"the-loop/threads"
)

// The verbs that change how a session is.
const (
	verbStart   = "start"
	verbStop    = "stop"
	verbRestart = "restart"
)

// errSessionDeleted answers a press whose session is not there any more.
var errSessionDeleted = errors.New("this session was deleted; one that has its name now is another one")

// findSession is the session that a button's value, or a command, names: by its id, or by its ref.
func (b *Bot) findSession(ctx context.Context, handle string) (sessions.Row, error) {
	rows, err := b.o.Core.List(ctx)
	if err != nil {
		return sessions.Row{}, err
	}
	ref, isRef := sessions.Ref(handle), strings.Contains(handle, ":")
	for _, r := range rows {
		if isRef && r.Ref.Same(ref) || !isRef && r.ID == handle && handle != "" {
			return r, nil
		}
	}
	if isRef {
		return sessions.Row{}, fmt.Errorf("%w %s", sessions.ErrNotRecorded, ref)
	}
	return sessions.Row{}, errSessionDeleted
}

// change starts, stops or restarts a session, and has what is shown of it brought up to date. id is the one that is meant;
// empty: whichever has the ref now.
func (b *Bot) changeState(ctx context.Context, verb string, ref sessions.Ref, id string) (sessions.Row, error) {
	defer b.announcer.wake()
	switch verb {
	case verbStart:
		return b.o.Core.Start(ctx, sessions.StartRequest{Ref: ref, ID: id})
	case verbStop:
		return b.o.Core.Stop(ctx, sessions.StopRequest{Ref: ref, ID: id})
	}
	return b.o.Core.Restart(ctx, sessions.RestartRequest{Ref: ref, ID: id})
}

// remove deletes a session. Its thread ends with the next comparison.
func (b *Bot) deleteSession(ctx context.Context, ref sessions.Ref, id string) (string, error) {
	defer b.announcer.wake()
	row, err := b.o.Core.Delete(ctx, sessions.DeleteRequest{Ref: ref, ID: id})
	if err != nil {
		return "", err
	}
	return "*" + render.Name(row.Name) + "* was " + string(row.Outcome) + ".", nil
}

// say types a text into a session, as a reply in its thread does, and tells how well it is known to have arrived. It
// waits for nothing: what cannot be typed now was not typed.
func (b *Bot) sendText(ctx context.Context, a Interaction, ref sessions.Ref, text string) (string, error) {
	person, err := b.o.Client.People().Person(ctx, a.Actor.User)
	if err != nil {
		b.o.Log.Info("cannot tell how a member is called", "member", a.Actor.User, "error", err)
	}
	receipt, err := b.o.Core.Submit(ctx, sessions.SubmitRequest{Ref: ref, Text: text, Sender: cmp.Or(sessions.DisplayName(person.Name), a.Actor.User)})
	var held *sessions.HeldError
	switch {
	case errors.As(err, &held):
		return fmt.Sprintf("Not typed: %s. Say it again when that is over, or reply in its thread: a reply waits.", render.Escape(held.Error())), nil
	case err != nil:
		return "", err
	case receipt == sessions.ReceiptAccepted:
		return fmt.Sprintf("*%s* has taken it.", render.Name(ref.Name())), nil
	}
	return fmt.Sprintf("It was typed into *%s*. Whether it was taken cannot be told of this agent.", render.Name(ref.Name())), nil
}

// scrub is a text of an agent's, or of its terminal, without the values of the environment.
func (b *Bot) scrub(text string) string {
	if b.o.Scrub == nil {
		return text
	}
	return b.o.Scrub(text)
}

// peek shows what a session's terminal shows to who asked, and with share to its thread.
func (b *Bot) peek(ctx context.Context, ref sessions.Ref, user string, share bool) (string, error) {
	p, err := b.o.Core.Peek(ctx, sessions.PeekRequest{Ref: ref})
	if err != nil {
		return "", err
	}
	screen := render.Peeked(p.Row, b.scrub(p.Text))
	if !share {
		return screen, nil
	}
	told := b.threads.Notify(ctx, p.Row.ID, threads.Notification{Text: fmt.Sprintf("Shared by <@%s>: %s", user, screen)})
	if !told {
		return "It has no thread to share this in, so only you see it.\n" + screen, nil
	}
	return b.shareScreenImage(ctx, ref, p.Row.ID)
}

// picture posts a picture of a session's screen in its thread. Where files may not be uploaded there is none.
func (b *Bot) shareScreenImage(ctx context.Context, ref sessions.Ref, id string) (string, error) {
	channel, root, ok := b.threads.ThreadOf(id)
	if !ok || !b.o.Client.MayUpload() {
		return "Shared in its thread.", nil
	}
	err := b.postScreenImage(ctx, ref, channel, root)
	switch {
	case err == nil:
		return "Shared in its thread, with a picture.", nil
	case errors.Is(err, slack.ErrNoUpload), errors.Is(err, errors.ErrUnsupported):
		b.o.Log.Info("no picture of a shared screen", "ref", ref, "error", err)
		return "Shared in its thread.", nil
	}
	b.o.Log.Warn("could not post the picture of a screen", "ref", ref, "error", err)
	return "Shared in its thread as text. The picture could not be posted: " + render.Escape(err.Error()), nil
}

func (b *Bot) postScreenImage(ctx context.Context, ref sessions.Ref, channel, root string) error {
	ansi, err := b.o.Core.PeekANSI(ctx, sessions.PeekRequest{Ref: ref})
	if err != nil {
		return err
	}
	data, err := render.ParseScreen(ansi).Scrubbed(b.scrub).PNG()
	if err != nil {
		return err
	}
	return b.o.Client.PostFile(ctx, channel, root, strings.ReplaceAll(ref.Name(), "/", "-")+".png", "The screen of "+ref.Name(), data)
}

// listText answers the slash command of that name.
func (b *Bot) listText(ctx context.Context) (string, error) {
	rows, err := b.o.Core.List(ctx)
	if err != nil {
		return "", err
	}
	return render.List(rows), nil
}

// capitalize begins a sentence.
func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
