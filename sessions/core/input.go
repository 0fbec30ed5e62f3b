package core

import (
	"context"
	"log/slog"
	"time"

	"the-loop/sessions"
)

// Input has the verbs that give agents texts, keys and answers to their permission requests.
type Input struct {
	records     *records
	panes       *panes
	agents      *agents
	events      *events
	typist      *typist
	permissions *openPermissions
	reports     sessions.Reports // nil: there are none
}

// Submit types one text into the session's pane, bracketed and whole, submits it, and waits for the proof that the agent
// accepted it where the harness gives any. Errors:
//   - a [*sessions.Refusal]: nothing was typed, and trying again changes nothing until its remedy was followed;
//   - a [*sessions.HeldError], a [*sessions.LockedError], or [sessions.ErrTerminalTimeout] alone: nothing was typed, try again later;
//   - [sessions.ErrInDoubt]: it may have been typed, and must not be typed again unasked;
//   - any other: nothing was typed.
func (in *Input) Submit(ctx context.Context, q sessions.SubmitRequest) (sessions.Receipt, error) {
	s := &submission{typist: in.typist, q: q}
	receipt, err := s.run(ctx)
	if s.harness != nil { // the session was found
		in.typist.updateConversation(ctx, s.harness, s.rec)
	}
	if err != nil {
		return "", err
	}
	in.events.emit(ctx, sessions.EventSubmitted, slog.LevelInfo, s.rec, map[string]any{"receipt": receipt, "bytes": len(s.text)})
	return receipt, nil
}

// VerifyInput reports whether the agent's transcript shows the text. False means that there is no evidence; the text may have
// arrived all the same.
func (in *Input) VerifyInput(ctx context.Context, q sessions.VerifyInputRequest) (bool, error) {
	rec, err := in.records.require(ctx, q.Ref)
	if err != nil {
		return false, err
	}
	h, err := in.agents.harness(rec.Definition.Harness)
	if err != nil {
		return false, err
	}
	can := h.Capabilities()
	if can.Input == nil || rec.ID != q.ID {
		return false, nil
	}
	return awaitEvidence(ctx, can.Input, rec.AgentConversation(), q.Intent, time.Now().Add(can.EvidenceTimeout()), nil)
}
