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
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

func TestAReplyIsTypedOnceWithAReceipt(t *testing.T) {
	withEnv(t, func(w *env) {
		ts := w.reply("hello")
		w.wantTyped("hello")
		w.wantReceipt(ts, "white_check_mark")
		w.wantPosts()
	})
}

func TestAHarnessWithoutProofGetsTheReceiptTyped(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.noProof = true
		w.wantReceipt(w.reply("hello"), "keyboard")
	})
}

func TestTwoEqualRepliesInARowAreTwo(t *testing.T) {
	withEnv(t, func(w *env) {
		w.reply("yes")
		w.reply("yes")
		w.wantTyped("yes", "yes")
	})
}

// chenhg5/cc-connect#1822, slackapi/bolt-js#2487, gugu91/pinet#226: the same message comes again, soon or late.
func TestADuplicateEventIsNotTypedAgain(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = 5 * time.Second
		ts := w.reply("once")
		w.deliverEvent(ts) // while it is on its way
		w.advance(10 * time.Second)
		w.deliverEvent(ts)
		w.m.Connected(true) // found again by reading
		w.advance(20 * time.Minute)
		w.deliverEvent(ts)
		w.m.Connected(true)
		w.advance(time.Minute)
		w.deliverEvent(ts) // behind the cursor
		w.wantTyped("once")
	})
}

// slackapi/bolt-python#668, openclaw/openclaw#12957: events come in any order.
func TestRepliesThatWaitAreTypedInTheOrderOfTheThread(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = time.Second
		first := w.slack.write(ann, "1")
		second := w.slack.write(ann, "2")
		third := w.slack.write(ann, "3")
		fourth := w.slack.write(ann, "4")
		w.deliverEvent(first)
		w.deliverEvent(fourth)
		w.deliverEvent(third)
		w.deliverEvent(second)
		w.advance(10 * time.Second)
		w.wantTyped("1", "2", "3", "4")
	})
}

func TestNobodyWhoIsNotOnTheListReachesThePane(t *testing.T) {
	withEnv(t, func(w *env) {
		w.deliverEvent(w.slack.write(bob, "let me in"))
		w.deliverEvent(w.slack.writeOf("T9", ann, "a twin of another company"))
		w.locked(func() { w.users = nil })
		w.deliverEvent(w.slack.write(ann, "an empty list"))
		w.advance(time.Minute)
		w.wantTyped()
		w.wantPosts()
		if got := w.droppedReasons(); !slices.Equal(got, []string{ReasonUnauthorized, ReasonUnauthorized, ReasonUnauthorized}) {
			t.Errorf("dropped: %v", got)
		}
		w.locked(func() { w.users = []string{ann, bob} })
		w.m.Connected(true) // what was dropped by a valid list stays dropped
		w.advance(time.Minute)
		w.wantTyped()
	})
}

func TestAuthorizationIsAskedAgainAtTheMomentOfDelivery(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(_ *managerRun, step string, _ sessions.SubmitRequest) error {
			return &sessions.HeldError{State: sessions.ViewDialog}
		})
		w.reply("held")
		w.locked(func() { w.users = nil })
		w.agent.setOnStep(nil)
		w.advance(time.Minute)
		w.wantTyped()
		if got := w.droppedReasons(); !slices.Equal(got, []string{ReasonUnauthorized}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestRepliesWaitWhileTheConfigurationIsNotValid(t *testing.T) {
	withEnv(t, func(w *env) {
		w.locked(func() { w.configInvalid = true })
		w.reply("during")
		w.advance(time.Minute)
		w.wantTyped()
		w.locked(func() { w.configInvalid = false })
		w.advance(5 * time.Second)
		w.wantTyped("during")
	})
}

func TestAReplyThatIsEditedWhileItWaitsIsTypedAsItIsNow(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = time.Second
		w.reply("first")
		ts := w.reply("secnd")
		w.slack.edit(ts, "second")
		w.m.ReplyEdited(w.slack.reply(ts))
		w.advance(10 * time.Second)
		w.wantTyped("first", "second")
		w.wantPosts()
	})
}

