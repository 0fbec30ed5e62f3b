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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/threads/chat"
	"the-loop/threads/relay"
)

// What a status says.
const (
	statusWorking = "is working…"
	statusWaiting = "is waiting for an answer…"
)

// fakeScreen is what is seen of an agent at work: the status that Slack shows, and the agent's screen.
type fakeScreen struct {
	mu          sync.Mutex
	status      string
	statusSetAt time.Time
	calls       []string // each change that was asked for
	unsupported bool     // this workspace has no statuses
	statusErr   error
	view        sessions.ViewState
	viewErr     error
	reads       int
}

// clearStatus takes the status away, as Slack does.
func (s *fakeScreen) clearStatus() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = ""
}

// shownStatus is what the thread shows now.
func (s *fakeScreen) shownStatus() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.statusSetAt) > 2*time.Minute {
		return ""
	}
	return s.status
}

func (s *fakeScreen) statusCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func (s *fakeScreen) readCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *fakeScreen) update(f func(*fakeScreen)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (a fakeAPI) SetStatus(ctx context.Context, _, _, text string) error {
	if err := errors.Join(a.blockIfEnded(ctx), a.w.slack.failure()); err != nil {
		return err
	}
	s := a.w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, text)
	switch {
	case s.unsupported:
		return fmt.Errorf("feature_disabled: %w", chat.ErrNoStatus)
	case s.statusErr != nil:
		return s.statusErr
	}
	s.status, s.statusSetAt = text, time.Now()
	return nil
}

func (a fakeAPI) View(ctx context.Context, _ sessions.ViewRequest) (sessions.View, error) {
	if err := a.blockIfEnded(ctx); err != nil {
		return sessions.View{}, err
	}
	s := a.w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return sessions.View{State: s.view}, s.viewErr
}

// updateTurn changes what the agent's record says of its turn.
func (a *fakeAgent) updateTurn(f func(sessions.Turn) sessions.Turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn = f(a.turn)
}

func (a *fakeAgent) beginTurn() {
	a.updateTurn(func(t sessions.Turn) sessions.Turn { return t.Begin(time.Now()) })
}

func (a *fakeAgent) endTurn() {
	a.updateTurn(func(t sessions.Turn) sessions.Turn { return t.End(time.Now()) })
}

// beginTurn has the agent begin a turn.
func (w *env) beginTurn() {
	w.agent.beginTurn()
	w.relay()
}

// endTurn has the agent end its turn, with these words when there are any.
func (w *env) endTurn(text string) {
	w.agent.endTurn()
	if text != "" {
		w.agent.addMessage(text, true)
	}
	w.relay()
}

func (w *env) wantStatus(when, want string) {
	w.t.Helper()
	if got := w.screen.shownStatus(); got != want {
		w.t.Errorf("%s the thread shows %q; want %q", when, got, want)
	}
}

// withStatuses is answering in a workspace with statuses, and agents whose screens can be read.
func withStatuses(t *testing.T, f func(w *env)) {
	t.Helper()
	withAnswers(t, relay.AnswersFinal, func(w *env) {
		w.screen = &fakeScreen{view: sessions.ViewWorking}
		restart(w)
		w.relay()
		f(w)
	})
}

// withoutStatuses is seeing where the workspace has no statuses.
func withoutStatuses(t *testing.T, f func(w *env)) {
	t.Helper()
	withStatuses(t, func(w *env) {
		w.screen.update(func(s *fakeScreen) { s.unsupported = true })
		f(w)
	})
}

func TestTheStatusIsThereAsLongAsTheTurnRuns(t *testing.T) {
	withStatuses(t, func(w *env) {
		w.beginTurn()
		for i := range 30 {
			w.advance(20 * time.Second)
			w.wantStatus(fmt.Sprintf("after %d s", 20*(i+1)), statusWorking)
		}
		if n := w.screen.statusCalls(); n > 8 {
			t.Errorf("%d calls in ten minutes", n)
		}
		w.endTurn("done")
		w.advance(2 * time.Second)
		w.wantStatus("at the end", "")
		asked := w.screen.statusCalls()
		w.advance(time.Hour)
		if n := w.screen.statusCalls(); n != asked {
			t.Errorf("%d calls while nothing ran", n-asked)
		}
		w.wantPosts("done")
	})
}

// Slack takes the status away when we post; nothing has to be called then.
func TestAnAnswerEndsTheStatusByItselfAndSilenceHasItEnded(t *testing.T) {
	withStatuses(t, func(w *env) {
		w.beginTurn()
		w.advance(5 * time.Second)
		w.endTurn("done")
		w.advance(5 * time.Second)
		if n := w.screen.statusCalls(); n != 1 {
			t.Errorf("%d calls", n)
		}
		w.beginTurn()
		w.advance(5 * time.Second)
		w.wantStatus("in the second turn", statusWorking)
		w.endTurn("")
		w.advance(5 * time.Second)
		w.wantStatus("after it", "")
	})
}

