// Package relay posts in a thread what its agent says, from the transcript, and what it reports.
package relay

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
	"the-loop/threads/actor"
	"the-loop/threads/binding"
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

// AnswerRenderer makes messages of what an agent said.
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

// maxUnposted is how many messages of one session may wait in the outbox while its transcript is read. What the agent says later
// waits in the transcript.
const maxUnposted = 200

// freshRun is how young a run may be so that what the agent said before the announcement is posted: the answer to its first
// prompt.
const freshRun = time.Minute

// startSlack is how long before the recorded beginning of its run an agent may have said something: the record is written when
// the pane is there.
const startSlack = 5 * time.Second

// transcriptStart is the moment from which on a new thread posts what the agent says.
func transcriptStart(started, now time.Time) time.Time {
	if age := now.Sub(started); age >= 0 && age < freshRun {
		return started.Add(-startSlack)
	}
	return now
}

// TranscriptReader reads what agents say.
type TranscriptReader interface {
	ReadTranscript(ctx context.Context, q sessions.TranscriptRequest) (sessions.TranscriptBatch, error)
}

// TurnObserver hears of an agent's turn.
type TurnObserver interface {
	OnTurn(turn sessions.Turn, news bool)
}

// PermissionReports takes permission requests that an agent reports.
type PermissionReports interface {
	Add(batch sessions.ReportBatch) (fresh []string)
	Watch(name string, earlier bool)
	Reconcile(ctx context.Context, answers []sessions.AnsweredPermission)
}

// Options are what a [Relay] is made of. All fields but the marked ones are required.
type Options struct {
	Outbox      *outbox.Outbox
	Agent       TranscriptReader
	Reports     BatchReader // optional: what agents report is not read
	Turn        TurnObserver
	Permissions PermissionReports
	Answers     func() Answers
	Render      AnswerRenderer
	MaxFile     func() int64           // bytes of one file; 0: none is posted
	IsSecret    func(text string) bool // the text holds what must be posted nowhere
	Clock       *chat.Clock
	Now         func() time.Time
}

// Relay posts what the agent of one thread says and reports.
type Relay struct {
	*binding.Thread
	o                Options
	transcriptSynced bool // no text of the agent is in the outbox, or posted, that lies after the stored offset
	reportsSynced    bool // no file of the agent is in the outbox, or posted, that was reported after the stored offset
}

// New is the relay of a thread. fresh says that the thread is new, so that nothing can have been posted in it.
func New(t *binding.Thread, o Options, fresh bool) *Relay {
	return &Relay{Thread: t, o: o, transcriptSynced: fresh}
}

// Begin sets from when on the agent of a thread that is about to be announced is relayed; its run began at started. The
// caller saves.
func (rl *Relay) Begin(started time.Time) {
	from := transcriptStart(started, rl.o.Now())
	rl.B.TranscriptOffset, rl.B.TranscriptSince = "", time.Time{}
	if rl.B.ReportOffset == "" {
		rl.B.ReportsSince = from
	}
	if rl.o.Answers() != AnswersOff {
		rl.B.TranscriptSince = from
	}
}

// Run relays what is new, and returns the files that change when there is more.
func (rl *Relay) Run(ctx context.Context) (watch []string, err error) {
	watch, err = rl.transcript(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil // its transcript cannot be read, but it may report
	}
	more, reportErr := rl.reports(ctx)
	for _, file := range more {
		if !slices.Contains(watch, file) {
			watch = append(watch, file)
		}
	}
	return watch, errors.Join(err, reportErr)
}

