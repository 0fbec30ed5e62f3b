package threads

import (
	"context"
	"errors"
	"fmt"

	"the-loop/sessions"
)

// Noter is what a thread asks of the core about what agents report.
type Noter interface {
	Noted(ctx context.Context, q sessions.NotedRequest) (sessions.Noted, error)
	Attend(ctx context.Context, q sessions.AttendRequest) error
	Answer(ctx context.Context, q sessions.AnswerRequest) error
}

// note takes up what the agent of a thread reported since the last time.
func (m *Manager) note(ctx context.Context, t *thread) (watch []string, err error) {
	if m.o.Noter == nil {
		return nil, nil
	}
	q, ok := ask(ctx, t, func(context.Context) *sessions.NotedRequest { return t.noting() })
	switch {
	case !ok:
		return nil, ctx.Err()
	case q == nil:
		return nil, nil
	}
	noted, err := m.o.Noter.Noted(ctx, *q)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := t.parcels(noted)
	if err != nil {
		return nil, fmt.Errorf("copy what the agent wants to post: %w", err)
	}
	err, ok = ask(ctx, t, func(ctx context.Context) error { return t.noted(ctx, q.Place, noted, files) })
	if !ok {
		return nil, ctx.Err()
	}
	return noted.Watch, err
}

// noting is what to ask for; nil: nothing, since there is no thread.
func (t *thread) noting() *sessions.NotedRequest {
	if t.gone || t.b.Root == "" {
		return nil
	}
	return &sessions.NotedRequest{Ref: t.ref, ID: t.id, Place: t.b.Noted, Since: t.b.NotedSince}
}

// noted takes up what was reported after place, and stores how far that is in the same write. What is put into the outbox
// here comes again after a crash: it is looked for before it is posted.
func (t *thread) noted(ctx context.Context, place string, noted sessions.Noted, files []*letter) error {
	if t.gone || t.b.Root == "" || t.b.Noted != place {
		return nil
	}
	if err := t.mail(files); err != nil {
		return err
	}
	if t.mailed = noted.Next == place; t.mailed {
		return nil
	}
	fresh := t.takeAsks(noted)
	t.b.Noted = noted.Next
	err := t.save()
	if t.mailed = err == nil; !t.mailed {
		t.b.Noted = place
		for _, name := range fresh {
			delete(t.b.Asks, name)
		}
		return fmt.Errorf("store how far the agent's reports were read: %w", err)
	}
	for _, name := range fresh {
		t.attend(name, false)
	}
	t.answered(ctx, noted.Answered)
	return nil
}
