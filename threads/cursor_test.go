package threads

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// maxBinding is how large a binding may get, in bytes, whatever people do.
const maxBinding = 20 << 10

func bindingSize(t *testing.T, w *env) int {
	t.Helper()
	info, err := os.Stat(binding.NewStore(filepath.Join(w.root, "threads"), nil).Path(sid))
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// A question that nobody answers keeps nothing: the cursor moves on, the binding stays small, and a reconnect reads little.
func TestAnIgnoredDoubtHoldsNothingUp(t *testing.T) {
	for _, c := range []struct {
		replies int
		every   time.Duration
	}{{600, 50 * time.Millisecond}, {600, time.Minute}, {5000, 200 * time.Millisecond}} {
		t.Run(fmt.Sprintf("%d replies, one each %s", c.replies, c.every), func(t *testing.T) {
			if testing.Short() {
				c.replies = min(c.replies, 600)
			}
			withEnv(t, func(w *env) {
				w.slack.perPage = 200
				w.agent.setOnStep(failInDoubt)
				doubt := w.reply("perhaps")
				w.advance(5 * time.Second)
				w.agent.setOnStep(nil)
				largest := 0
				for i := range c.replies {
					w.reply(fmt.Sprint("later ", i))
					if w.advance(c.every); i%16 == 0 {
						largest = max(largest, bindingSize(t, w))
					}
				}
				w.advance(time.Minute)
				before := w.slack.repliesRead.Load()
				w.m.Connected(true)
				w.advance(time.Minute)
				again := w.slack.repliesRead.Load() - before
				t.Logf("the binding: at most %d bytes; read again at a reconnect: %d of %d replies; read in all: %d", largest, again, c.replies, before)
				if largest > maxBinding {
					t.Errorf("the binding had %d bytes; want at most %d", largest, maxBinding)
				}
				if again > 600 {
					t.Errorf("%d replies were read again", again)
				}
				w.agent.mu.Lock()
				typed := len(w.agent.typed)
				w.agent.mu.Unlock()
				if typed != c.replies+1 {
					t.Errorf("typed %d; want %d", typed, c.replies+1)
				}
				if _, err := click(w, "Send again", annActor); err != nil { // it is still there
					t.Fatal(err)
				}
				w.advance(time.Minute)
				w.wantReceipt(doubt, "white_check_mark")
			})
		})
	}
}

// Thousands of replies that are all in doubt, all offered, all denied or all withdrawn keep a binding small too, and of each
// the thread says what became of it.
func TestABindingIsBoundedWhateverPeopleDo(t *testing.T) {
	const many = 1500
	for name, play := range map[string]func(w *env){
		"in doubt": func(w *env) {
			w.agent.setOnStep(failInDoubt)
			for range many / 3 {
				w.reply("perhaps")
			}
		},
		"offered": func(w *env) {
			w.agent.setOnStep(failHeld)
			for range many {
				w.reply("waits")
			}
			w.advance(20 * time.Minute)
			w.agent.setOnStep(nil)
		},
		"denied": func(w *env) {
			for range many {
				w.deliverEvent(w.slack.write(bob, "let me in"))
			}
		},
		"withdrawn": func(w *env) {
			for range many {
				ts := w.slack.write(ann, "never mind")
				root := w.slack.get(ts).root
				w.slack.remove(ts)
				w.m.ReplyDeleted(channel, root, ts)
				w.wait()
			}
		},
		"refused": func(w *env) {
			w.agent.setOnStep(func(*managerRun, string, sessions.SubmitRequest) error { return &sessions.Refusal{What: "not running"} })
			for range many / 3 {
				w.reply("hello")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, func(w *env) {
				w.slack.perPage = 200
				play(w)
				w.advance(30 * time.Minute)
				if n := bindingSize(t, w); n > maxBinding {
					b := bindingFile(t, w)
					t.Errorf("the binding has %d bytes: %d replies, %d traces, %d questions", n, len(b.Replies), len(b.Traces), len(b.ResendPrompts))
				}
			})
		})
	}
}

func TestTheOldestQuestionsLapseAndSaySo(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(failInDoubt)
		for range maxOpenReplies + 1 {
			w.reply("perhaps")
		}
		w.advance(10 * time.Minute)
		posts := w.slack.posted()
		if !strings.Contains(posts[0], "nothing was sent") || strings.Contains(posts[1], "nothing was sent") {
			t.Errorf("posted %q and %q", posts[0], posts[1])
		}
	})
}

func TestAnOfferThatIsTooLargeSaysWhatItLeftOut(t *testing.T) {
	withEnv(t, func(w *env) {
		w.agent.setOnStep(failHeld)
		for range maxOffered + 3 {
			w.reply("waits")
		}
		w.advance(20 * time.Minute)
		w.agent.setOnStep(nil)
		w.advance(time.Minute)
		posts := w.slack.posted()
		if last := posts[len(posts)-1]; !strings.Contains(last, "I did not type 50 replies") || !strings.Contains(last, "3 more from before") {
			t.Errorf("posted %q", last)
		}
		if _, err := click(w, "Send now", annActor); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Minute)
		if n := len(w.agent.typed); n != maxOffered {
			t.Errorf("typed %d; want %d", n, maxOffered)
		}
	})
}