func TestTheStatusComesBackAfterAPostInTheTurn(t *testing.T) {
	withStatuses(t, func(w *env) {
		w.beginTurn()
		w.advance(5 * time.Second)
		w.m.Notify(context.Background(), sid, Notification{Text: "by the way"})
		w.advance(5 * time.Second)
		w.wantStatus("after the post", statusWorking)
	})
}

func TestAShortTurnShowsNothing(t *testing.T) {
	withStatuses(t, func(w *env) {
		for range 20 {
			w.beginTurn()
			w.advance(500 * time.Millisecond)
			w.endTurn("")
			w.advance(500 * time.Millisecond)
		}
		w.advance(time.Minute)
		if n := w.screen.statusCalls(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestTheScreenDecidesWhereTheRecordGoesOnSayingThatATurnRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		view   sessions.ViewState
		err    error
		status string
	}{
		"killed":          {"", &sessions.Refusal{Cause: sessions.ErrNotRunning}, ""},
		"at rest":         {sessions.ViewReady, nil, ""},
		"asks":            {sessions.ViewDialog, nil, statusWaiting},
		"cannot be read":  {sessions.ViewUnknown, nil, statusWorking},
		"tmux is silent":  {"", sessions.ErrTerminalTimeout, statusWorking},
		"works, in truth": {sessions.ViewWorking, nil, statusWorking},
	} {
		t.Run(name, func(t *testing.T) {
			withStatuses(t, func(w *env) {
				w.beginTurn()
				w.advance(5 * time.Second)
				w.screen.update(func(s *fakeScreen) { s.view, s.viewErr = tc.view, tc.err })
				w.advance(30 * time.Second)
				w.wantStatus("when it "+name, tc.status)
				w.screen.update(func(s *fakeScreen) { s.view, s.viewErr = sessions.ViewWorking, nil })
				w.endTurn("")
				w.beginTurn()
				w.advance(5 * time.Second)
				w.wantStatus("in the next turn", statusWorking)
				looks := w.screen.readCount()
				w.advance(time.Minute)
				if n := w.screen.readCount() - looks; n > 10 {
					t.Errorf("looked %d times in a minute", n)
				}
			})
		})
	}
}

func TestNoThreadShowsThatAnAgentWorksWhichItWasToldIsDown(t *testing.T) {
	withStatuses(t, func(w *env) {
		w.beginTurn()
		w.advance(5 * time.Second)
		w.wantStatus("in the turn", statusWorking)
		w.m.AgentEnded(context.Background(), sid, time.Now())
		w.m.Notify(context.Background(), sid, Notification{Text: ":red_circle: is down"})
		w.advance(time.Second)
		asked := w.screen.statusCalls()
		w.advance(20 * time.Second)
		w.wantStatus("after that", "")
		w.agent.addMessage("what it had written before", false) // it is read later
		w.relay()
		w.advance(20 * time.Second)
		w.wantStatus("when the rest of its record was read", "")
		if n := w.screen.statusCalls() - asked; n != 0 {
			t.Errorf("%d changes of the status after it was told that the agent is down", n)
		}
		w.beginTurn()
		w.advance(5 * time.Second)
		w.wantStatus("in the next agent's turn", statusWorking)
	})
}

func TestOneMessageTellsOfALongTurnWhereThereAreNoStatuses(t *testing.T) {
	withoutStatuses(t, func(w *env) {
		w.beginTurn()
		w.advance(10 * time.Second)
		w.wantPosts()
		w.advance(10 * time.Second)
		w.wantPosts("Working, for 1")
		w.advance(80 * time.Second)
		w.wantPosts("Working, for 1 min ")
		w.advance(33 * time.Second)
		w.endTurn("done")
		w.advance(10 * time.Second)
		w.wantPosts("Worked 2 min 13 s.", "done")
		if b := bindingFile(t, w); b.TurnMessage.Nonce != "" {
			t.Error("the message is still kept")
		}
		if n := w.screen.statusCalls(); n != 1 {
			t.Errorf("asked %d times for a status that this workspace does not have", n)
		}
	})
}

func TestStatusesAreAskedForAgainAfterAReconnect(t *testing.T) {
	withoutStatuses(t, func(w *env) {
		w.beginTurn()
		w.advance(5 * time.Second)
		w.screen.update(func(s *fakeScreen) { s.unsupported = false })
		w.advance(time.Minute)
		w.wantStatus("before", "")
		w.m.Connected(true)
		w.advance(5 * time.Second)
		w.wantStatus("after a reconnect", statusWorking)
		w.endTurn("done")
		w.advance(10 * time.Second)
		w.wantPosts("Worked 1 min 10 s.", "done")
	})
}

func TestTheMessageOfATurnIsTakenUpAfterARestart(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		t.Run(fmt.Sprint("goes on ", goesOn), func(t *testing.T) {
			withoutStatuses(t, func(w *env) {
				w.beginTurn()
				w.advance(20 * time.Second)
				w.wantPosts("Working")
				w.stop()
				w.advance(40 * time.Second)
				if !goesOn {
					w.agent.endTurn()
					w.agent.addMessage("done", true)
				}
				w.start()
				w.relay()
				w.advance(40 * time.Second)
				if goesOn {
					w.wantPosts("Working, for 1 min ")
					w.endTurn("done")
					w.advance(10 * time.Second)
				}
				w.wantPosts("Worked 1 min", "done")
			})
		})
	}
}

func TestAStatusThatAnEarlierRunShowedIsTakenAway(t *testing.T) {
	withStatuses(t, func(w *env) {
		w.agent.addMessage("looking", false) // so that the place moves and is stored
		w.beginTurn()
		w.advance(5 * time.Second)
		w.wantStatus("in the turn", statusWorking)
		w.stop()
		w.agent.endTurn()
		w.start()
		w.relay()
		w.advance(5 * time.Second)
		w.wantStatus("after the restart", "")
	})
}

func TestNothingIsSaidOfATurnThatSlackWasAwayFor(t *testing.T) {
	withoutStatuses(t, func(w *env) {
		w.screen.update(func(s *fakeScreen) { s.unsupported = true })
		w.beginTurn()
		w.advance(5 * time.Second)
		w.slack.setErr(errors.New("no network"))
		w.advance(2 * time.Minute)
		w.endTurn("done")
		w.advance(time.Minute)
		w.slack.setErr(nil)
		w.advance(5 * time.Minute)
		if got := w.slack.posted(); got[len(got)-1] != "done" || len(got) > 2 || len(got) == 2 && !strings.Contains(got[0], "Worked") {
			t.Errorf("posted %q", got)
		}
	})
}

func TestTheFinalMessageOfATurnIsTrue(t *testing.T) {
	for name, tc := range map[string]struct {
		ends func(w *env)
		want string
	}{
		"killed": {func(w *env) {
			w.screen.update(func(s *fakeScreen) { s.viewErr = &sessions.Refusal{Cause: sessions.ErrNotRunning} })
		}, "The agent ended while it worked."},
		"at rest by its screen": {func(w *env) { w.screen.update(func(s *fakeScreen) { s.view = sessions.ViewReady }) }, "This turn is over."},
		"switched off":          {func(w *env) { w.locked(func() { w.answerMode = relay.AnswersOff }); w.relay() }, "no longer shown here"},
		"another turn runs":     {func(w *env) { w.beginTurn() }, "This turn is over."},
		"the conversation was cleared": {func(w *env) {
			w.agent.updateTurn(func(sessions.Turn) sessions.Turn { return sessions.Turn{} })
			w.relay()
		}, "This turn is over."},
	} {
		t.Run(name, func(t *testing.T) {
			withoutStatuses(t, func(w *env) {
				w.beginTurn()
				w.advance(20 * time.Second)
				w.wantPosts("Working")
				tc.ends(w)
				w.advance(30 * time.Second)
				got := w.slack.posted()
				if !strings.Contains(got[0], tc.want) {
					t.Errorf("the thread was told %q; want %q", got, tc.want)
				}
			})
		})
	}
	withoutStatuses(t, func(w *env) {
		w.beginTurn()
		w.advance(20 * time.Second)
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.advance(10 * time.Second)
		w.wantPosts("This turn is over.", "This session was deleted")
	})
}

func TestAMessageOfATurnThatWaitsForLongIsLeftAlone(t *testing.T) {
	withoutStatuses(t, func(w *env) {
		w.beginTurn()
		w.screen.update(func(s *fakeScreen) { s.view = sessions.ViewDialog })
		for range 20 {
			w.advance(time.Minute)
		}
		w.wantPosts("Waiting for an answer")
		w.screen.update(func(s *fakeScreen) { s.view = sessions.ViewWorking })
		w.advance(5 * time.Minute)
		w.wantPosts("Working, for ")
		w.endTurn("done")
		w.advance(time.Minute)
		w.wantPosts("Worked 25 min", "done")
	})
}

func TestADeletedMessageOfATurnIsNotPostedAgain(t *testing.T) {
	withoutStatuses(t, func(w *env) {
		w.beginTurn()
		w.advance(20 * time.Second)
		w.slack.remove(bindingFile(t, w).TurnMessage.TS)
		w.advance(5 * time.Minute)
		w.endTurn("done")
		w.advance(time.Minute)
		w.wantPosts("done")
	})
}

// A message that only tells of a turn must not take what an answer needs, in this thread or another one of the channel.
func TestAMessageOfATurnHoldsNoAnswerUp(t *testing.T) {
	withoutStatuses(t, func(w *env) {
		const other = "id-2"
		err := w.m.Announce(context.Background(), AnnounceRequest{ID: other, Ref: "standing:o", Channel: channel, Post: chat.Post{Text: "I am o"}})
		if err != nil {
			t.Fatal(err)
		}
		w.beginTurn()
		for i := range 60 {
			w.m.Notify(context.Background(), other, Notification{Text: fmt.Sprint("chatter ", i)})
		}
		w.advance(20 * time.Second)
		w.m.Notify(context.Background(), sid, Notification{Text: "soon"})
		w.advance(5 * time.Second)
		got := w.slack.posted()
		if !slices.Contains(got, "soon") || slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "Working") }) {
			t.Errorf("posted %q", got)
		}
		w.endTurn("done")
		w.advance(2 * time.Minute)
		if slices.ContainsFunc(w.slack.posted(), func(p string) bool { return strings.Contains(p, "Work") }) {
			t.Errorf("posted %q", w.slack.posted())
		}
	})
}

