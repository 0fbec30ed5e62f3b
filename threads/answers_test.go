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
)

// relay has what the agent said posted.
func (w *world) relay() {
	w.t.Helper()
	if _, err := w.m.Relay(context.Background(), sid); err != nil && !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
	w.settle()
}

// answering is run with answers of a kind.
func answering(t *testing.T, kind Answers, f func(w *world)) {
	t.Helper()
	run(t, func(w *world) {
		w.posts = kind
		f(w)
	})
}

func TestWhatTheAgentSaysIsPostedOnceAndInOrder(t *testing.T) {
	answering(t, AnswersFinal, func(w *world) {
		w.agent.speaks("looking", false)
		w.agent.speaks("done|and more of it", true)
		w.relay()
		w.agent.speaks("typed in the terminal", true)
		w.relay()
		w.relay()
		w.after(time.Minute)
		w.wantPosts("done", "and more of it", "typed in the terminal")
	})
}

func TestAllThatTheAgentSaysIsPostedWhereThatIsWanted(t *testing.T) {
	answering(t, AnswersAll, func(w *world) {
		w.agent.speaks("looking", false)
		w.agent.speaks("done", true)
		w.relay()
		w.after(time.Minute)
		w.wantPosts("looking", "done")
	})
}

func TestNothingOldIsPosted(t *testing.T) {
	answering(t, AnswersOff, func(w *world) {
		w.agent.speaks("while it was off", true)
		w.relay()
		w.after(time.Minute)
		w.posts = AnswersFinal
		w.relay()
		w.after(time.Second)
		w.agent.speaks("while it was on", true)
		w.relay()
		w.posts = AnswersOff
		w.agent.speaks("off again", true)
		w.relay()
		w.after(time.Minute)
		w.posts = AnswersFinal
		w.relay()
		w.after(time.Minute)
		w.wantPosts("while it was on")
		if b := bindingFile(t, w); b.Heard == "" {
			t.Error("the place is not stored")
		}
	})
}

// A run that is announced as it starts has its first answer posted; one that went on unannounced has not.
func TestTheFirstAnswerOfAFreshRunIsPosted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for age, want := range map[time.Duration]time.Time{
		10 * time.Second: now.Add(-10*time.Second - startSlack), time.Hour: now, -time.Second: now,
	} {
		if got := hearFrom(now.Add(-age), now); !got.Equal(want) {
			t.Errorf("a run of %s is heard from %s before now on", age, now.Sub(got))
		}
	}
}

func TestAnswersWaitForSlackAndStayInOrder(t *testing.T) {
	answering(t, AnswersFinal, func(w *world) {
		w.slack.fail(errors.New("no network"))
		for i := range 5 {
			w.agent.speaks(fmt.Sprint("answer ", i), true)
			w.relay()
			w.after(time.Minute)
		}
		w.stop()
		w.start()
		w.relay()
		w.slack.fail(nil)
		w.after(5 * time.Minute)
		w.wantPosts("answer 0", "answer 1", "answer 2", "answer 3", "answer 4")
		if files, err := os.ReadDir(filepath.Join(w.root, "outbox")); err != nil || len(files) != 0 {
			t.Errorf("what was posted is still stored: %v, %v", files, err)
		}
	})
}

func TestAnAnswerAfterWhichTheBotDiedIsPostedOnce(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before the post ", before), func(t *testing.T) {
			answering(t, AnswersFinal, func(w *world) {
				w.slack.hook(func(l *life, b bool, p Post) error {
					if b != before || !strings.Contains(p.Text, "second") {
						return nil
					}
					w.kill(l)
					return context.Canceled
				})
				w.agent.speaks("first|second|third", true)
				w.relay()
				w.after(time.Minute)
				w.slack.hook(nil)
				w.stop()
				w.start()
				w.agent.speaks("fourth", true)
				w.relay()
				w.after(time.Minute)
				w.wantPosts("first", "second", "third", "fourth")
			})
		})
	}
}

// The process dies when the letters are on disk, or some were posted, and before the place is.
func TestAnswersWhosePlaceWasNotStoredAreNotPostedAgain(t *testing.T) {
	answering(t, AnswersFinal, func(w *world) {
		w.relay()
		before := bindingFile(t, w)
		w.agent.speaks("first|second", true)
		w.relay()
		w.after(time.Minute)
		w.stop()
		b := bindingFile(t, w)
		b.Heard = before.Heard
		if err := (bindings{dir: filepath.Join(w.root, "threads")}).save(b); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.agent.speaks("third", true)
		w.relay()
		w.after(time.Minute)
		w.wantPosts("first", "second", "third")
	})
}

