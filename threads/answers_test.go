package threads

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/relay"
)

// relay has what the agent said posted.
func (w *env) relay() {
	w.t.Helper()
	if _, err := w.m.Relay(context.Background(), sid); err != nil && !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
	w.wait()
}

// withAnswers is run with answers of a kind.
func withAnswers(t *testing.T, kind relay.Answers, f func(w *env)) {
	t.Helper()
	withEnv(t, func(w *env) {
		w.answerMode = kind
		f(w)
	})
}

func TestWhatTheAgentSaysIsPostedOnceAndInOrder(t *testing.T) {
	withAnswers(t, relay.AnswersFinal, func(w *env) {
		w.agent.addMessage("looking", false)
		w.agent.addMessage("done|and more of it", true)
		w.relay()
		w.agent.addMessage("typed in the terminal", true)
		w.relay()
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("done", "and more of it", "typed in the terminal")
	})
}

func TestAllThatTheAgentSaysIsPostedWhereThatIsWanted(t *testing.T) {
	withAnswers(t, relay.AnswersAll, func(w *env) {
		w.agent.addMessage("looking", false)
		w.agent.addMessage("done", true)
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("looking", "done")
	})
}

func TestNothingOldIsPosted(t *testing.T) {
	withAnswers(t, relay.AnswersOff, func(w *env) {
		w.agent.addMessage("while it was off", true)
		w.relay()
		w.advance(time.Minute)
		w.answerMode = relay.AnswersFinal
		w.relay()
		w.advance(time.Second)
		w.agent.addMessage("while it was on", true)
		w.relay()
		w.answerMode = relay.AnswersOff
		w.agent.addMessage("off again", true)
		w.relay()
		w.advance(time.Minute)
		w.answerMode = relay.AnswersFinal
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("while it was on")
		if b := bindingFile(t, w); b.TranscriptOffset == "" {
			t.Error("the place is not stored")
		}
	})
}

func TestAnswersWaitForSlackAndStayInOrder(t *testing.T) {
	withAnswers(t, relay.AnswersFinal, func(w *env) {
		w.slack.setErr(errors.New("no network"))
		for i := range 5 {
			w.agent.addMessage(fmt.Sprint("answer ", i), true)
			w.relay()
			w.advance(time.Minute)
		}
		w.stop()
		w.start()
		w.relay()
		w.slack.setErr(nil)
		w.advance(5 * time.Minute)
		w.wantPosts("answer 0", "answer 1", "answer 2", "answer 3", "answer 4")
		if files, err := os.ReadDir(filepath.Join(w.root, "outbox")); err != nil || len(files) != 0 {
			t.Errorf("what was posted is still stored: %v, %v", files, err)
		}
	})
}

func TestAnAnswerAfterWhichTheBotDiedIsPostedOnce(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before the post ", before), func(t *testing.T) {
			withAnswers(t, relay.AnswersFinal, func(w *env) {
				w.slack.setOnPost(func(l *managerRun, b bool, p chat.Post) error {
					if b != before || !strings.Contains(p.Text, "second") {
						return nil
					}
					w.kill(l)
					return context.Canceled
				})
				w.agent.addMessage("first|second|third", true)
				w.relay()
				w.advance(time.Minute)
				w.slack.setOnPost(nil)
				w.stop()
				w.start()
				w.agent.addMessage("fourth", true)
				w.relay()
				w.advance(time.Minute)
				w.wantPosts("first", "second", "third", "fourth")
			})
		})
	}
}

// The process dies when the letters are on disk, or some were posted, and before the place is.
func TestAnswersWhosePlaceWasNotStoredAreNotPostedAgain(t *testing.T) {
	withAnswers(t, relay.AnswersFinal, func(w *env) {
		w.relay()
		before := bindingFile(t, w)
		w.agent.addMessage("first|second", true)
		w.relay()
		w.advance(time.Minute)
		w.stop()
		b := bindingFile(t, w)
		b.TranscriptOffset = before.TranscriptOffset
		if err := binding.NewStore(filepath.Join(w.root, "threads"), nil).Save(b); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.agent.addMessage("third", true)
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("first", "second", "third")
	})
}

func TestAnswersThatCannotBeStoredAreNotLost(t *testing.T) {
	withAnswers(t, relay.AnswersFinal, func(w *env) {
		w.relay()
		outbox := filepath.Join(w.root, "outbox")
		if err := errors.Join(os.RemoveAll(outbox), os.WriteFile(outbox, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		w.slack.setErr(errors.New("no network"))
		w.agent.addMessage("first|second", true)
		if _, err := w.m.Relay(context.Background(), sid); err == nil {
			t.Error("it is said to be kept")
		}
		w.stop()
		if err := os.Remove(outbox); err != nil {
			t.Fatal(err)
		}
		w.slack.setErr(nil)
		w.start()
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("first", "second")
	})
}

func TestTheAnswersOfASessionThatWasUnboundGoNowhere(t *testing.T) {
	withAnswers(t, relay.AnswersFinal, func(w *env) {
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.agent.addMessage("to nobody", true)
		w.relay()
		w.advance(time.Minute)
		w.wantPosts("This session was deleted")
	})
}

// TestWhateverHappensEachAnswerIsPostedOnceInOrder plays random days: answers, restarts, kills at any step, and a Slack that
// is away, or takes a message and does not say so.
func TestWhateverHappensEachAnswerIsPostedOnceInOrder(t *testing.T) {
	t.Parallel()
	days := 100
	if testing.Short() {
		days = 20
	}
	for seed := range days {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			withAnswers(t, relay.AnswersFinal, func(w *env) { runAnswersModel(w, rand.New(rand.NewPCG(uint64(seed), 11))) })
		})
	}
}

