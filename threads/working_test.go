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
)

// sight is what is seen of an agent at work: the status that Slack shows, and the agent's screen.
type sight struct {
	mu      sync.Mutex
	status  string
	set     time.Time
	calls   []string // each change that was asked for
	none    bool     // this workspace has no statuses
	fails   error
	view    sessions.ViewState
	viewErr error
	looks   int
}

// posted takes the status away, as Slack does.
func (s *sight) posted() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = ""
}

// shows is what the thread shows now.
func (s *sight) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.set) > 2*time.Minute {
		return ""
	}
	return s.status
}

func (s *sight) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func (s *sight) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

func (s *sight) change(f func(*sight)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (a alive) SetStatus(ctx context.Context, _, _, text string) error {
	if err := errors.Join(a.err(ctx), a.w.slack.fails()); err != nil {
		return err
	}
	s := a.w.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, text)
	switch {
	case s.none:
		return fmt.Errorf("feature_disabled: %w", ErrNoStatus)
	case s.fails != nil:
		return s.fails
	}
	s.status, s.set = text, time.Now()
	return nil
}

func (a alive) View(ctx context.Context, _ sessions.ViewRequest) (sessions.View, error) {
	if err := a.err(ctx); err != nil {
		return sessions.View{}, err
	}
	s := a.w.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return sessions.View{State: s.view}, s.viewErr
}

// turned changes what the agent's record says of its turn.
func (a *agent) turned(f func(sessions.Turn) sessions.Turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn = f(a.turn)
}

func (a *agent) begins() {
	a.turned(func(t sessions.Turn) sessions.Turn { return t.Begin(time.Now()) })
}

func (a *agent) ends() {
	a.turned(func(t sessions.Turn) sessions.Turn { return t.End(time.Now()) })
}

// works has the agent begin a turn.
func (w *world) works() {
	w.agent.begins()
	w.relay()
}

// rests has the agent end its turn, with these words when there are any.
func (w *world) rests(text string) {
	w.agent.ends()
	if text != "" {
		w.agent.speaks(text, true)
	}
	w.relay()
}

func (w *world) wantStatus(when, want string) {
	w.t.Helper()
	if got := w.sight.shows(); got != want {
		w.t.Errorf("%s the thread shows %q; want %q", when, got, want)
	}
}

// seeing is answering in a workspace with statuses, and agents whose screens can be read.
func seeing(t *testing.T, f func(w *world)) {
	t.Helper()
	answering(t, AnswersFinal, func(w *world) {
		w.sight = &sight{view: sessions.ViewWorking}
		restart(w)
		w.relay()
		f(w)
	})
}

// telling is seeing where the workspace has no statuses.
func telling(t *testing.T, f func(w *world)) {
	t.Helper()
	seeing(t, func(w *world) {
		w.sight.change(func(s *sight) { s.none = true })
		f(w)
	})
}

func TestTheStatusIsThereAsLongAsTheTurnRuns(t *testing.T) {
	seeing(t, func(w *world) {
		w.works()
		for i := range 30 {
			w.after(20 * time.Second)
			w.wantStatus(fmt.Sprintf("after %d s", 20*(i+1)), statusWorks)
		}
		if n := w.sight.asked(); n > 8 {
			t.Errorf("%d calls in ten minutes", n)
		}
		w.rests("done")
		w.after(2 * time.Second)
		w.wantStatus("at the end", "")
		asked := w.sight.asked()
		w.after(time.Hour)
		if n := w.sight.asked(); n != asked {
			t.Errorf("%d calls while nothing ran", n-asked)
		}
		w.wantPosts("done")
	})
}

