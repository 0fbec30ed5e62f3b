package threads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
)

func TestAReplyIsTypedOnceWithAReceipt(t *testing.T) {
	run(t, func(w *world) {
		ts := w.say("hello")
		w.wantTyped("hello")
		w.wantReceipt(ts, "white_check_mark")
		w.wantPosts()
	})
}

func TestAHarnessWithoutProofGetsTheReceiptTyped(t *testing.T) {
	run(t, func(w *world) {
		w.agent.blind = true
		w.wantReceipt(w.say("hello"), "keyboard")
	})
}

func TestTwoEqualRepliesInARowAreTwo(t *testing.T) {
	run(t, func(w *world) {
		w.say("yes")
		w.say("yes")
		w.wantTyped("yes", "yes")
	})
}

// chenhg5/cc-connect#1822, slackapi/bolt-js#2487, gugu91/pinet#226: the same message comes again, soon or late.
func TestADuplicateEventIsNotTypedAgain(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = 5 * time.Second
		ts := w.say("once")
		w.hear(ts) // while it is on its way
		w.after(10 * time.Second)
		w.hear(ts)
		w.m.Connected(true) // found again by reading
		w.after(20 * time.Minute)
		w.hear(ts)
		w.m.Connected(true)
		w.after(time.Minute)
		w.hear(ts) // behind the cursor
		w.wantTyped("once")
	})
}

// slackapi/bolt-python#668, openclaw/openclaw#12957: events come in any order.
func TestRepliesThatWaitAreTypedInTheOrderOfTheThread(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = time.Second
		first := w.slack.write(ann, "1")
		second := w.slack.write(ann, "2")
		third := w.slack.write(ann, "3")
		fourth := w.slack.write(ann, "4")
		w.hear(first)
		w.hear(fourth)
		w.hear(third)
		w.hear(second)
		w.after(10 * time.Second)
		w.wantTyped("1", "2", "3", "4")
	})
}

func TestNobodyWhoIsNotOnTheListReachesThePane(t *testing.T) {
	run(t, func(w *world) {
		w.hear(w.slack.write(bob, "let me in"))
		w.hear(w.slack.writeOf("T9", ann, "a twin of another company"))
		w.set(func() { w.users = nil })
		w.hear(w.slack.write(ann, "an empty list"))
		w.after(time.Minute)
		w.wantTyped()
		w.wantPosts()
		if got := w.dropped(); !slices.Equal(got, []string{ReasonUnauthorized, ReasonUnauthorized, ReasonUnauthorized}) {
			t.Errorf("dropped: %v", got)
		}
		w.set(func() { w.users = []string{ann, bob} })
		w.m.Connected(true) // what was dropped by a valid list stays dropped
		w.after(time.Minute)
		w.wantTyped()
	})
}

func TestAuthorizationIsAskedAgainAtTheMomentOfDelivery(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(_ *life, step string, _ sessions.SayRequest) error {
			return &sessions.HeldError{State: sessions.ViewDialog}
		})
		w.say("held")
		w.set(func() { w.users = nil })
		w.agent.handle(nil)
		w.after(time.Minute)
		w.wantTyped()
		if got := w.dropped(); !slices.Equal(got, []string{ReasonUnauthorized}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestRepliesWaitWhileTheConfigurationIsNotValid(t *testing.T) {
	run(t, func(w *world) {
		w.set(func() { w.broken = true })
		w.say("during")
		w.after(time.Minute)
		w.wantTyped()
		w.set(func() { w.broken = false })
		w.after(5 * time.Second)
		w.wantTyped("during")
	})
}

func TestAReplyThatIsEditedWhileItWaitsIsTypedAsItIsNow(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = time.Second
		w.say("first")
		ts := w.say("secnd")
		w.slack.edit(ts, "second")
		w.m.Edited(w.slack.reply(ts))
		w.after(10 * time.Second)
		w.wantTyped("first", "second")
		w.wantPosts()
	})
}