// transcript posts what the agent said.
func (rl *Relay) transcript(ctx context.Context) (watch []string, err error) {
	q, ok := actor.Call(ctx, rl.Actor, func(context.Context) *sessions.TranscriptRequest { return rl.transcriptRequest() })
	switch {
	case !ok:
		return nil, ctx.Err()
	case q == nil:
		return nil, nil
	}
	if n := rl.o.Outbox.LenOfSession(rl.SessionID); n >= maxUnposted {
		return nil, fmt.Errorf("%d messages of the session wait to be posted; what else it says is read when they are", n)
	}
	batch, err := rl.o.Agent.ReadTranscript(ctx, *q)
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, sessions.ErrNotRecorded) {
			rl.Do(func(context.Context) { rl.o.Turn.OnTurn(sessions.Turn{}, false) })
		}
		return nil, err
	}
	err, ok = actor.Call(ctx, rl.Actor, func(context.Context) error { return rl.applyTranscript(q.Offset, batch) })
	if !ok {
		return nil, ctx.Err()
	}
	return batch.WatchFiles, err
}

// transcriptRequest is what of the transcript to read; nil: nothing.
func (rl *Relay) transcriptRequest() *sessions.TranscriptRequest {
	if rl.Unbound || rl.B.Root == "" {
		return nil
	}
	if rl.o.Answers() == AnswersOff {
		rl.o.Turn.OnTurn(sessions.Turn{}, false)
		if rl.B.TranscriptOffset != "" || !rl.B.TranscriptSince.IsZero() {
			rl.B.TranscriptOffset, rl.B.TranscriptSince = "", time.Time{} // when it is on again, nothing old is posted
			rl.SaveBestEffort()
		}
		return nil
	}
	if rl.B.TranscriptOffset == "" && rl.B.TranscriptSince.IsZero() {
		rl.B.TranscriptSince = rl.o.Now()
		rl.SaveBestEffort()
	}
	return &sessions.TranscriptRequest{Ref: rl.Ref, ID: rl.SessionID, Offset: rl.B.TranscriptOffset, Since: rl.B.TranscriptSince}
}

// applyTranscript queues what the agent said since an offset, and then stores the new offset. After a crash in between the same
// texts come again: they are looked for before they are posted.
func (rl *Relay) applyTranscript(since sessions.Offset, batch sessions.TranscriptBatch) error {
	if rl.Unbound || rl.B.Root == "" || rl.B.TranscriptOffset != since {
		return nil
	}
	rl.o.Turn.OnTurn(batch.Turn, batch.Next != since)
	for _, said := range batch.Messages {
		if err := rl.postAnswer(said); err != nil {
			rl.transcriptSynced = false
			return fmt.Errorf("queue what the agent said: %w", err)
		}
	}
	if batch.Next == since {
		rl.transcriptSynced = true
		return nil
	}
	rl.B.TranscriptOffset = batch.Next
	err := rl.Save()
	if rl.transcriptSynced = err == nil; !rl.transcriptSynced {
		rl.B.TranscriptOffset = since
		return fmt.Errorf("store how far the transcript was read: %w", err)
	}
	return nil
}

// postAnswer queues one text, as one or more messages.
func (rl *Relay) postAnswer(said sessions.AgentMessage) error {
	if !said.Final && rl.o.Answers() != AnswersAll {
		return nil
	}
	sum := sha256.Sum256([]byte(said.Key))
	nonce := rl.SessionID + "." + hex.EncodeToString(sum[:12]) + "."
	r := rl.o.Render(rl.Ref, said)
	for i, text := range r.Texts {
		msg := &outbox.Message{Post: rl.NewPost(text, nonce+strconv.Itoa(i)), Since: said.At, MaybePosted: !rl.transcriptSynced}
		if err := rl.o.Outbox.Put(msg); err != nil {
			return err
		}
	}
	if r.FullText == nil {
		return nil
	}
	msg := &outbox.Message{Post: rl.NewPost(r.FullText.Text, nonce+"whole"), Since: said.At, MaybePosted: !rl.transcriptSynced}
	if err := rl.o.Outbox.AttachText(msg, outbox.TextFile{Name: r.FullText.Name, Content: r.FullText.Content, Fallback: r.FullText.Fallback}, rl.o.MaxFile()); err != nil {
		return err
	}
	return rl.o.Outbox.Put(msg)
}
