package threads

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"the-loop/sessions"
)

const workItem = sessions.Ref("github:acme/shop#7")

// ticket keeps what is written onto it.
type ticket struct {
	wrote []Mirrored
	fail  error
	slow  time.Duration
}

func (k *ticket) WriteTicket(ctx context.Context, m Mirrored) error {
	if k.slow > 0 {
		select {
		case <-time.After(k.slow):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k.wrote = append(k.wrote, m)
	return k.fail
}

func TestAReplyToAWorkItemWithoutAWriterSaysWhyItIsMirroredNowhere(t *testing.T) {
	runWith(t, func(w *world) { w.ref = workItem }, func(w *world) {
		ts := w.say("hello")
		w.wantTyped("hello")
		got := w.named(EventMirrorSkip)
		if len(got) != 1 || got[0].Ref != workItem || got[0].Fields["ts"] != ts || got[0].Fields["reason"] != "no ticket writer is configured" {
			t.Errorf("recorded: %+v", got)
		}
		if n := len(w.named("session.announced")); n != 1 {
			t.Errorf("%d announcements are recorded", n)
		}
	})
}

func TestAReplyThatReachedAWorkItemIsWrittenOntoItsTicketOnce(t *testing.T) {
	k := &ticket{}
	runWith(t, func(w *world) { w.ref, w.tickets = workItem, k }, func(w *world) {
		ts := w.say("hello")
		w.hear(w.slack.write(bob, "nobody's"))
		w.settle()
		if len(k.wrote) != 1 || k.wrote[0].Ref != workItem || k.wrote[0].Text != "hello" || k.wrote[0].User != ann || k.wrote[0].Key != sid+"."+ts {
			t.Errorf("written: %+v", k.wrote)
		}
		if got := w.named(EventMirrored); len(got) != 1 || got[0].Fields["ts"] != ts || len(w.named(EventMirrorSkip)) != 0 {
			t.Errorf("recorded: %+v", got)
		}
		k.fail = errors.New("GitHub is away")
		w.say("and again")
		if got := w.named(EventMirrorFail); len(got) != 1 || got[0].Fields["reason"] != "GitHub is away" {
			t.Errorf("recorded: %+v", got)
		}
	})
}

func TestASlowTicketHoldsUpNoReply(t *testing.T) {
	k := &ticket{slow: time.Hour}
	runWith(t, func(w *world) { w.ref, w.tickets = workItem, k }, func(w *world) {
		w.say("one")
		w.say("two")
		w.wantTyped("one", "two")
		w.after(mirrorTimeout + time.Second)
		if n := len(w.named(EventMirrorFail)); n != 2 || len(k.wrote) != 0 {
			t.Errorf("%d failures, written %+v", n, k.wrote)
		}
	})
}

func TestAStandingSessionsRepliesAreWrittenOntoNoTicket(t *testing.T) {
	k := &ticket{}
	runWith(t, func(w *world) { w.tickets = k }, func(w *world) {
		w.say("hello")
		if len(k.wrote) != 0 || len(w.named(EventMirrorSkip)) != 1 {
			t.Errorf("written %+v, events %+v", k.wrote, w.named(EventMirrorSkip))
		}
	})
}

func TestTheThreadOfAClosedWorkItemIsToldSo(t *testing.T) {
	runWith(t, func(w *world) { w.ref = workItem }, func(w *world) {
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.say("anybody there?")
		w.after(time.Minute)
		w.wantTyped()
		w.wantPosts("This session was closed")
		if got := w.dropped(); !slices.Equal(got, []string{ReasonUnmapped}) {
			t.Errorf("dropped: %v", got)
		}
	})
}