func TestAnEditThatComesAtTheLastMomentCountsOrIsSaidToBeTooLate(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(_ *life, step string, q sessions.SayRequest) error {
			if step == "look" && q.Text == "old" { // after the text was taken, before the intent
				ts := w.slack.messages[1].ts
				w.slack.edit(ts, "new")
				w.m.Edited(w.slack.reply(ts))
				<-time.After(time.Second) // the edit is taken in meanwhile
			}
			return nil
		})
		w.say("old")
		w.after(time.Minute)
		w.wantTyped("new")
		w.agent.takes = 5 * time.Second
		ts := w.say("sent")
		w.slack.edit(ts, "changed")
		w.m.Edited(w.slack.reply(ts))
		w.after(time.Minute)
		w.wantTyped("new", "sent")
		w.wantPosts("too late")
	})
}

func TestAReplyThatIsDeletedWhileItWaitsIsNotTyped(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = time.Second
		w.say("first")
		ts := w.say("second")
		w.slack.remove(ts)
		w.m.Withdrawn(channel, w.m.of(sid).place().root, ts)
		w.after(10 * time.Second)
		w.wantTyped("first")
		if got := w.dropped(); !slices.Equal(got, []string{ReasonWithdrawn}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestADeletionThatWasMissedIsFoundByReading(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(*life, string, sessions.SayRequest) error { return &sessions.HeldError{State: sessions.ViewDialog} })
		ts := w.say("held")
		w.slack.remove(ts)
		w.slack.write(ann, "later")
		w.m.Connected(true)
		w.settle()
		w.agent.handle(nil)
		w.after(time.Minute)
		w.wantTyped("later")
	})
}

// herdrdev/herdr#2788: a reply would answer the dialog. It is held, told once, and goes in when the dialog is gone.
func TestAReplyIsHeldWhileTheAgentAsks(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(*life, string, sessions.SayRequest) error { return &sessions.HeldError{State: sessions.ViewDialog} })
		first := w.say("first")
		w.say("second")
		w.after(20 * time.Second)
		w.wantReceipt(first, "hourglass")
		w.wantPosts("asks a question")
		w.agent.handle(nil)
		w.after(5 * time.Second)
		w.wantTyped("first", "second")
		w.after(time.Minute)
		w.wantReceipt(first, "white_check_mark")
	})
}

func TestAReplyThatIsHeldForTooLongIsOffered(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(*life, string, sessions.SayRequest) error { return &sessions.HeldError{State: sessions.ViewDialog} })
		w.say("first")
		w.say("second")
		w.after(20 * time.Minute)
		w.agent.handle(nil)
		w.after(time.Minute)
		w.wantTyped()
		w.wantPosts("asks a question", "<@U1> The agent seems to wait for an answer", "I did not type 2 replies")
	})
}

func TestARefusalNamesItsRemedyInTheThread(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(*life, string, sessions.SayRequest) error {
			return &sessions.Refusal{Cause: sessions.ErrNotRunning, What: "standing:s is not running", Remedy: "the-loop standing start s"}
		})
		ts := w.say("hello")
		w.after(5 * time.Second)
		w.wantPosts("the-loop standing start s")
		w.wantReceipt(ts, "warning")
		w.agent.handle(nil)
		w.m.Connected(true)
		w.after(time.Minute)
		w.wantTyped() // refused is settled
	})
}

func TestASilentTmuxHoldsTheReply(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(*life, string, sessions.SayRequest) error { return fmt.Errorf("look: %w", sessions.ErrSilent) })
		w.say("hello")
		w.after(5 * time.Second)
		w.wantPosts("tmux does not answer")
		w.agent.handle(nil)
		w.after(5 * time.Second)
		w.wantTyped("hello")
	})
}

func click(w *world, label string, who authz.Actor) (string, error) {
	w.t.Helper()
	ts, buttons := w.slack.buttons()
	for _, b := range buttons {
		if b.Label == label {
			answer, err := w.m.Decide(context.Background(), Decision{Token: b.Value, Action: b.Action, Actor: who, TS: ts})
			w.settle()
			return answer, err
		}
	}
	w.t.Fatalf("there is no button %q in %v", label, buttons)
	return "", nil
}

var member = authz.Actor{User: ann, Team: "T1"}

func inDoubt(_ *life, step string, q sessions.SayRequest) error {
	if step == "typed" {
		return fmt.Errorf("time-out: %w", sessions.ErrInDoubt)
	}
	return nil
}