// Slack takes the status away when we post; nothing has to be called then.
func TestAnAnswerEndsTheStatusByItselfAndSilenceHasItEnded(t *testing.T) {
	seeing(t, func(w *world) {
		w.works()
		w.after(5 * time.Second)
		w.rests("done")
		w.after(5 * time.Second)
		if n := w.sight.asked(); n != 1 {
			t.Errorf("%d calls", n)
		}
		w.works()
		w.after(5 * time.Second)
		w.wantStatus("in the second turn", statusWorks)
		w.rests("")
		w.after(5 * time.Second)
		w.wantStatus("after it", "")
	})
}

func TestTheStatusComesBackAfterAPostInTheTurn(t *testing.T) {
	seeing(t, func(w *world) {
		w.works()
		w.after(5 * time.Second)
		w.m.Tell(context.Background(), sid, Telling{Text: "by the way"})
		w.after(5 * time.Second)
		w.wantStatus("after the post", statusWorks)
	})
}

func TestAShortTurnShowsNothing(t *testing.T) {
	seeing(t, func(w *world) {
		for range 20 {
			w.works()
			w.after(500 * time.Millisecond)
			w.rests("")
			w.after(500 * time.Millisecond)
		}
		w.after(time.Minute)
		if n := w.sight.asked(); n != 0 {
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
		"asks":            {sessions.ViewDialog, nil, statusWaits},
		"cannot be read":  {sessions.ViewUnknown, nil, statusWorks},
		"tmux is silent":  {"", sessions.ErrSilent, statusWorks},
		"works, in truth": {sessions.ViewWorking, nil, statusWorks},
	} {
		t.Run(name, func(t *testing.T) {
			seeing(t, func(w *world) {
				w.works()
				w.after(5 * time.Second)
				w.sight.change(func(s *sight) { s.view, s.viewErr = tc.view, tc.err })
				w.after(30 * time.Second)
				w.wantStatus("when it "+name, tc.status)
				w.sight.change(func(s *sight) { s.view, s.viewErr = sessions.ViewWorking, nil })
				w.rests("")
				w.works()
				w.after(5 * time.Second)
				w.wantStatus("in the next turn", statusWorks)
				looks := w.sight.looked()
				w.after(time.Minute)
				if n := w.sight.looked() - looks; n > 10 {
					t.Errorf("looked %d times in a minute", n)
				}
			})
		})
	}
}

func TestNoThreadShowsThatAnAgentWorksWhichItWasToldIsDown(t *testing.T) {
	seeing(t, func(w *world) {
		w.works()
		w.after(5 * time.Second)
		w.wantStatus("in the turn", statusWorks)
		w.m.AgentEnded(context.Background(), sid, time.Now())
		w.m.Tell(context.Background(), sid, Telling{Text: ":red_circle: is down"})
		w.after(time.Second)
		asked := w.sight.asked()
		w.after(20 * time.Second)
		w.wantStatus("after that", "")
		w.agent.speaks("what it had written before", false) // it is read later
		w.relay()
		w.after(20 * time.Second)
		w.wantStatus("when the rest of its record was read", "")
		if n := w.sight.asked() - asked; n != 0 {
			t.Errorf("%d changes of the status after it was told that the agent is down", n)
		}
		w.works()
		w.after(5 * time.Second)
		w.wantStatus("in the next agent's turn", statusWorks)
	})
}

func TestOneMessageTellsOfALongTurnWhereThereAreNoStatuses(t *testing.T) {
	telling(t, func(w *world) {
		w.works()
		w.after(10 * time.Second)
		w.wantPosts()
		w.after(10 * time.Second)
		w.wantPosts("Working, for 1")
		w.after(80 * time.Second)
		w.wantPosts("Working, for 1 min ")
		w.after(33 * time.Second)
		w.rests("done")
		w.after(10 * time.Second)
		w.wantPosts("Worked 2 min 13 s.", "done")
		if b := bindingFile(t, w); b.Working.Nonce != "" {
			t.Error("the message is still kept")
		}
		if n := w.sight.asked(); n != 1 {
			t.Errorf("asked %d times for a status that this workspace does not have", n)
		}
	})
}

func TestStatusesAreAskedForAgainAfterAReconnect(t *testing.T) {
	telling(t, func(w *world) {
		w.works()
		w.after(5 * time.Second)
		w.sight.change(func(s *sight) { s.none = false })
		w.after(time.Minute)
		w.wantStatus("before", "")
		w.m.Connected(true)
		w.after(5 * time.Second)
		w.wantStatus("after a reconnect", statusWorks)
		w.rests("done")
		w.after(10 * time.Second)
		w.wantPosts("Worked 1 min 10 s.", "done")
	})
}

func TestTheMessageOfATurnIsTakenUpAfterARestart(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		t.Run(fmt.Sprint("goes on ", goesOn), func(t *testing.T) {
			telling(t, func(w *world) {
				w.works()
				w.after(20 * time.Second)
				w.wantPosts("Working")
				w.stop()
				w.after(40 * time.Second)
				if !goesOn {
					w.agent.ends()
					w.agent.speaks("done", true)
				}
				w.start()
				w.relay()
				w.after(40 * time.Second)
				if goesOn {
					w.wantPosts("Working, for 1 min ")
					w.rests("done")
					w.after(10 * time.Second)
				}
				w.wantPosts("Worked 1 min", "done")
			})
		})
	}
}

func TestAStatusThatAnEarlierRunShowedIsTakenAway(t *testing.T) {
	seeing(t, func(w *world) {
		w.agent.speaks("looking", false) // so that the place moves and is stored
		w.works()
		w.after(5 * time.Second)
		w.wantStatus("in the turn", statusWorks)
		w.stop()
		w.agent.ends()
		w.start()
		w.relay()
		w.after(5 * time.Second)
		w.wantStatus("after the restart", "")
	})
}

func TestNothingIsSaidOfATurnThatSlackWasAwayFor(t *testing.T) {
	telling(t, func(w *world) {
		w.sight.change(func(s *sight) { s.none = true })
		w.works()
		w.after(5 * time.Second)
		w.slack.fail(errors.New("no network"))
		w.after(2 * time.Minute)
		w.rests("done")
		w.after(time.Minute)
		w.slack.fail(nil)
		w.after(5 * time.Minute)
		if got := w.slack.posted(); got[len(got)-1] != "done" || len(got) > 2 || len(got) == 2 && !strings.Contains(got[0], "Worked") {
			t.Errorf("posted %q", got)
		}
	})
}

func TestTheLastWordOnATurnIsTrue(t *testing.T) {
	for name, tc := range map[string]struct {
		ends func(w *world)
		want string
	}{
		"killed": {func(w *world) {
			w.sight.change(func(s *sight) { s.viewErr = &sessions.Refusal{Cause: sessions.ErrNotRunning} })
		}, "The agent ended while it worked."},
		"at rest by its screen": {func(w *world) { w.sight.change(func(s *sight) { s.view = sessions.ViewReady }) }, "This turn is over."},
		"switched off":          {func(w *world) { w.set(func() { w.posts = AnswersOff }); w.relay() }, "no longer shown here"},
		"another turn runs":     {func(w *world) { w.works() }, "This turn is over."},
		"the conversation was cleared": {func(w *world) {
			w.agent.turned(func(sessions.Turn) sessions.Turn { return sessions.Turn{} })
			w.relay()
		}, "This turn is over."},
	} {
		t.Run(name, func(t *testing.T) {
			telling(t, func(w *world) {
				w.works()
				w.after(20 * time.Second)
				w.wantPosts("Working")
				tc.ends(w)
				w.after(30 * time.Second)
				got := w.slack.posted()
				if !strings.Contains(got[0], tc.want) {
					t.Errorf("the thread was told %q; want %q", got, tc.want)
				}
			})
		})
	}
	telling(t, func(w *world) {
		w.works()
		w.after(20 * time.Second)
		if err := w.m.Unbind(context.Background(), sid); err != nil {
			t.Fatal(err)
		}
		w.after(10 * time.Second)
		w.wantPosts("This turn is over.", "This session was deleted")
	})
}

func TestAMessageOfATurnThatWaitsForLongIsLeftAlone(t *testing.T) {
	telling(t, func(w *world) {
		w.works()
		w.sight.change(func(s *sight) { s.view = sessions.ViewDialog })
		for range 20 {
			w.after(time.Minute)
		}
		w.wantPosts("Waiting for an answer")
		w.sight.change(func(s *sight) { s.view = sessions.ViewWorking })
		w.after(5 * time.Minute)
		w.wantPosts("Working, for ")
		w.rests("done")
		w.after(time.Minute)
		w.wantPosts("Worked 25 min", "done")
	})
}

func TestADeletedMessageOfATurnIsNotPostedAgain(t *testing.T) {
	telling(t, func(w *world) {
		w.works()
		w.after(20 * time.Second)
		w.slack.remove(bindingFile(t, w).Working.TS)
		w.after(5 * time.Minute)
		w.rests("done")
		w.after(time.Minute)
		w.wantPosts("done")
	})
}

// A message that only tells of a turn must not take what an answer needs, in this thread or another one of the channel.
func TestAMessageOfATurnHoldsNoAnswerUp(t *testing.T) {
	telling(t, func(w *world) {
		const other = "id-2"
		err := w.m.Announce(context.Background(), Announcing{ID: other, Ref: "standing:o", Channel: channel, Post: Post{Text: "I am o"}})
		if err != nil {
			t.Fatal(err)
		}
		w.works()
		for i := range 60 {
			w.m.Tell(context.Background(), other, Telling{Text: fmt.Sprint("chatter ", i)})
		}
		w.after(20 * time.Second)
		w.m.Tell(context.Background(), sid, Telling{Text: "soon"})
		w.after(5 * time.Second)
		got := w.slack.posted()
		if !slices.Contains(got, "soon") || slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "Working") }) {
			t.Errorf("posted %q", got)
		}
		w.rests("done")
		w.after(2 * time.Minute)
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
			telling(t, func(w *world) {
				d := &workDay{world: w, r: rand.New(rand.NewPCG(uint64(seed), 12))}
				d.play()
				d.wants()
			})
		})
	}
}