// TestWhateverHappensOneMessageTellsOfATurn plays random days: turns, restarts, kills at any step, a Slack that is away, or
// takes a message and does not say so.
func TestWhateverHappensOneMessageTellsOfATurn(t *testing.T) {
	t.Parallel()
	days := 100
	if testing.Short() {
		days = 20
	}
	for seed := range days {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			withoutStatuses(t, func(w *env) {
				d := &turnModel{env: w, r: rand.New(rand.NewPCG(uint64(seed), 12))}
				d.run()
				d.check()
			})
		})
	}
}

// turnModel is one such day.
type turnModel struct {
	*env
	r              *rand.Rand
	killed         atomic.Bool
	turns, answers int
}

func (d *turnModel) run() {
	for range 60 {
		if !d.slackStep() {
			d.agentStep()
		}
		relayIgnoringErrors(d.env)
		if d.killed.Load() || d.r.IntN(10) == 0 {
			restart(d.env)
			d.killed.Store(false)
		}
	}
	restart(d.env)
	d.slack.setErr(nil)
	d.agent.endTurn()
	relayIgnoringErrors(d.env)
	d.advance(15 * time.Minute)
}

func (d *turnModel) agentStep() {
	switch d.r.IntN(5) {
	case 0, 1:
		d.agent.beginTurn()
		d.turns++
	case 2:
		d.agent.endTurn()
		d.agent.addMessage(fmt.Sprint("answer ", d.answers), true)
		d.answers++
	default:
		d.advance(time.Duration(d.r.IntN(60)) * time.Second)
	}
}