func TestAnEditThatComesAtTheLastMomentCountsOrIsSaidToBeTooLate(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(_ *managerRun, step string, q sessions.SubmitRequest) error {
			if step == "look" && q.Text == "old" { // after the text was taken, before the intent
				ts := w.slack.messages[1].ts
				w.slack.edit(ts, "new")
				w.m.ReplyEdited(w.slack.reply(ts))
				<-time.After(time.Second) // the edit is taken in meanwhile
			}
			return nil
		})
		w.reply("old")
		w.advance(time.Minute)
		w.wantTyped("new")
		w.agent.acceptDelay = 5 * time.Second
		ts := w.reply("sent")
		w.slack.edit(ts, "changed")
		w.m.ReplyEdited(w.slack.reply(ts))
		w.advance(time.Minute)
		w.wantTyped("new", "sent")
		w.wantPosts("too late")
	})
}

func TestAReplyThatIsDeletedWhileItWaitsIsNotTyped(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = time.Second
		w.reply("first")
		ts := w.reply("second")
		w.slack.remove(ts)
		w.m.ReplyDeleted(channel, w.m.index.of(sid).ThreadID().Root, ts)
		w.advance(10 * time.Second)
		w.wantTyped("first")
		if got := w.droppedReasons(); !slices.Equal(got, []string{ReasonWithdrawn}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestADeletionThatWasMissedIsFoundByReading(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
			return &sessions.HeldError{State: sessions.ViewDialog}
		})
		ts := w.reply("held")
		w.slack.remove(ts)
		w.slack.write(ann, "later")
		w.m.Connected(true)
		w.wait()
		w.agent.setOnStep(nil)
		w.advance(time.Minute)
		w.wantTyped("later")
	})
}

// herdrdev/herdr#2788: a reply would answer the dialog. It is held, told once, and goes in when the dialog is gone.
func TestAReplyIsHeldWhileTheAgentAsks(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
			return &sessions.HeldError{State: sessions.ViewDialog}
		})
		first := w.reply("first")
		w.reply("second")
		w.advance(20 * time.Second)
		w.wantReceipt(first, "hourglass")
		w.wantPosts("asks a question")
		w.agent.setOnStep(nil)
		w.advance(5 * time.Second)
		w.wantTyped("first", "second")
		w.advance(time.Minute)
		w.wantReceipt(first, "white_check_mark")
	})
}

func TestAReplyThatIsHeldForTooLongIsOffered(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
			return &sessions.HeldError{State: sessions.ViewDialog}
		})
		w.reply("first")
		w.reply("second")
		w.advance(20 * time.Minute)
		w.agent.setOnStep(nil)
		w.advance(time.Minute)
		w.wantTyped()
		w.wantPosts("asks a question", "<@U1> The agent seems to wait for an answer", "I did not type 2 replies")
	})
}

func TestARefusalNamesItsRemedyInTheThread(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
			return &sessions.Refusal{Cause: sessions.ErrNotRunning, What: "standing:s is not running", Remedy: "the-loop standing start s"}
		})
		ts := w.reply("hello")
		w.advance(5 * time.Second)
		w.wantPosts("the-loop standing start s")
		w.wantReceipt(ts, "warning")
		w.agent.setOnStep(nil)
		w.m.Connected(true)
		w.advance(time.Minute)
		w.wantTyped() // refused is settled
	})
}

func TestASilentTmuxHoldsTheReply(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
			return fmt.Errorf("look: %w", sessions.ErrTerminalTimeout)
		})
		w.reply("hello")
		w.advance(5 * time.Second)
		w.wantPosts("tmux does not answer")
		w.agent.setOnStep(nil)
		w.advance(5 * time.Second)
		w.wantTyped("hello")
	})
}

func click(w *env, label string, who authz.Actor) (string, error) {
	w.t.Helper()
	ts, buttons := w.slack.buttons()
	for _, b := range buttons {
		if b.Label == label {
			answer, err := w.m.Resend(context.Background(), ResendChoice{Token: b.Value, Action: b.Action, Actor: who, TS: ts})
			w.wait()
			return answer, err
		}
	}
	w.t.Fatalf("there is no button %q in %v", label, buttons)
	return "", nil
}