// workDay is one such day.
type workDay struct {
	*world
	r              *rand.Rand
	killed         atomic.Bool
	turns, answers int
}

func (d *workDay) play() {
	for range 60 {
		if !d.slackHour() {
			d.agentHour()
		}
		relayAs(d.world)
		if d.killed.Load() || d.r.IntN(10) == 0 {
			restart(d.world)
			d.killed.Store(false)
		}
	}
	restart(d.world)
	d.slack.fail(nil)
	d.agent.ends()
	relayAs(d.world)
	d.after(15 * time.Minute)
}

func (d *workDay) agentHour() {
	switch d.r.IntN(5) {
	case 0, 1:
		d.agent.begins()
		d.turns++
	case 2:
		d.agent.ends()
		d.agent.speaks(fmt.Sprint("answer ", d.answers), true)
		d.answers++
	default:
		d.after(time.Duration(d.r.IntN(60)) * time.Second)
	}
}

// slackHour changes how Slack behaves, or says that it stays as it is.
func (d *workDay) slackHour() bool {
	switch d.r.IntN(9) {
	case 0:
		d.slack.fail(errors.New("no network"))
	case 1:
		d.slack.fail(nil)
		d.slack.hook(nil)
	case 2:
		d.slack.hook(func(_ *life, before bool, _ Post) error {
			if before {
				return nil
			}
			return ErrUnknown
		})
	case 3:
		early := d.r.IntN(2) == 0
		d.slack.hook(func(l *life, before bool, _ Post) error {
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

// wants fails when a message says still that a turn runs, more tell of turns than there were, or an answer is missing.
func (d *workDay) wants() {
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