func TestWhatIsInDoubtIsAskedAndSentAgainOnlyByChoice(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(inDoubt)
		ts := w.say("perhaps")
		w.after(5 * time.Second)
		w.agent.handle(nil)
		w.say("next") // the queue goes on
		w.wantTyped("perhaps", "next")
		w.wantPosts("cannot tell whether the reply of <@U1>")
		w.wantReceipt(ts, "grey_question")
		w.m.Connected(true)
		w.after(time.Minute)
		w.wantTyped("perhaps", "next")

		w.slack.edit(ts, "perhaps, edited") // Send again takes what Slack has now
		answer, err := click(w, "Send again", member)
		if err != nil || !strings.Contains(answer, "Sent by <@U1>") {
			t.Errorf("Decide: %q, %v", answer, err)
		}
		w.after(10 * time.Second)
		w.wantTyped("perhaps", "next", "perhaps, edited")
		w.wantPosts("Sent by <@U1>") // edited, without buttons
		if _, buttons := w.slack.buttons(); len(buttons) != 0 {
			t.Errorf("the decided question still has %v", buttons)
		}
	})
}

func TestAQuestionIsDecidedOnceAndOnlyByWhoIsLetIn(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(inDoubt)
		w.say("perhaps")
		w.after(5 * time.Second)
		w.agent.handle(nil)
		_, buttons := w.slack.buttons()
		for _, who := range []authz.Actor{{User: bob, Team: "T1"}, {User: ann, Team: "T9"}, {}} {
			if _, err := click(w, "Send again", who); !errors.Is(err, ErrDenied) {
				t.Errorf("Decide by %+v: %v; want ErrDenied", who, err)
			}
		}
		if _, err := click(w, "Skip", member); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.start() // a click after a restart gets a true answer too
		w.settle()
		answer, err := w.m.Decide(context.Background(), Decision{Token: buttons[0].Value, Action: ActionSend, Actor: member})
		if err != nil || !strings.Contains(answer, "Already decided. Skipped by <@U1>") {
			t.Errorf("Decide again: %q, %v", answer, err)
		}
		answer, err = w.m.Decide(context.Background(), Decision{Token: sid + ".guessed", Action: ActionSend, Actor: member})
		if err != nil || !strings.Contains(answer, "no longer open") {
			t.Errorf("Decide with a guess: %q, %v", answer, err)
		}
		w.after(time.Minute)
		w.wantTyped("perhaps")
	})
}

func TestRepliesThatWereMissedAreTypedInOrderAndOldOnesOffered(t *testing.T) {
	run(t, func(w *world) {
		w.say("before")
		w.stop()
		w.slack.write(ann, "old 1")
		w.slack.write(bob, "a stranger's")
		w.slack.write(ann, "old 2")
		w.after(time.Hour)
		w.slack.write(ann, "new 1")
		w.slack.write(ann, "new 2")
		w.start()
		w.after(10 * time.Second)
		w.wantTyped("before", "new 1", "new 2")
		w.wantPosts("I did not type 2 replies")
		if _, err := click(w, "Send now", member); err != nil {
			t.Fatal(err)
		}
		w.after(10 * time.Second)
		w.wantTyped("before", "new 1", "new 2", "old 1", "old 2")
	})
}

func TestALiveReplyWaitsForWhatItsThreadMissed(t *testing.T) {
	run(t, func(w *world) {
		w.slack.fail(errors.New("no network"))
		w.m.Connected(true)
		w.settle()
		w.slack.write(ann, "missed")
		w.say("live")
		w.wantTyped()
		w.slack.fail(nil)
		w.after(time.Minute)
		w.wantTyped("missed", "live")
	})
}

func TestAnEventThatNeverComesIsFoundByTheSweep(t *testing.T) {
	run(t, func(w *world) {
		w.say("heard")
		w.slack.write(ann, "unheard")
		w.after(11 * time.Minute)
		w.wantTyped("heard", "unheard")
	})
}

func TestRateLimitsDelayAndLoseNothing(t *testing.T) {
	run(t, func(w *world) {
		w.slack.fail(&RateLimitedError{After: 30 * time.Second})
		ts := w.say("hello")
		w.after(10 * time.Second)
		w.wantTyped("hello") // the pane does not wait for Slack
		w.slack.fail(nil)
		w.after(time.Minute)
		w.wantReceipt(ts, "white_check_mark")
	})
}