var annActor = authz.Actor{User: ann, Team: "T1"}

func failInDoubt(_ *managerRun, step string, q sessions.SubmitRequest) error {
	if step == "typed" {
		return fmt.Errorf("time-out: %w", sessions.ErrInDoubt)
	}
	return nil
}

func TestWhatIsInDoubtIsAskedAndSentAgainOnlyByChoice(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(failInDoubt)
		ts := w.reply("perhaps")
		w.advance(5 * time.Second)
		w.agent.setOnStep(nil)
		w.reply("next") // the queue goes on
		w.wantTyped("perhaps", "next")
		w.wantPosts("cannot tell whether the reply of <@U1>")
		w.wantReceipt(ts, "grey_question")
		w.m.Connected(true)
		w.advance(time.Minute)
		w.wantTyped("perhaps", "next")

		w.slack.edit(ts, "perhaps, edited") // Send again takes what Slack has now
		answer, err := click(w, "Send again", annActor)
		if err != nil || !strings.Contains(answer, "Sent by <@U1>") {
			t.Errorf("Decide: %q, %v", answer, err)
		}
		w.advance(10 * time.Second)
		w.wantTyped("perhaps", "next", "perhaps, edited")
		w.wantPosts("Sent by <@U1>") // edited, without buttons
		if _, buttons := w.slack.buttons(); len(buttons) != 0 {
			t.Errorf("the decided question still has %v", buttons)
		}
	})
}

func TestAQuestionIsDecidedOnceAndOnlyByWhoIsLetIn(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(failInDoubt)
		w.reply("perhaps")
		w.advance(5 * time.Second)
		w.agent.setOnStep(nil)
		_, buttons := w.slack.buttons()
		for _, who := range []authz.Actor{{User: bob, Team: "T1"}, {User: ann, Team: "T9"}, {}} {
			if _, err := click(w, "Send again", who); !errors.Is(err, ErrDenied) {
				t.Errorf("Decide by %+v: %v; want ErrDenied", who, err)
			}
		}
		if _, err := click(w, "Skip", annActor); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.start() // a click after a restart gets a true answer too
		w.wait()
		answer, err := w.m.Resend(context.Background(), ResendChoice{Token: buttons[0].Value, Action: chat.ActionSend, Actor: annActor})
		if err != nil || !strings.Contains(answer, "Already decided. Skipped by <@U1>") {
			t.Errorf("Decide again: %q, %v", answer, err)
		}
		answer, err = w.m.Resend(context.Background(), ResendChoice{Token: sid + ".guessed", Action: chat.ActionSend, Actor: annActor})
		if err != nil || !strings.Contains(answer, "no longer open") {
			t.Errorf("Decide with a guess: %q, %v", answer, err)
		}
		w.advance(time.Minute)
		w.wantTyped("perhaps")
	})
}

func TestRepliesThatWereMissedAreTypedInOrderAndOldOnesOffered(t *testing.T) {
	withEnv(t, func(w *env) {
		w.reply("before")
		w.stop()
		w.slack.write(ann, "old 1")
		w.slack.write(bob, "a stranger's")
		w.slack.write(ann, "old 2")
		w.advance(time.Hour)
		w.slack.write(ann, "new 1")
		w.slack.write(ann, "new 2")
		w.start()
		w.advance(10 * time.Second)
		w.wantTyped("before", "new 1", "new 2")
		w.wantPosts("I did not type 2 replies")
		if _, err := click(w, "Send now", annActor); err != nil {
			t.Fatal(err)
		}
		w.advance(10 * time.Second)
		w.wantTyped("before", "new 1", "new 2", "old 1", "old 2")
	})
}

