package threads

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/sessions"
)

// second announces another session in a channel of its own, and puts settled replies into its thread.
func (w *world) second(id, in string, replies int) (ts []string) {
	w.t.Helper()
	err := w.m.Announce(context.Background(), Announcing{ID: id, Ref: sessions.Ref("standing:s" + id[len(id)-1:]), Channel: in, Started: time.Now(), Post: Post{Text: "I am " + id}})
	if err != nil {
		w.t.Fatal(err)
	}
	t := w.m.of(id)
	for range replies {
		w.slack.mu.Lock()
		ts = append(ts, w.slack.add(&message{root: t.place().root, user: ann, team: "T1", text: "done"}))
		w.slack.mu.Unlock()
	}
	t.call(context.Background(), func(context.Context) {
		for _, ts := range ts {
			t.settle(ts, OutcomeAccepted, MarkAccepted)
		}
	})
	return ts
}

// reacts has reactions fail.
func (s *slack) reacts(f func(ts, emoji string, add bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onReact = f
}

// What one reply, one channel or one thread is refused holds up the receipts of no other.
func TestAReceiptThatSlackRefusesHoldsUpNoOther(t *testing.T) {
	for name, refusal := range map[string]error{
		"for good": ErrRefused, "no room": fmt.Errorf("%w: %w", ErrRefused, ErrCrowded), "in trouble": errors.New("internal_error"),
		"an archived channel": ErrUnavailable, "no word": ErrUnknown,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				good := w.m.of(sid).place().root
				w.slack.reacts(func(ts, _ string, _ bool) error {
					if w.slack.find(ts).root != good {
						return refusal
					}
					return nil
				})
				for i := range 8 { // so many that one of them is tried before the good one, in whatever order
					w.second(fmt.Sprint("id-", i+2), fmt.Sprint("C", i+2), 1)
				}
				ts := w.say("hello")
				w.after(time.Second)
				w.wantReceipt(ts, "white_check_mark")
			})
		})
	}
}

// What Slack refuses for good is not tried for ever.
func TestAReceiptThatSlackRefusesForGoodIsGivenUp(t *testing.T) {
	run(t, func(w *world) {
		var tries atomic.Int32
		w.slack.reacts(func(string, string, bool) error { tries.Add(1); return ErrRefused })
		ts := w.say("hello")
		w.after(time.Hour)
		if n := tries.Load(); n != 1 {
			t.Errorf("it was tried %d times", n)
		}
		w.wantReceipt(ts)
		w.slack.reacts(nil)
		again := w.say("and now?")
		w.after(time.Second)
		w.wantReceipt(again, "white_check_mark")
	})
}

// Strangers filled a reply up with emoji after the bot had shown that it was received: the old receipt makes room.
func TestTheOldReceiptMakesRoomOnACrowdedReply(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = 3 * time.Second
		ts := w.say("slow")
		w.after(2500 * time.Millisecond)
		w.wantReceipt(ts, "eyes")
		w.slack.reacts(func(at, _ string, add bool) error {
			if add && len(w.slack.find(at).reactions) > 0 {
				return fmt.Errorf("%w: %w", ErrRefused, ErrCrowded)
			}
			return nil
		})
		w.after(10 * time.Second)
		w.wantReceipt(ts, "white_check_mark")
	})
}

// An archived channel is asked now and then, not all the time, and at once when it is said to be open again.
func TestReceiptsOfAClosedChannelWait(t *testing.T) {
	run(t, func(w *world) {
		var tries atomic.Int32
		w.slack.reacts(func(string, string, bool) error { tries.Add(1); return ErrUnavailable })
		ts := w.say("hello")
		w.after(time.Hour)
		if n := tries.Load(); n < 3 || n > 30 {
			t.Errorf("tried %d times in an hour", n)
		}
		w.slack.reacts(nil)
		w.m.ChannelOpened(channel)
		w.after(time.Second)
		w.wantReceipt(ts, "white_check_mark")
	})
}

func TestAReceiptWaitsForAsLongAsSlackAsks(t *testing.T) {
	run(t, func(w *world) {
		var tries atomic.Int32
		w.slack.reacts(func(string, string, bool) error {
			if tries.Add(1) == 1 {
				return &RateLimitedError{After: 20 * time.Second}
			}
			return nil
		})
		ts := w.say("hello")
		w.after(19 * time.Second)
		w.wantReceipt(ts)
		w.after(2 * time.Second)
		w.wantReceipt(ts, "white_check_mark")
	})
}