func runAnswersModel(w *env, r *rand.Rand) {
	var want []string
	var killed atomic.Bool
	kill := func(l *managerRun) {
		if !killed.Swap(true) {
			w.kill(l)
		}
	}
	for range 40 {
		switch r.IntN(10) {
		case 0, 1, 2:
			text := fmt.Sprintf("answer %03d, page 1|answer %03d, page 2", len(want), len(want))
			want = append(want, strings.Split(text, "|")...)
			w.agent.addMessage(text, true)
		case 3:
			w.slack.setErr(errors.New("no network"))
		case 4:
			w.slack.setErr(nil)
		case 5:
			w.slack.setOnPost(func(_ *managerRun, before bool, _ chat.Post) error {
				if before {
					return nil
				}
				return chat.ErrOutcomeUnknown
			})
		case 6:
			early := r.IntN(2) == 0
			w.slack.setOnPost(func(l *managerRun, before bool, _ chat.Post) error {
				if before != early || killed.Load() {
					return nil
				}
				kill(l)
				return context.Canceled
			})
		case 7:
			w.agent.mu.Lock()
			w.agent.onReadTranscript = kill
			w.agent.mu.Unlock()
		case 8:
			w.advance(time.Duration(r.IntN(60)) * time.Second)
		}
		relayIgnoringErrors(w)
		if killed.Load() || r.IntN(10) == 0 {
			restart(w)
			killed.Store(false)
		}
	}
	restart(w)
	w.slack.setErr(nil)
	relayIgnoringErrors(w)
	w.advance(10 * time.Minute)
	if got := w.slack.posted(); !slices.Equal(got, want) {
		w.t.Errorf("posted %q; want %q", got, want)
	}
}

// relayIgnoringErrors relays, also where the bot is killed meanwhile.
func relayIgnoringErrors(w *env) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = w.m.Relay(ctx, sid) // it fails where the bot was killed; what counts is what is posted in the end
	w.wait()
}

func restart(w *env) {
	w.agent.mu.Lock()
	w.agent.onReadTranscript = nil
	w.agent.mu.Unlock()
	w.slack.setOnPost(nil)
	w.stop()
	w.start()
	w.wait()
}

func TestAnAgentThatSaysALotHoldsUpNoOthersThread(t *testing.T) {
	withAnswers(t, relay.AnswersAll, func(w *env) {
		const other = "id-2"
		err := w.m.Announce(context.Background(), AnnounceRequest{ID: other, Ref: "standing:o", Channel: channel, Post: chat.Post{Text: "I am o"}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			w.agent.addMessage(fmt.Sprint("chatter ", i), false)
		}
		w.relay()
		w.m.Notify(context.Background(), other, Notification{Text: "to the other"})
		w.advance(5 * time.Second)
		got := w.slack.posted()
		if !slices.Contains(got, "to the other") || len(got) > 10 {
			t.Errorf("after five seconds there are %q", got)
		}
		w.advance(2 * time.Minute)
		if got := slices.DeleteFunc(w.slack.posted(), func(s string) bool { return s == "to the other" }); len(got) != 60 || got[59] != "chatter 59" {
			t.Errorf("posted %q", got)
		}
	})
}

// unposted is how many messages of a session may wait while its transcript is read.
const unposted = 200

// While Slack is away for long, what an agent says waits in its own record, not in an outbox without a bound.
func TestTheOutboxIsBoundedAndNothingThatAnAgentSaysIsLost(t *testing.T) {
	withAnswers(t, relay.AnswersFinal, func(w *env) {
		w.slack.setErr(errors.New("no network"))
		var want []string
		for i := range unposted + 50 {
			want = append(want, fmt.Sprint("answer ", i))
			w.agent.addMessage(want[i], true)
			_, err := w.m.Relay(context.Background(), sid)
			if full := i >= unposted; (err != nil) != full {
				t.Fatalf("answer %d: %v", i, err)
			}
		}
		if n := w.m.outbox.LenOfSession(sid); n != unposted {
			t.Errorf("%d messages wait", n)
		}
		w.slack.setErr(nil)
		w.advance(time.Hour)
		w.relay()
		w.advance(time.Hour)
		w.wantPosts(want...)
	})
}