func TestALiveReplyWaitsForWhatItsThreadMissed(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.setErr(errors.New("no network"))
		w.m.Connected(true)
		w.wait()
		w.slack.write(ann, "missed")
		w.reply("live")
		w.wantTyped()
		w.slack.setErr(nil)
		w.advance(time.Minute)
		w.wantTyped("missed", "live")
	})
}

func TestAnEventThatNeverComesIsFoundByTheSweep(t *testing.T) {
	withEnv(t, func(w *env) {
		w.reply("heard")
		w.slack.write(ann, "unheard")
		w.advance(11 * time.Minute)
		w.wantTyped("heard", "unheard")
	})
}

func TestRateLimitsDelayAndLoseNothing(t *testing.T) {
	withEnv(t, func(w *env) {
		w.slack.setErr(&chat.RateLimitedError{After: 30 * time.Second})
		ts := w.reply("hello")
		w.advance(10 * time.Second)
		w.wantTyped("hello") // the pane does not wait for Slack
		w.slack.setErr(nil)
		w.advance(time.Minute)
		w.wantReceipt(ts, "white_check_mark")
	})
}

// killAt has the manager killed at a step, and starts another one on what was on disk.
func killAt(w *env, step string) {
	done := false
	w.agent.setOnStep(func(l *managerRun, s string, _ sessions.SubmitRequest) error {
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
			withEnv(t, func(w *env) {
				w.agent.noProof = c.blind
				killAt(w, c.step)
				w.reply("x")
				w.stop()
				w.start()
				w.advance(time.Minute)
				w.wantTyped(c.typed...)
				w.wantPosts(c.posts...)
				w.reply("y")
				w.wantTyped(append(c.typed, "y")...)
			})
		})
	}
}

func TestAKillAroundAPostMakesNoSecondMessage(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before ", before), func(t *testing.T) {
			withEnv(t, func(w *env) {
				w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
					return &sessions.Refusal{Cause: sessions.ErrNotRunning, What: "not running"}
				})
				killed := false
				w.slack.setOnPost(func(l *managerRun, b bool, _ chat.Post) error {
					if b != before || killed {
						return nil
					}
					killed = true
					w.kill(l)
					return context.Canceled
				})
				w.reply("hello")
				w.stop()
				w.start()
				w.advance(time.Minute)
				w.wantPosts("not running")
			})
		})
	}
}

