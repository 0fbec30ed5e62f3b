package threads

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// announceSecond announces another session in a channel of its own, and puts settled replies into its thread.
func (w *env) announceSecond(id, in string, replies int) (ts []string) {
	w.t.Helper()
	err := w.m.Announce(context.Background(), AnnounceRequest{ID: id, Ref: sessions.Ref("standing:s" + id[len(id)-1:]), Channel: in, Started: time.Now(), Post: chat.Post{Text: "I am " + id}})
	if err != nil {
		w.t.Fatal(err)
	}
	t := w.m.index.of(id)
	for range replies {
		w.slack.mu.Lock()
		ts = append(ts, w.slack.add(&message{root: t.ThreadID().Root, user: ann, team: "T1", text: "done"}))
		w.slack.mu.Unlock()
	}
	t.Call(context.Background(), func(context.Context) {
		for _, ts := range ts {
			t.entries.settle(ts, binding.OutcomeAccepted, binding.MarkAccepted)
		}
	})
	return ts
}

// setOnReact has reactions fail.
func (s *fakeSlack) setOnReact(f func(ts, emoji string, add bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onReact = f
}

// What one reply, one channel or one thread is refused holds up the receipts of no other.
func TestAReceiptThatSlackRefusesHoldsUpNoOther(t *testing.T) {
	for name, refusal := range map[string]error{
		"for good": chat.ErrRefused, "no room": fmt.Errorf("%w: %w", chat.ErrRefused, chat.ErrTooManyReactions), "in trouble": errors.New("internal_error"),
		"an archived channel": chat.ErrUnavailable, "no word": chat.ErrOutcomeUnknown,
	} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, func(w *env) {
				good := w.m.index.of(sid).ThreadID().Root
				w.slack.setOnReact(func(ts, _ string, _ bool) error {
					if w.slack.find(ts).root != good {
						return refusal
					}
					return nil
				})
				for i := range 8 { // so many that one of them is tried before the good one, in whatever order
					w.announceSecond(fmt.Sprint("id-", i+2), fmt.Sprint("C", i+2), 1)
				}
				ts := w.reply("hello")
				w.advance(time.Second)
				w.wantReceipt(ts, "white_check_mark")
			})
		})
	}
}

// What Slack refuses for good is not tried for ever.
func TestAReceiptThatSlackRefusesForGoodIsGivenUp(t *testing.T) {
	withEnv(t, func(w *env) {
		var tries atomic.Int32
		w.slack.setOnReact(func(string, string, bool) error { tries.Add(1); return chat.ErrRefused })
		ts := w.reply("hello")
		w.advance(time.Hour)
		if n := tries.Load(); n != 1 {
			t.Errorf("it was tried %d times", n)
		}
		w.wantReceipt(ts)
		w.slack.setOnReact(nil)
		again := w.reply("and now?")
		w.advance(time.Second)
		w.wantReceipt(again, "white_check_mark")
	})
}

// Strangers filled a reply up with emoji after the bot had shown that it was received: the old receipt makes room.
func TestTheOldReceiptMakesRoomOnACrowdedReply(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = 3 * time.Second
		ts := w.reply("slow")
		w.advance(2500 * time.Millisecond)
		w.wantReceipt(ts, "eyes")
		w.slack.setOnReact(func(at, _ string, add bool) error {
			if add && len(w.slack.find(at).reactions) > 0 {
				return fmt.Errorf("%w: %w", chat.ErrRefused, chat.ErrTooManyReactions)
			}
			return nil
		})
		w.advance(10 * time.Second)
		w.wantReceipt(ts, "white_check_mark")
	})
}

// An archived channel is asked now and then, not all the time, and at once when it is said to be open again.
func TestReceiptsOfAClosedChannelWait(t *testing.T) {
	withEnv(t, func(w *env) {
		var tries atomic.Int32
		w.slack.setOnReact(func(string, string, bool) error { tries.Add(1); return chat.ErrUnavailable })
		ts := w.reply("hello")
		w.advance(time.Hour)
		if n := tries.Load(); n < 3 || n > 30 {
			t.Errorf("tried %d times in an hour", n)
		}
		w.slack.setOnReact(nil)
		w.m.ChannelOpened(channel)
		w.advance(time.Second)
		w.wantReceipt(ts, "white_check_mark")
	})
}

func TestAReceiptWaitsForAsLongAsSlackAsks(t *testing.T) {
	withEnv(t, func(w *env) {
		var tries atomic.Int32
		w.slack.setOnReact(func(string, string, bool) error {
			if tries.Add(1) == 1 {
				return &chat.RateLimitedError{After: 20 * time.Second}
			}
			return nil
		})
		ts := w.reply("hello")
		w.advance(19 * time.Second)
		w.wantReceipt(ts)
		w.advance(2 * time.Second)
		w.wantReceipt(ts, "white_check_mark")
	})
}
