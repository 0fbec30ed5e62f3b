package threads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"the-loop/sessions"
)

// Answers says which texts of an agent are posted in its thread.
type Answers string

// The kinds of [Answers].
const (
	AnswersOff   Answers = "off"
	AnswersFinal Answers = "final" // what ends a turn
	AnswersAll   Answers = "all"   // also what is said between two steps
)

// Pages makes messages of what an agent said.
type Pages func(ref sessions.Ref, said sessions.Said) Rendering

// Rendering is what is posted of a text.
type Rendering struct {
	Texts []string // of posts, with Slack's marks; none: there is nothing to show
	Whole *Whole   // follows them when they are only the beginning
}

// Whole is a text as a file.
type Whole struct {
	Name    string
	Content string
	Text    string // of the post with the file
	Instead string // the text of the post when the file cannot be posted
}

// maxUnposted is how many messages of one session may wait in the outbox while the agent is listened to. What it says later
// waits in its own record.
const maxUnposted = 200

// freshRun is how young a run may be for what it said before its announcement to be posted: the answer to the prompt
// that it was started with.
const freshRun = time.Minute

// startSlack is how long before the recorded beginning of its run an agent may have answered: the record is written when
// the pane is there.
const startSlack = 5 * time.Second

// hearFrom is the moment from which on an agent is listened to whose run began then.
func hearFrom(started, now time.Time) time.Time {
	if age := now.Sub(started); age >= 0 && age < freshRun {
		return started.Add(-startSlack)
	}
	return now
}

// answers are the texts that are posted now.
func (m *Manager) answers() Answers {
	if a := m.o.Settings().Answers; a != "" {
		return a
	}
	return AnswersOff
}

// Relay has posted what the agent of a session said and reported since the last time: in order, each text once, also across
// crashes. While [Settings].Answers is off, and before there is a thread, nothing that it said is kept for later. It returns
// the files that change when there is more. Several calls for one session exclude each other's doubles.
func (m *Manager) Relay(ctx context.Context, id string) (watch []string, err error) {
	t := m.of(id)
	if t == nil {
		return nil, nil
	}
	watch, err = m.hear(ctx, t)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // what it says cannot be read, but it may report
	}
	reports, notErr := m.note(ctx, t)
	for _, file := range reports {
		if !slices.Contains(watch, file) {
			watch = append(watch, file)
		}
	}
	return watch, errors.Join(err, notErr)
}

// hear has posted what the agent said.
func (m *Manager) hear(ctx context.Context, t *thread) (watch []string, err error) {
	q, ok := ask(ctx, t, func(context.Context) *sessions.ToldRequest { return t.listening() })
	switch {
	case !ok:
		return nil, ctx.Err()
	case q == nil:
		return nil, nil
	}
	if n := m.outbox.of(t.id); n >= maxUnposted {
		return nil, fmt.Errorf("%d messages of the session wait to be posted; what else it says is read when they are", n)
	}
	told, err := m.o.Agent.Told(ctx, *q)
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, sessions.ErrNotRecorded) {
			t.do(func(context.Context) { t.turned(sessions.Turn{}, false) })
		}
		return nil, err
	}
	err, ok = ask(ctx, t, func(context.Context) error { return t.relay(q.Place, told) })
	if !ok {
		return nil, ctx.Err()
	}
	return told.Watch, err
}

// listening is what to ask the agent; nil: nothing.
func (t *thread) listening() *sessions.ToldRequest {
	if t.gone || t.b.Root == "" {
		return nil
	}
	if t.m.answers() == AnswersOff {
		t.turned(sessions.Turn{}, false)
		if t.b.Heard != "" || !t.b.HeardSince.IsZero() {
			t.b.Heard, t.b.HeardSince = "", time.Time{} // when it is on again, nothing old is posted
			t.keep()
		}
		return nil
	}
	if t.b.Heard == "" && t.b.HeardSince.IsZero() {
		t.b.HeardSince = t.m.o.Now()
		t.keep()
	}
	return &sessions.ToldRequest{Ref: t.ref, ID: t.id, Place: t.b.Heard, Since: t.b.HeardSince}
}

// relay puts what the agent said after place into the outbox, and then stores how far that is. After a crash in between the
// same texts come again: they are looked for before they are posted.
func (t *thread) relay(place string, told sessions.Told) error {
	if t.gone || t.b.Root == "" || t.b.Heard != place {
		return nil
	}
	t.turned(told.Turn, told.Next != place)
	for _, said := range told.Said {
		if err := t.answer(said); err != nil {
			t.level = false
			return fmt.Errorf("keep what the agent said: %w", err)
		}
	}
	if told.Next == place {
		t.level = true
		return nil
	}
	t.b.Heard = told.Next
	err := t.save()
	if t.level = err == nil; !t.level {
		t.b.Heard = place
		return fmt.Errorf("store how far the agent was listened to: %w", err)
	}
	return nil
}

// answer puts one text into the outbox, as one or more messages.
func (t *thread) answer(said sessions.Said) error {
	if !said.Final && t.m.answers() != AnswersAll {
		return nil
	}
	sum := sha256.Sum256([]byte(said.Key))
	nonce := t.id + "." + hex.EncodeToString(sum[:12]) + "."
	r := t.m.pages(t.ref, said)
	for i, text := range r.Texts {
		l := &letter{Post: t.message(text, nonce+strconv.Itoa(i)), Since: said.At, Tried: !t.level}
		if err := t.m.outbox.put(l); err != nil {
			return err
		}
	}
	if r.Whole == nil {
		return nil
	}
	l := &letter{Post: t.message(r.Whole.Text, nonce+"whole"), Since: said.At, Tried: !t.level}
	if err := t.m.outbox.enclose(l, *r.Whole, t.m.o.Settings().MaxFile); err != nil {
		return err
	}
	return t.m.outbox.put(l)
}

func (m *Manager) pages(ref sessions.Ref, said sessions.Said) Rendering {
	if m.o.Pages == nil {
		return Rendering{Texts: []string{escape(said.Text)}}
	}
	return m.o.Pages(ref, said)
}
