package core

import (
	"context"
	"fmt"
	"time"

	"the-loop/sessions"
)

// openingEvent is the event of a work item that an agent is started with.
type openingEvent struct {
	text         string                                             // as it goes in
	recordIntent func(ctx context.Context, i sessions.Intent) error // called before an agent is started with it
	intent       sessions.Intent                                    // of the last start
	inPrompt     bool                                               // the agent was started with it; else it is still to be typed
}

// maxOpening is the longest event in bytes that an agent is started with; Linux allows 128 KiB in an argument. A longer event is
// typed.
const maxOpening = 96 << 10

// withOpening makes the event the launch's first message, where the program takes one.
func (r *launcher) withOpening(l sessions.Launch) sessions.Launch {
	if r.opening == nil {
		return l
	}
	t := r.harness.Capabilities()
	r.opening.inPrompt = len(r.opening.text) <= maxOpening && (l.Resume && !t.NoPromptOnResume || !l.Resume && !t.NoPromptOnStart)
	if r.opening.inPrompt {
		l.Prompt = r.opening.text
	}
	return l
}

// readOffset reads the transcript's offset from which evidence of the event counts. When it cannot be read there will be no
// evidence.
func (r *launcher) readOffset(ctx context.Context) {
	if r.opening == nil {
		return
	}
	r.opening.intent = sessions.Intent{Sum: sessions.Fingerprint(r.harness.Capabilities().Normalized(r.opening.text)), Conversation: r.rec.Conversation}
	w := r.harness.Capabilities().Input
	if w == nil || !r.opening.inPrompt {
		return
	}
	conv := r.rec.AgentConversation()
	conv.Started = time.Time{} // no agent runs
	offset, err := w.Offset(ctx, conv)
	if err != nil {
		r.starter.log.Warn("the transcript could not be read, so there will be no evidence of an event", "ref", r.rec.Ref, "err", err)
	}
	r.opening.intent.Offset = offset
}

// recordIntent records what the agent is about to be started with.
func (r *launcher) recordIntent(ctx context.Context) error {
	if r.opening == nil || !r.opening.inPrompt {
		return nil
	}
	if err := r.opening.recordIntent(ctx, r.opening.intent); err != nil {
		return fmt.Errorf("record what the agent is about to get: %w", err)
	}
	return nil
}

// hasAcceptedOpening reports whether the agent that was started with the event, and has ended, accepted it.
func (r *launcher) hasAcceptedOpening(ctx context.Context) bool {
	w := r.harness.Capabilities().Input
	if w == nil || r.opening == nil || !r.opening.inPrompt || r.opening.intent.Offset == "" {
		return false
	}
	conv := r.rec.AgentConversation()
	conv.ID = r.opening.intent.Conversation
	accepted, err := w.Accepted(ctx, conv, r.opening.intent.Offset, r.opening.intent.Sum)
	if err != nil {
		r.starter.log.Warn("the transcript could not be read for evidence of an event", "ref", r.rec.Ref, "err", err)
	}
	return accepted
}
