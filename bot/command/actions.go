package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads"
)

// SessionReader shows which sessions there are.
type SessionReader interface {
	List(ctx context.Context) ([]sessions.Row, error)
	Drift(ctx context.Context) sessions.Drift
}

// Lifecycle starts and stops sessions.
type Lifecycle interface {
	Start(ctx context.Context, q sessions.StartRequest) (sessions.Row, error)
	Stop(ctx context.Context, q sessions.StopRequest) (sessions.Row, error)
	Restart(ctx context.Context, q sessions.RestartRequest) (sessions.Row, error)
}

// Creator creates and deletes sessions.
type Creator interface {
	Create(ctx context.Context, q sessions.CreateRequest) (sessions.Row, error)
	Delete(ctx context.Context, q sessions.DeleteRequest) (sessions.Row, error)
	CheckDeletable(q sessions.DeleteRequest) error
}

// Terminal reads and writes the terminals of sessions.
type Terminal interface {
	Submit(ctx context.Context, q sessions.SubmitRequest) (sessions.Receipt, error)
	Keys(ctx context.Context, q sessions.KeysRequest) (sessions.KeysEffect, error)
	Peek(ctx context.Context, q sessions.PeekRequest) (sessions.PeekResult, error)
	PeekANSI(ctx context.Context, q sessions.PeekRequest) (string, error)
}

// Threads posts in the threads of sessions.
type Threads interface {
	Notify(ctx context.Context, id string, n threads.Notification) bool
	ThreadOf(id string) (channel, root string, ok bool)
}

// ImagePoster posts pictures in threads.
type ImagePoster interface {
	MayUpload() bool
	// PostFile posts a file. [errors.ErrUnsupported] where the bot may not upload files.
	PostFile(ctx context.Context, channel, root, name, title string, data []byte) error
}

// CreateOptions say how sessions are created from Slack.
type CreateOptions struct {
	Limits         Limits
	DefaultHarness string // of a session that names none
	DefaultCwd     string // absolute; of a session that names none
}

// ActionsOptions are what [Actions] are made of. All fields are required.
type ActionsOptions struct {
	Sessions        SessionReader
	Lifecycle       Lifecycle
	Creator         Creator
	Terminal        Terminal
	Threads         Threads
	Images          ImagePoster
	Create          func() CreateOptions                          // now
	MemberName      func(ctx context.Context, user string) string // display name; the id when it is not known
	AnnounceChannel func(r sessions.Row) string                   // where a session is announced; empty: nowhere
	OnChange        func()                                        // called when a session was changed
	Scrub           func(string) string                           // removes the values of the environment from a text
	Log             *slog.Logger
}

// Actions are what members do to sessions, by commands and buttons alike.
type Actions struct{ o ActionsOptions }

// NewActions returns the actions over what they need.
func NewActions(o ActionsOptions) *Actions { return &Actions{o} }

// errSessionDeleted answers a press whose session is not there any more.
var errSessionDeleted = errors.New("this session was deleted; a new session may have its name")