// slackStep changes how Slack behaves, or says that it stays as it is.
func (d *turnModel) slackStep() bool {
	switch d.r.IntN(9) {
	case 0:
		d.slack.setErr(errors.New("no network"))
	case 1:
		d.slack.setErr(nil)
		d.slack.setOnPost(nil)
	case 2:
		d.slack.setOnPost(func(_ *managerRun, before bool, _ chat.Post) error {
			if before {
				return nil
			}
			return chat.ErrOutcomeUnknown
		})
	case 3:
		early := d.r.IntN(2) == 0
		d.slack.setOnPost(func(l *managerRun, before bool, _ chat.Post) error {
			if before != early || d.killed.Swap(true) {
				return nil
			}
			d.kill(l)
			return context.Canceled
		})
	default:
		return false
	}
	return true
}

// check fails when a message says still that a turn runs, more tell of turns than there were, or an answer is missing.
func (d *turnModel) check() {
	d.t.Helper()
	var got []string
	tells := 0
	for _, p := range d.slack.posted() {
		switch {
		case strings.Contains(p, "Working"), strings.Contains(p, "Waiting"):
			d.t.Errorf("a message says still %q", p)
		case strings.HasPrefix(p, "_"):
			tells++
		default:
			got = append(got, p)
		}
	}
	if tells > d.turns || len(got) != d.answers {
		d.t.Errorf("%d turns with %d answers, of which the thread was told %q", d.turns, d.answers, d.slack.posted())
	}
	if files, err := os.ReadDir(filepath.Join(d.root, "outbox")); err == nil && len(files) > 0 {
		d.t.Errorf("%d messages wait", len(files))
	}
}