// killAt has the manager killed at a step, and starts another one on what was on disk.
func killAt(w *world, step string) {
	done := false
	w.agent.handle(func(l *life, s string, _ sessions.SayRequest) error {
		if s != step || done {
			return nil
		}
		done = true
		w.kill(l)
		return context.Canceled
	})
}

func TestAKillNeverTypesTwiceAndNeverLosesSilently(t *testing.T) {
	for _, c := range []struct {
		step  string
		blind bool
		typed []string
		posts []string
	}{
		{"look", false, []string{"x"}, nil},                                          // nothing was written: it is found by reading
		{"intended", false, nil, []string{"cannot tell"}},                            // no evidence
		{"typed", false, []string{"x"}, nil},                                         // the agent's record has it
		{"intended", true, nil, []string{"cannot tell"}},                             // no evidence to be had
		{"typed", true, []string{"x"}, []string{"cannot tell whether the reply of"}}, // no evidence to be had
	} {
		t.Run(fmt.Sprintf("%s, blind %v", c.step, c.blind), func(t *testing.T) {
			run(t, func(w *world) {
				w.agent.blind = c.blind
				killAt(w, c.step)
				w.say("x")
				w.stop()
				w.start()
				w.after(time.Minute)
				w.wantTyped(c.typed...)
				w.wantPosts(c.posts...)
				w.say("y")
				w.wantTyped(append(c.typed, "y")...)
			})
		})
	}
}

func TestAKillAroundAPostMakesNoSecondMessage(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before ", before), func(t *testing.T) {
			run(t, func(w *world) {
				w.agent.handle(func(*life, string, sessions.SayRequest) error {
					return &sessions.Refusal{Cause: sessions.ErrNotRunning, What: "not running"}
				})
				killed := false
				w.slack.hook(func(l *life, b bool, _ Post) error {
					if b != before || killed {
						return nil
					}
					killed = true
					w.kill(l)
					return context.Canceled
				})
				w.say("hello")
				w.stop()
				w.start()
				w.after(time.Minute)
				w.wantPosts("not running")
			})
		})
	}
}

func TestAPostThatSlackDidNotConfirmIsNotPostedAgain(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before ", before), func(t *testing.T) {
			run(t, func(w *world) {
				w.agent.handle(inDoubt)
				failed := false
				w.slack.hook(func(_ *life, b bool, _ Post) error {
					if b != before || failed {
						return nil
					}
					failed = true
					return fmt.Errorf("connection reset: %w", ErrUnknown)
				})
				w.say("hello")
				w.after(time.Minute)
				w.wantPosts("cannot tell")
				if _, err := click(w, "Skip", member); err != nil {
					t.Fatal(err)
				}
				w.after(time.Minute)
				w.wantPosts("Skipped by")
			})
		})
	}
}

func TestAKillWhileAnnouncingMakesNoSecondAnnouncement(t *testing.T) {
	for _, before := range []bool{true, false} {
		for _, reply := range []bool{true, false} {
			if before && reply {
				continue // there is no thread to reply in
			}
			t.Run(fmt.Sprintf("before the post %v, a reply comes first %v", before, reply), func(t *testing.T) {
				run(t, func(w *world) {
					w.stop()
					w.slack.messages, w.root = nil, t.TempDir()
					w.start()
					w.slack.hook(func(l *life, b bool, _ Post) error {
						if b == before {
							w.kill(l)
							return context.Canceled
						}
						return nil
					})
					_ = w.m.Announce(context.Background(), Announcing{ID: sid, Ref: "standing:s", Channel: channel, Post: Post{Text: "I am s"}})
					w.slack.hook(nil)
					w.stop()
					w.start()
					if reply {
						w.say("already there")
					}
					w.announce()
					if n := w.slack.roots(); n != 1 {
						t.Errorf("%d announcements", n)
					}
					w.say("hello")
					w.after(time.Minute)
					if reply {
						w.wantTyped("already there", "hello")
					} else {
						w.wantTyped("hello")
					}
				})
			})
		}
	}
}