// What somebody chose to have typed is typed after a restart too, though the cursor went past it.
func TestAChoiceOutlivesARestartBehindTheCursor(t *testing.T) {
	for _, waits := range []bool{false, true} { // the agent took no text when it was chosen
		t.Run(fmt.Sprint("held ", waits), func(t *testing.T) {
			withEnvSetup(t, func(w *env) { w.maxAge = 24 * time.Hour }, func(w *env) {
				w.agent.setOnStep(failInDoubt)
				w.reply("perhaps")
				w.advance(5 * time.Second)
				w.agent.setOnStep(nil)
				w.reply("later")
				w.advance(40 * time.Minute)
				w.m.Connected(true)
				w.advance(time.Minute)
				w.agent.setOnStep(func(l *managerRun, step string, q sessions.SubmitRequest) error {
					if waits {
						return failHeld(l, step, q)
					}
					return &sessions.LockedError{Key: "x"}
				})
				if _, err := click(w, "Send again", annActor); err != nil {
					t.Fatal(err)
				}
				w.advance(time.Minute)
				w.stop()
				w.agent.setOnStep(nil)
				w.start()
				w.advance(time.Minute)
				w.wantTyped("perhaps", "later", "perhaps")
			})
		})
	}
}

// A deletion that nobody heard of, of a reply that was held by an earlier run, does not hold the cursor forever.
func TestAHeldReplyThatWasDeletedWhileTheBotWasAwayHoldsNothing(t *testing.T) {
	withEnvSetup(t, func(w *env) { w.maxAge = 24 * time.Hour }, func(w *env) {
		w.agent.setOnStep(failHeld)
		ts := w.reply("held")
		w.advance(time.Minute)
		w.stop()
		w.slack.remove(ts)
		last := w.slack.write(ann, "later")
		w.agent.setOnStep(nil)
		w.start()
		w.advance(20 * time.Minute)
		w.m.Connected(true)
		w.advance(time.Minute)
		w.wantTyped("later")
		if b := bindingFile(t, w); b.Cursor != last {
			t.Errorf("the cursor is at %s; want %s", b.Cursor, last)
		}
	})
}

// testdata/binding-v1.json was written by the program that wrote version 1, after the replies that are listed here.
func TestABindingOfVersion1IsRead(t *testing.T) {
	withEnv(t, func(w *env) {
		w.stop()
		w.advance(21 * time.Minute)
		const root = "946684800.000000"
		w.slack.messages = []*message{{ts: root, text: "I am s", post: &chat.Post{}}}
		for _, m := range [][2]string{{"946684800.000001", "one"}, {"946684800.000002", "in doubt"}, {"946684805.000000", "skipped"},
			{"946684805.000001", "in doubt, decided"}, {"946684810.000000", "let me in"}, {"946684810.000001", "refused"},
			{"946684810.000003", "offered 1"}, {"946684810.000005", "offered 2"}, {"946686010.000000", "after"},
			{"946686010.000001", "approved, held"}, {"946686025.000000", "held behind"}} {
			w.slack.messages = append(w.slack.messages, &message{ts: m[0], root: root, user: ann, team: "T1", text: m[1]})
		}
		data, err := os.ReadFile("testdata/binding-v1.json")
		if err != nil {
			t.Fatal(err)
		}
		path := binding.NewStore(filepath.Join(w.root, "threads"), nil).Path(sid)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.advance(time.Minute)
		w.wantTyped("approved, held", "held behind")
		for _, token := range []string{"id-1.5B3ZZV2YAF6PHAI56UAF2AQNMA", "id-1.XYH6THI65MSN44QLANUN63BQUX"} {
			if _, err := w.m.Resend(context.Background(), ResendChoice{Token: token, Action: chat.ActionSend, Actor: annActor}); err != nil {
				t.Fatal(err)
			}
			w.advance(time.Minute)
		}
		w.wantTyped("approved, held", "held behind", "in doubt", "offered 1", "offered 2")
		w.advance(20 * time.Minute)
		w.m.Connected(true)
		w.advance(time.Minute)
		b := bindingFile(t, w)
		if b.Version != 2 || b.Cursor != "946686025.000000" || len(b.Replies)+len(b.Traces) != 0 {
			t.Errorf("the binding has version %d, cursor %s, replies %v, done %v", b.Version, b.Cursor, b.Replies, b.Traces)
		}
		if !slices.Contains(w.slack.find("946684800.000002").reactions, "white_check_mark") {
			t.Error("the reply in doubt shows no receipt")
		}
	})
}
