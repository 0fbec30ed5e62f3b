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

// fakeTicket keeps what is written onto it.
type fakeTicket struct {
	wrote []MirroredReply
	fail  error
	slow  time.Duration
}

func (k *fakeTicket) WriteTicket(ctx context.Context, m MirroredReply) error {
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
	withEnvSetup(t, func(w *env) { w.ref = workItem }, func(w *env) {
		ts := w.reply("hello")
		w.wantTyped("hello")
		got := w.eventsNamed(EventMirrorSkip)
		if len(got) != 1 || got[0].Ref != workItem || got[0].Fields["ts"] != ts || got[0].Fields["reason"] != "no ticket writer is configured" {
			t.Errorf("recorded: %+v", got)
		}
		if n := len(w.eventsNamed("session.announced")); n != 1 {
			t.Errorf("%d announcements are recorded", n)
		}
	})
}

func TestAReplyThatReachedAWorkItemIsWrittenOntoItsTicketOnce(t *testing.T) {
	k := &fakeTicket{}
	withEnvSetup(t, func(w *env) { w.ref, w.tickets = workItem, k }, func(w *env) {
		ts := w.reply("hello")
		w.deliverEvent(w.slack.write(bob, "nobody's"))
		w.wait()
		if len(k.wrote) != 1 || k.wrote[0].Ref != workItem || k.wrote[0].Text != "hello" || k.wrote[0].User != ann || k.wrote[0].Key != sid+"."+ts {
			t.Errorf("written: %+v", k.wrote)
		}
		if got := w.eventsNamed(EventMirrored); len(got) != 1 || got[0].Fields["ts"] != ts || len(w.eventsNamed(EventMirrorSkip)) != 0 {
			t.Errorf("recorded: %+v", got)
		}
		k.fail = errors.New("GitHub is away")
		w.reply("and again")
		if got := w.eventsNamed(EventMirrorFail); len(got) != 1 || got[0].Fields["reason"] != "GitHub is away" {
			t.Errorf("recorded: %+v", got)
		}
	})
}

func TestASlowTicketHoldsUpNoReply(t *testing.T) {
	k := &fakeTicket{slow: time.Hour}
	withEnvSetup(t, func(w *env) { w.ref, w.tickets = workItem, k }, func(w *env) {
		w.reply("one")
		w.reply("two")
		w.wantTyped("one", "two")
		w.advance(mirrorTimeout + time.Second)
		if n := len(w.eventsNamed(EventMirrorFail)); n != 2 || len(k.wrote) != 0 {
			t.Errorf("%d failures, written %+v", n, k.wrote)
		}
	})
}

func TestAStandingSessionsRepliesAreWrittenOntoNoTicket(t *testing.T) {
	k := &fakeTicket{}
	withEnvSetup(t, func(w *env) { w.tickets = k }, func(w *env) {
		w.reply("hello")
		if len(k.wrote) != 0 || len(w.eventsNamed(EventMirrorSkip)) != 1 {
			t.Errorf("written %+v, events %+v", k.wrote, w.eventsNamed(EventMirrorSkip))
		}
	})
}

func TestTheThreadOfAClosedWorkItemIsToldSo(t *testing.T) {
	withEnvSetup(t, func(w *env) { w.ref = workItem }, func(w *env) {
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.reply("anybody there?")
		w.advance(time.Minute)
		w.wantTyped()
		w.wantPosts("This session was closed")
		if got := w.droppedReasons(); !slices.Equal(got, []string{ReasonUnmapped}) {
			t.Errorf("dropped: %v", got)
		}
	})
}