// Find is the session that a handle names: its id, or its ref.
func (a *Actions) Find(ctx context.Context, handle string) (sessions.Row, error) {
	rows, err := a.o.Sessions.List(ctx)
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

// FindDeletable is [Actions.Find] for a session that may be deleted.
func (a *Actions) FindDeletable(ctx context.Context, handle string) (sessions.Row, error) {
	row, err := a.Find(ctx, handle)
	if err != nil {
		return sessions.Row{}, err
	}
	return row, a.o.Creator.CheckDeletable(sessions.DeleteRequest{Ref: row.Ref})
}

// ChangeState starts, stops or restarts a session. An empty id means whichever session has the ref now.
func (a *Actions) ChangeState(ctx context.Context, verb string, ref sessions.Ref, id string) (sessions.Row, error) {
	defer a.o.OnChange()
	switch verb {
	case VerbStart:
		return a.o.Lifecycle.Start(ctx, sessions.StartRequest{Ref: ref, ID: id})
	case VerbStop:
		return a.o.Lifecycle.Stop(ctx, sessions.StopRequest{Ref: ref, ID: id})
	}
	return a.o.Lifecycle.Restart(ctx, sessions.RestartRequest{Ref: ref, ID: id})
}

// Delete deletes the session that a handle names.
func (a *Actions) Delete(ctx context.Context, handle string) (string, error) {
	row, err := a.Find(ctx, handle)
	if err != nil {
		return "", err
	}
	defer a.o.OnChange()
	row, err = a.o.Creator.Delete(ctx, sessions.DeleteRequest{Ref: row.Ref, ID: row.ID})
	if err != nil {
		return "", err
	}
	return "*" + render.EscapeName(row.Name) + "* was " + string(row.Outcome) + ".", nil
}

// Send types a text into a session as a reply in its thread would, but does not wait: what cannot be typed now is not typed.
func (a *Actions) Send(ctx context.Context, user string, ref sessions.Ref, text string) (string, error) {
	receipt, err := a.o.Terminal.Submit(ctx, sessions.SubmitRequest{Ref: ref, Text: text, Sender: a.o.MemberName(ctx, user)})
	var held *sessions.HeldError
	switch {
	case errors.As(err, &held):
		return fmt.Sprintf("Not sent: %s. Try again later, or reply in its thread: a reply waits.", render.Escape(held.Error())), nil
	case err != nil:
		return "", err
	case receipt == sessions.ReceiptAccepted:
		return fmt.Sprintf("*%s* has received it.", render.EscapeName(ref.Name())), nil
	}
	return fmt.Sprintf("Sent to *%s*. This agent cannot confirm receipt.", render.EscapeName(ref.Name())), nil
}

// Peek shows a session's terminal to a member, and with share to its thread.
func (a *Actions) Peek(ctx context.Context, ref sessions.Ref, user string, share bool) (string, error) {
	p, err := a.o.Terminal.Peek(ctx, sessions.PeekRequest{Ref: ref})
	if err != nil {
		return "", err
	}
	screen := render.PeekText(p.Row, a.o.Scrub(p.Text))
	if !share {
		return screen, nil
	}
	if !a.o.Threads.Notify(ctx, p.Row.ID, threads.Notification{Text: fmt.Sprintf("Shared by <@%s>: %s", user, screen)}) {
		return "This session has no thread, so only you see this.\n" + screen, nil
	}
	return a.shareImage(ctx, ref, p.Row.ID)
}

// shareImage posts a picture of a session's screen in its thread. Where files may not be uploaded there is none.
func (a *Actions) shareImage(ctx context.Context, ref sessions.Ref, id string) (string, error) {
	channel, root, ok := a.o.Threads.ThreadOf(id)
	if !ok || !a.o.Images.MayUpload() {
		return "Shared in its thread.", nil
	}
	err := a.postImage(ctx, ref, channel, root)
	switch {
	case err == nil:
		return "Shared in its thread, with a picture.", nil
	case errors.Is(err, errors.ErrUnsupported):
		a.o.Log.Info("shared a screen without a picture", "ref", ref, "error", err)
		return "Shared in its thread.", nil
	}
	a.o.Log.Warn("could not post the picture of a screen", "ref", ref, "error", err)
	return "Shared in its thread as text. The picture could not be posted: " + render.Escape(err.Error()), nil
}

func (a *Actions) postImage(ctx context.Context, ref sessions.Ref, channel, root string) error {
	ansi, err := a.o.Terminal.PeekANSI(ctx, sessions.PeekRequest{Ref: ref})
	if err != nil {
		return err
	}
	data, err := render.ParseScreen(ansi).Scrubbed(a.o.Scrub).PNG()
	if err != nil {
		return err
	}
	return a.o.Images.PostFile(ctx, channel, root, strings.ReplaceAll(ref.Name(), "/", "-")+".png", "The screen of "+ref.Name(), data)
}
