package sessions

import (
	"context"
	"fmt"
	"time"
)

// event is what happened to a work item, on its way to an agent that is started with it.
type event struct {
	text   string                                    // as it goes in
	intend func(ctx context.Context, i Intent) error // called before an agent is started with it
	intent Intent                                    // of the last start
	given  bool                                      // the agent was started with it; else it is still to be typed
}

// maxOpening is the longest event in bytes that an agent is started with; Linux takes 128 KiB in an argument. A longer one is
// typed in.
const maxOpening = 96 << 10

// opening gives the launch the event as its first message, where the program takes one.
func (r *run) opening(l Launch) Launch {
	if r.event == nil {
		return l
	}
	t := r.harness.Traits()
	r.event.given = len(r.event.text) <= maxOpening && (l.Resume && !t.BareResume || !l.Resume && !t.BareStart)
	if r.event.given {
		l.Prompt = r.event.text
	}
	return l
}

// place takes the place in the agent's record from which evidence of the event counts. Where that cannot be told there will
// be none.
func (r *run) place(ctx context.Context) {
	if r.event == nil {
		return
	}
	r.event.intent = Intent{Sum: Fingerprint(normal(r.harness, r.event.text)), Conversation: r.rec.Conversation}
	w, ok := r.harness.(Witness)
	if !ok || !r.event.given {
		return
	}
	talk := r.rec.Talk()
	talk.Started = time.Time{} // no agent runs
	place, err := w.Place(ctx, talk)
	if err != nil {
		r.c.o.Log.Warn("the place in the agent's record cannot be told", "ref", r.rec.Ref, "err", err)
	}
	r.event.intent.Place = place
}

// intend has written down what the agent is about to be started with.
func (r *run) intend(ctx context.Context) error {
	if r.event == nil || !r.event.given {
		return nil
	}
	if err := r.event.intend(ctx, r.event.intent); err != nil {
		return fmt.Errorf("write down what the agent is about to be told: %w", err)
	}
	return nil
}

// took reports whether the agent that was started with the event, and has ended, took it.
func (r *run) took(ctx context.Context) bool {
	w, ok := r.harness.(Witness)
	if !ok || r.event == nil || !r.event.given || r.event.intent.Place == "" {
		return false
	}
	talk := r.rec.Talk()
	talk.ID = r.event.intent.Conversation
	taken, err := w.Taken(ctx, talk, r.event.intent.Place, r.event.intent.Sum)
	if err != nil {
		r.c.o.Log.Warn("it cannot be told whether an agent took what it was told", "ref", r.rec.Ref, "err", err)
	}
	return taken
}
