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
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
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
type AnswerRenderer func(ref sessions.Ref, said sessions.AgentMessage) Rendering

// Rendering is what is posted of a text.
type Rendering struct {
	Texts    []string  // of posts, with Slack's marks; none: there is nothing to show
	FullText *FullText // follows them when they are only the beginning
}

// FullText is a text as a file.
type FullText struct {
	Name     string
	Content  string
	Text     string // of the post with the file
	Fallback string // the text of the post when the file cannot be posted
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

// transcriptStart is the moment from which on an agent is listened to whose run began then.
func transcriptStart(started, now time.Time) time.Time {
	if age := now.Sub(started); age >= 0 && age < freshRun {
		return started.Add(-startSlack)
	}
	return now
}

// answerMode are the texts that are posted now.
func (m *Manager) answerMode() Answers {
	if a := m.o.Settings().Answers; a != "" {
		return a
	}
	return AnswersOff
}

// Relay has posted what the agent of a session said and reported since the last time: in order, each text once, also across
// crashes. While [Settings].Answers is off, and before there is a thread, nothing that it said is kept for later. It returns
// the files that change when there is more. Several calls for one session exclude each other's doubles.
func (m *Manager) Relay(ctx context.Context, id string) (watch []string, err error) {
	t := m.threadOf(id)
	if t == nil {
		return nil, nil
	}
	watch, err = m.relayTranscript(ctx, t)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // what it says cannot be read, but it may report
	}
	reports, notErr := m.relayReports(ctx, t)
	for _, file := range reports {
		if !slices.Contains(watch, file) {
			watch = append(watch, file)
		}
	}
	return watch, errors.Join(err, notErr)
}

// hear has posted what the agent said.
func (m *Manager) relayTranscript(ctx context.Context, t *thread) (watch []string, err error) {
	q, ok := call(ctx, t, func(context.Context) *sessions.TranscriptRequest { return t.transcriptRequest() })
	switch {
	case !ok:
		return nil, ctx.Err()
	case q == nil:
		return nil, nil
	}
	if n := m.outbox.LenOfSession(t.sessionID); n >= maxUnposted {
		return nil, fmt.Errorf("%d messages of the session wait to be posted; what else it says is read when they are", n)
	}
	told, err := m.o.Agent.ReadTranscript(ctx, *q)
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, sessions.ErrNotRecorded) {
			t.do(func(context.Context) { t.onTurn(sessions.Turn{}, false) })
		}
		return nil, err
	}
	err, ok = call(ctx, t, func(context.Context) error { return t.relayBatch(q.Offset, told) })
	if !ok {
		return nil, ctx.Err()
	}
	return told.WatchFiles, err
}

// transcriptRequest is what to ask the agent; nil: nothing.
func (t *thread) transcriptRequest() *sessions.TranscriptRequest {
	if t.unbound || t.b.Root == "" {
		return nil
	}
	if t.m.answerMode() == AnswersOff {
		t.onTurn(sessions.Turn{}, false)
		if t.b.TranscriptOffset != "" || !t.b.TranscriptSince.IsZero() {
			t.b.TranscriptOffset, t.b.TranscriptSince = "", time.Time{} // when it is on again, nothing old is posted
			t.saveBestEffort()
		}
		return nil
	}
	if t.b.TranscriptOffset == "" && t.b.TranscriptSince.IsZero() {
		t.b.TranscriptSince = t.m.o.Now()
		t.saveBestEffort()
	}
	return &sessions.TranscriptRequest{Ref: t.ref, ID: t.sessionID, Offset: t.b.TranscriptOffset, Since: t.b.TranscriptSince}
}

// relayBatch puts what the agent said since an offset into the outbox, and then stores how far that is. After a crash in between the
// same texts come again: they are looked for before they are posted.
func (t *thread) relayBatch(since sessions.Offset, told sessions.TranscriptBatch) error {
	if t.unbound || t.b.Root == "" || t.b.TranscriptOffset != since {
		return nil
	}
	t.onTurn(told.Turn, told.Next != since)
	for _, said := range told.Messages {
		if err := t.postAnswer(said); err != nil {
			t.transcriptSynced = false
			return fmt.Errorf("keep what the agent said: %w", err)
		}
	}
	if told.Next == since {
		t.transcriptSynced = true
		return nil
	}
	t.b.TranscriptOffset = told.Next
	err := t.save()
	if t.transcriptSynced = err == nil; !t.transcriptSynced {
		t.b.TranscriptOffset = since
		return fmt.Errorf("store how far the agent was listened to: %w", err)
	}
	return nil
}

// postAnswer puts one text into the outbox, as one or more messages.
func (t *thread) postAnswer(said sessions.AgentMessage) error {
	if !said.Final && t.m.answerMode() != AnswersAll {
		return nil
	}
	sum := sha256.Sum256([]byte(said.Key))
	nonce := t.sessionID + "." + hex.EncodeToString(sum[:12]) + "."
	r := t.m.renderAnswer(t.ref, said)
	for i, text := range r.Texts {
		l := &outbox.Message{Post: t.newPost(text, nonce+strconv.Itoa(i)), Since: said.At, MaybePosted: !t.transcriptSynced}
		if err := t.m.outbox.Put(l); err != nil {
			return err
		}
	}
	if r.FullText == nil {
		return nil
	}
	l := &outbox.Message{Post: t.newPost(r.FullText.Text, nonce+"whole"), Since: said.At, MaybePosted: !t.transcriptSynced}
	if err := t.m.outbox.AttachText(l, outbox.TextFile{Name: r.FullText.Name, Content: r.FullText.Content, Fallback: r.FullText.Fallback}, t.m.o.Settings().MaxFile); err != nil {
		return err
	}
	return t.m.outbox.Put(l)
}

func (m *Manager) renderAnswer(ref sessions.Ref, said sessions.AgentMessage) Rendering {
	if m.o.RenderAnswer == nil {
		return Rendering{Texts: []string{chat.Escape(said.Text)}}
	}
	return m.o.RenderAnswer(ref, said)
}