func TestAPostThatSlackDidNotConfirmIsNotPostedAgain(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before ", before), func(t *testing.T) {
			withEnv(t, func(w *env) {
				w.agent.setOnStep(failInDoubt)
				failed := false
				w.slack.setOnPost(func(_ *managerRun, b bool, _ chat.Post) error {
					if b != before || failed {
						return nil
					}
					failed = true
					return fmt.Errorf("connection reset: %w", chat.ErrOutcomeUnknown)
				})
				w.reply("hello")
				w.advance(time.Minute)
				w.wantPosts("cannot tell")
				if _, err := click(w, "Skip", annActor); err != nil {
					t.Fatal(err)
				}
				w.advance(time.Minute)
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
				withEnv(t, func(w *env) {
					w.stop()
					w.slack.messages, w.root = nil, t.TempDir()
					w.start()
					w.slack.setOnPost(func(l *managerRun, b bool, _ chat.Post) error {
						if b == before {
							w.kill(l)
							return context.Canceled
						}
						return nil
					})
					_ = w.m.Announce(context.Background(), AnnounceRequest{ID: sid, Ref: "standing:s", Channel: channel, Post: chat.Post{Text: "I am s"}})
					w.slack.setOnPost(nil)
					w.stop()
					w.start()
					if reply {
						w.reply("already there")
					}
					w.announce()
					if n := w.slack.roots(); n != 1 {
						t.Errorf("%d announcements", n)
					}
					w.reply("hello")
					w.advance(time.Minute)
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
	withEnv(t, func(w *env) {
		root := w.m.index.of(sid).ThreadID().Root
		w.slack.remove(root)
		w.m.ThreadDeleted(channel, root)
		w.wait()
		started := time.Now().Add(-time.Minute)
		again := func() {
			err := w.m.Announce(context.Background(), AnnounceRequest{ID: sid, Ref: "standing:s", Channel: channel, Started: started, Post: chat.Post{Text: "I am s"}})
			if err != nil {
				t.Fatal(err)
			}
			w.wait()
		}
		again()
		if n := w.slack.roots(); n != 0 {
			t.Errorf("%d announcements before the next start", n)
		}
		started = time.Now().Add(time.Minute)
		again()
		w.reply("hello")
		w.wantTyped("hello")
	})
}

func TestAnAnnouncementIsEditedWhenItNoLongerTellsTheTruth(t *testing.T) {
	withEnv(t, func(w *env) {
		err := w.m.Announce(context.Background(), AnnounceRequest{ID: sid, Ref: "standing:s", Channel: channel, Post: chat.Post{Text: "I am stopped"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.slack.messages[0].text; got != "I am stopped" || w.slack.roots() != 1 {
			t.Errorf("the announcement says %q", got)
		}
	})
}

func TestAThreadOfADeletedSessionIsUnbound(t *testing.T) {
	withEnv(t, func(w *env) {
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.reply("anybody there?")
		w.advance(time.Minute)
		w.wantTyped()
		w.wantPosts("This session was deleted")
		if got := w.droppedReasons(); !slices.Equal(got, []string{ReasonUnmapped}) {
			t.Errorf("dropped: %v", got)
		}
	})
}

func TestACommandGoesPastTheQueueAndIsNeverRepeated(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
			return &sessions.HeldError{State: sessions.ViewMenu}
		})
		w.reply("held")
		ts := w.reply("@bot interrupt")
		w.deliverEvent(ts)
		w.m.Connected(true)
		w.advance(10 * time.Second)
		w.wantPosts("the agent shows a menu", "did interrupt")
		w.stop()
		w.slack.write(ann, "@bot keys Escape")
		w.advance(5 * time.Minute)
		w.start()
		w.advance(10 * time.Second)
		w.wantPosts("the agent shows a menu", "did interrupt", "did not run it")
	})
}

func TestARawCommandWaitsItsTurnAndIsNotRepeatedInDoubt(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = time.Second
		w.reply("first")
		w.reply("@bot raw /compact")
		w.advance(10 * time.Second)
		w.wantTyped("first", "/compact")
		w.agent.setOnStep(failInDoubt)
		w.reply("@bot raw /clear")
		w.advance(10 * time.Second)
		w.wantPosts("It is not repeated")
		if w.agent.raws != 2 {
			t.Errorf("%d raw commands; want 2", w.agent.raws)
		}
	})
}

func TestReceivedIsShownOnlyWhenAReplyTakesLong(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = 10 * time.Second
		ts := w.reply("slow")
		w.advance(time.Second)
		w.wantReceipt(ts)
		w.advance(2 * time.Second)
		w.wantReceipt(ts, "eyes")
		w.advance(time.Minute)
		w.wantReceipt(ts, "white_check_mark")
	})
}

func TestTheCursorStaysBehindWhatIsUnsettledAndBehindSlacksClock(t *testing.T) {
	withEnvSetup(t, func(w *env) { w.maxAge = 2 * time.Hour }, func(w *env) {
		w.reply("first")
		w.agent.setOnStep(failInDoubt)
		w.reply("doubtful")
		w.agent.setOnStep(nil)
		third := w.reply("third")
		w.locked(func() { w.configInvalid = true })
		w.reply("waits")
		w.advance(10 * time.Minute)
		if b := bindingFile(t, w); b.Cursor != b.Root {
			t.Errorf("the cursor is at %s after ten minutes", b.Cursor)
		}
		w.advance(30 * time.Minute)
		if b := bindingFile(t, w); b.Cursor != third || len(repliesIn(b, binding.StateDoubt)) != 1 {
			t.Errorf("the cursor is at %s with %v; want %s and the one in doubt", b.Cursor, b.Replies, third)
		}
		w.locked(func() { w.configInvalid = false })
		w.advance(time.Minute)
		if _, err := click(w, "Skip", annActor); err != nil {
			t.Fatal(err)
		}
		w.advance(10 * time.Second)
		w.m.Connected(true)
		w.advance(10 * time.Second)
		if b := bindingFile(t, w); len(repliesIn(b, binding.StateSettled, binding.StateDoubt)) != 0 {
			t.Errorf("kept: %v; want nothing that is settled", b.Replies)
		}
	})
}