func TestAnswersThatCannotBeStoredAreNotLost(t *testing.T) {
	answering(t, AnswersFinal, func(w *world) {
		w.relay()
		outbox := filepath.Join(w.root, "outbox")
		if err := errors.Join(os.RemoveAll(outbox), os.WriteFile(outbox, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		w.slack.fail(errors.New("no network"))
		w.agent.speaks("first|second", true)
		if _, err := w.m.Relay(context.Background(), sid); err == nil {
			t.Error("it is said to be kept")
		}
		w.stop()
		if err := os.Remove(outbox); err != nil {
			t.Fatal(err)
		}
		w.slack.fail(nil)
		w.start()
		w.relay()
		w.after(time.Minute)
		w.wantPosts("first", "second")
	})
}

func TestTheAnswersOfASessionThatWasUnboundGoNowhere(t *testing.T) {
	answering(t, AnswersFinal, func(w *world) {
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.agent.speaks("to nobody", true)
		w.relay()
		w.after(time.Minute)
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
			answering(t, AnswersFinal, func(w *world) { answerDay(w, rand.New(rand.NewPCG(uint64(seed), 11))) })
		})
	}
}

func answerDay(w *world, r *rand.Rand) {
	var want []string
	var killed atomic.Bool
	kill := func(l *life) {
		if !killed.Swap(true) {
			w.kill(l)
		}
	}
	for range 40 {
		switch r.IntN(10) {
		case 0, 1, 2:
			text := fmt.Sprintf("answer %03d, page 1|answer %03d, page 2", len(want), len(want))
			want = append(want, strings.Split(text, "|")...)
			w.agent.speaks(text, true)
		case 3:
			w.slack.fail(errors.New("no network"))
		case 4:
			w.slack.fail(nil)
		case 5:
			w.slack.hook(func(_ *life, before bool, _ Post) error {
				if before {
					return nil
				}
				return ErrUnknown
			})
		case 6:
			early := r.IntN(2) == 0
			w.slack.hook(func(l *life, before bool, _ Post) error {
				if before != early || killed.Load() {
					return nil
				}
				kill(l)
				return context.Canceled
			})
		case 7:
			w.agent.mu.Lock()
			w.agent.onTold = kill
			w.agent.mu.Unlock()
		case 8:
			w.after(time.Duration(r.IntN(60)) * time.Second)
		}
		relayAs(w)
		if killed.Load() || r.IntN(10) == 0 {
			restart(w)
			killed.Store(false)
		}
	}
	restart(w)
	w.slack.fail(nil)
	relayAs(w)
	w.after(10 * time.Minute)
	if got := w.slack.posted(); !slices.Equal(got, want) {
		w.t.Errorf("posted %q; want %q", got, want)
	}
}

// relayAs relays, also where the bot is killed meanwhile.
func relayAs(w *world) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = w.m.Relay(ctx, sid) // it fails where the bot was killed; what counts is what is posted in the end
	w.settle()
}

func restart(w *world) {
	w.agent.mu.Lock()
	w.agent.onTold = nil
	w.agent.mu.Unlock()
	w.slack.hook(nil)
	w.stop()
	w.start()
	w.settle()
}

func TestAnAgentThatSaysALotHoldsUpNoOthersThread(t *testing.T) {
	answering(t, AnswersAll, func(w *world) {
		const other = "id-2"
		err := w.m.Announce(context.Background(), Announcing{ID: other, Ref: "standing:o", Channel: channel, Post: Post{Text: "I am o"}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			w.agent.speaks(fmt.Sprint("chatter ", i), false)
		}
		w.relay()
		w.m.Tell(context.Background(), other, Telling{Text: "to the other"})
		w.after(5 * time.Second)
		got := w.slack.posted()
		if !slices.Contains(got, "to the other") || len(got) > 10 {
			t.Errorf("after five seconds there are %q", got)
		}
		w.after(2 * time.Minute)
		if got := slices.DeleteFunc(w.slack.posted(), func(s string) bool { return s == "to the other" }); len(got) != 60 || got[59] != "chatter 59" {
			t.Errorf("posted %q", got)
		}
	})
}

// While Slack is away for long, what an agent says waits in its own record, not in an outbox without a bound.
func TestTheOutboxIsBoundedAndNothingThatAnAgentSaysIsLost(t *testing.T) {
	answering(t, AnswersFinal, func(w *world) {
		w.slack.fail(errors.New("no network"))
		var want []string
		for i := range maxUnposted + 50 {
			want = append(want, fmt.Sprint("answer ", i))
			w.agent.speaks(want[i], true)
			_, err := w.m.Relay(context.Background(), sid)
			if full := i >= maxUnposted; (err != nil) != full {
				t.Fatalf("answer %d: %v", i, err)
			}
		}
		if n := w.m.outbox.of(sid); n != maxUnposted {
			t.Errorf("%d messages wait", n)
		}
		w.slack.fail(nil)
		w.after(time.Hour)
		w.relay()
		w.after(time.Hour)
		w.wantPosts(want...)
	})
}