func TestAnAnnouncementThatSomebodyDeletedComesBackWithTheNextStartOnly(t *testing.T) {
	run(t, func(w *world) {
		root := w.m.of(sid).place().root
		w.slack.remove(root)
		w.m.RootGone(channel, root)
		w.settle()
		started := time.Now().Add(-time.Minute)
		again := func() {
			err := w.m.Announce(context.Background(), Announcing{ID: sid, Ref: "standing:s", Channel: channel, Started: started, Post: Post{Text: "I am s"}})
			if err != nil {
				t.Fatal(err)
			}
			w.settle()
		}
		again()
		if n := w.slack.roots(); n != 0 {
			t.Errorf("%d announcements before the next start", n)
		}
		started = time.Now().Add(time.Minute)
		again()
		w.say("hello")
		w.wantTyped("hello")
	})
}

func TestAnAnnouncementIsEditedWhenItNoLongerTellsTheTruth(t *testing.T) {
	run(t, func(w *world) {
		err := w.m.Announce(context.Background(), Announcing{ID: sid, Ref: "standing:s", Channel: channel, Post: Post{Text: "I am stopped"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.slack.messages[0].text; got != "I am stopped" || w.slack.roots() != 1 {
			t.Errorf("the announcement says %q", got)
		}
	})
}

func TestAThreadOfADeletedSessionIsUnbound(t *testing.T) {
	run(t, func(w *world) {
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.say("anybody there?")
		w.after(time.Minute)
		w.wantTyped()
		w.wantPosts("This session was deleted")
		if got := w.dropped(); !slices.Equal(got, []string{ReasonUnmapped}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestACommandGoesPastTheQueueAndIsNeverRepeated(t *testing.T) {
	run(t, func(w *world) {
		w.agent.handle(func(*life, string, sessions.SayRequest) error { return &sessions.HeldError{State: sessions.ViewMenu} })
		w.say("held")
		ts := w.say("@bot interrupt")
		w.hear(ts)
		w.m.Connected(true)
		w.after(10 * time.Second)
		w.wantPosts("the agent shows a menu", "did interrupt")
		w.stop()
		w.slack.write(ann, "@bot keys Escape")
		w.after(5 * time.Minute)
		w.start()
		w.after(10 * time.Second)
		w.wantPosts("the agent shows a menu", "did interrupt", "did not run it")
	})
}

func TestARawCommandWaitsItsTurnAndIsNotRepeatedInDoubt(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = time.Second
		w.say("first")
		w.say("@bot raw /compact")
		w.after(10 * time.Second)
		w.wantTyped("first", "/compact")
		w.agent.handle(inDoubt)
		w.say("@bot raw /clear")
		w.after(10 * time.Second)
		w.wantPosts("It is not repeated")
		if w.agent.raws != 2 {
			t.Errorf("%d raw commands; want 2", w.agent.raws)
		}
	})
}

func TestReceivedIsShownOnlyWhenAReplyTakesLong(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = 10 * time.Second
		ts := w.say("slow")
		w.after(time.Second)
		w.wantReceipt(ts)
		w.after(2 * time.Second)
		w.wantReceipt(ts, "eyes")
		w.after(time.Minute)
		w.wantReceipt(ts, "white_check_mark")
	})
}

func TestTheCursorStaysBehindWhatIsUnsettledAndBehindSlacksClock(t *testing.T) {
	runWith(t, func(w *world) { w.maxAge = 2 * time.Hour }, func(w *world) {
		w.say("first")
		w.agent.handle(inDoubt)
		w.say("doubtful")
		w.agent.handle(nil)
		third := w.say("third")
		w.set(func() { w.broken = true })
		w.say("waits")
		w.after(10 * time.Minute)
		if b := bindingFile(t, w); b.Cursor != b.Root {
			t.Errorf("the cursor is at %s after ten minutes", b.Cursor)
		}
		w.after(30 * time.Minute)
		if b := bindingFile(t, w); b.Cursor != third || len(b.inState(StateDoubt)) != 1 {
			t.Errorf("the cursor is at %s with %v; want %s and the one in doubt", b.Cursor, b.Replies, third)
		}
		w.set(func() { w.broken = false })
		w.after(time.Minute)
		if _, err := click(w, "Skip", member); err != nil {
			t.Fatal(err)
		}
		w.after(10 * time.Second)
		w.m.Connected(true)
		w.after(10 * time.Second)
		if b := bindingFile(t, w); len(b.inState(StateSettled, StateDoubt)) != 0 {
			t.Errorf("kept: %v; want nothing that is settled", b.Replies)
		}
	})
}

func TestABindingThatCannotBeReadIsLeftAloneAndTheOthersGoOn(t *testing.T) {
	run(t, func(w *world) {
		w.stop()
		bad := filepath.Join(w.root, "threads", "id-2.json")
		if err := os.WriteFile(bad, []byte("{half"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.start()
		if got := w.m.Broken(); len(got) != 1 || got[0].Path != bad {
			t.Errorf("Broken: %v", got)
		}
		err := w.m.Announce(context.Background(), Announcing{ID: "id-2", Ref: "standing:other", Channel: channel, Post: Post{Text: "x"}})
		var unreadable *sessions.UnreadableError
		if !errors.As(err, &unreadable) {
			t.Errorf("Announce: %v; want the file named", err)
		}
		w.say("hello")
		w.wantTyped("hello")
		if data, _ := os.ReadFile(bad); string(data) != "{half" {
			t.Errorf("the file was changed: %q", data)
		}
	})
}

func TestStateHoldsNoTextOfAnybody(t *testing.T) {
	run(t, func(w *world) {
		w.say("canary-settled")
		w.agent.handle(inDoubt)
		w.say("canary-doubtful")
		w.agent.handle(func(*life, string, sessions.SayRequest) error { return &sessions.HeldError{State: sessions.ViewDialog} })
		w.say("canary-held")
		w.after(5 * time.Second)
		err := filepath.WalkDir(w.root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if data, _ := os.ReadFile(path); strings.Contains(string(data), "canary") {
				t.Errorf("%s holds a reply's text", path)
			}
			if info, _ := d.Info(); info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestStoppingDoesNotWaitForAnAgentThatTakesLong(t *testing.T) {
	run(t, func(w *world) {
		w.agent.takes = time.Hour
		w.say("slow")
		begin := time.Now()
		w.stop()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("stopping took %v", took)
		}
		w.start()
		w.after(time.Minute)
		w.wantTyped("slow")
		w.wantPosts() // the agent's record has it
	})
}

func TestWhatAKilledWriteLeftIsClearedAway(t *testing.T) {
	run(t, func(w *world) {
		w.stop()
		for _, dir := range []string{"threads", "outbox"} {
			if err := os.MkdirAll(filepath.Join(w.root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(w.root, dir, ".x.json4711"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		left, err := filepath.Glob(filepath.Join(w.root, "*", ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		w.say("hello")
		w.wantTyped("hello")
	})
}

// named are the events of a name.
func (w *world) named(name string) (all []sessions.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Name == name {
			all = append(all, e)
		}
	}
	return all
}

func TestR4_2_AReplyOfAMemberIsDeliveredAndRecordedAgainstTheSession(t *testing.T) {
	run(t, func(w *world) {
		ts := w.say("hello")
		w.m.Connected(true) // read again: recorded once all the same
		w.after(time.Minute)
		w.wantTyped("hello")
		got := w.named(EventReceived)
		if len(got) != 1 || got[0].Ref != "standing:s" || got[0].ID != sid || got[0].Fields["ts"] != ts || got[0].Fields["user"] != ann {
			t.Errorf("recorded: %+v", got)
		}
	})
}

func TestR4_3_AReplyToAStandingSessionIsMirroredNowhereAndTheReasonIsRecorded(t *testing.T) {
	run(t, func(w *world) {
		ts := w.say("hello")
		got := w.named(EventMirrorSkip)
		if len(got) != 1 || got[0].Ref != "standing:s" || got[0].Fields["ts"] != ts || got[0].Fields["reason"] != "a standing session owns no work item" {
			t.Errorf("recorded: %+v", got)
		}
		w.hear(w.slack.write(bob, "nobody's"))
		if n := len(w.named(EventMirrorSkip)); n != 1 {
			t.Errorf("%d were skipped; a dropped reply is not among them", n)
		}
	})
}