func TestABindingThatCannotBeReadIsLeftAloneAndTheOthersGoOn(t *testing.T) {
	withEnv(t, func(w *env) {
		w.stop()
		bad := filepath.Join(w.root, "threads", "id-2.json")
		if err := os.WriteFile(bad, []byte("{half"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.start()
		if got := w.m.UnreadableBindings(); len(got) != 1 || got[0].Path != bad {
			t.Errorf("Broken: %v", got)
		}
		err := w.m.Announce(context.Background(), AnnounceRequest{ID: "id-2", Ref: "standing:other", Channel: channel, Post: chat.Post{Text: "x"}})
		var unreadable *sessions.UnreadableError
		if !errors.As(err, &unreadable) {
			t.Errorf("Announce: %v; want the file named", err)
		}
		w.reply("hello")
		w.wantTyped("hello")
		if data, _ := os.ReadFile(bad); string(data) != "{half" {
			t.Errorf("the file was changed: %q", data)
		}
	})
}

func TestStateHoldsNoTextOfAnybody(t *testing.T) {
	withEnv(t, func(w *env) {
		w.reply("canary-settled")
		w.agent.setOnStep(failInDoubt)
		w.reply("canary-doubtful")
		w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error {
			return &sessions.HeldError{State: sessions.ViewDialog}
		})
		w.reply("canary-held")
		w.advance(5 * time.Second)
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
	withEnv(t, func(w *env) {
		w.agent.acceptDelay = time.Hour
		w.reply("slow")
		begin := time.Now()
		w.stop()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("stopping took %v", took)
		}
		w.start()
		w.advance(time.Minute)
		w.wantTyped("slow")
		w.wantPosts() // the agent's record has it
	})
}

func TestWhatAKilledWriteLeftIsClearedAway(t *testing.T) {
	withEnv(t, func(w *env) {
		w.stop()
		for _, dir := range []string{"threads", "outbox"} {
			if err := os.MkdirAll(filepath.Join(w.root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
			path, old := filepath.Join(w.root, dir, ".x.json4711"), time.Now().Add(-2*time.Hour)
			if err := errors.Join(os.WriteFile(path, []byte("{"), 0o600), os.Chtimes(path, old, old)); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		left, err := filepath.Glob(filepath.Join(w.root, "*", ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		w.reply("hello")
		w.wantTyped("hello")
	})
}

// eventsNamed are the events of a name.
func (w *env) eventsNamed(name string) (all []sessions.Event) {
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
	withEnv(t, func(w *env) {
		ts := w.reply("hello")
		w.m.Connected(true) // read again: recorded once all the same
		w.advance(time.Minute)
		w.wantTyped("hello")
		got := w.eventsNamed(EventReceived)
		if len(got) != 1 || got[0].Ref != "standing:s" || got[0].ID != sid || got[0].Fields["ts"] != ts || got[0].Fields["user"] != ann {
			t.Errorf("recorded: %+v", got)
		}
	})
}

func TestR4_3_AReplyToAStandingSessionIsMirroredNowhereAndTheReasonIsRecorded(t *testing.T) {
	withEnv(t, func(w *env) {
		ts := w.reply("hello")
		got := w.eventsNamed(EventMirrorSkip)
		if len(got) != 1 || got[0].Ref != "standing:s" || got[0].Fields["ts"] != ts || got[0].Fields["reason"] != "a standing session owns no work item" {
			t.Errorf("recorded: %+v", got)
		}
		w.deliverEvent(w.slack.write(bob, "nobody's"))
		if n := len(w.eventsNamed(EventMirrorSkip)); n != 1 {
			t.Errorf("%d were skipped; a dropped reply is not among them", n)
		}
	})
}
