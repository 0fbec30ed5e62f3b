package threads

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"the-loop/authz"
	"the-loop/sessions"
)

// fakeHooks is what an agent reports, and the hooks that wait for an answer.
type fakeHooks struct {
	mu       sync.Mutex
	asks     []sessions.PermissionRequest
	answered []sessions.AnsweredPermission
	waiting  map[string]chan struct{}                // closed when the hook ends
	taken    []sessions.PermissionDecision           // taken
	during   func(l *managerRun, token string) error // is done in the middle of an answer, before it is acknowledged
}

// fakeAPIWithHooks is the agent with its hooks, as one run of the manager sees them.
type fakeAPIWithHooks struct{ fakeAPI }

// request has the agent ask.
func (h *fakeHooks) request(token string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asks = append(h.asks, sessions.PermissionRequest{Token: token, At: at, Tool: "Shell", Command: "do " + token, Decidable: true})
	h.waiting[token] = make(chan struct{})
}

// setDuring has something done in the middle of each answer from now on; nil: nothing.
func (h *fakeHooks) setDuring(during func(l *managerRun, token string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.during = during
}

// setAnswered has these answers, and no others, reported by the hooks.
func (h *fakeHooks) setAnswered(answered ...sessions.AnsweredPermission) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = answered
}

// end ends a hook.
func (h *fakeHooks) end(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.waiting[token]; c != nil {
		close(c)
		delete(h.waiting, token)
	}
}

func (a fakeAPIWithHooks) ReadReports(ctx context.Context, q sessions.ReportsRequest) (sessions.ReportBatch, error) {
	if err := a.blockIfEnded(ctx); err != nil {
		return sessions.ReportBatch{}, err
	}
	h := a.w.hooks
	h.mu.Lock()
	defer h.mu.Unlock()
	var asks, answered int
	_, _ = fmt.Sscanf(string(q.Offset), "%d.%d", &asks, &answered)
	return sessions.ReportBatch{PermissionRequests: h.asks[asks:], Answered: h.answered[answered:], Next: sessions.Offset(fmt.Sprintf("%d.%d", len(h.asks), len(h.answered)))}, nil
}

func (a fakeAPIWithHooks) WaitResolved(ctx context.Context, q sessions.WaitResolvedRequest) error {
	if err := a.blockIfEnded(ctx); err != nil {
		return err
	}
	a.w.hooks.mu.Lock()
	over := a.w.hooks.waiting[q.Token]
	a.w.hooks.mu.Unlock()
	if over == nil {
		return nil
	}
	q.OnOpen()
	select {
	case <-over:
		return a.blockIfEnded(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a fakeAPIWithHooks) AnswerPermission(ctx context.Context, q sessions.AnswerPermissionRequest) error {
	if err := a.blockIfEnded(ctx); err != nil {
		return err
	}
	h := a.w.hooks
	h.mu.Lock()
	_, waits := h.waiting[q.Token]
	during := h.during
	if waits {
		h.taken = append(h.taken, q.PermissionDecision)
		h.answered = append(h.answered, sessions.AnsweredPermission{Token: q.Token, Allow: q.Verdict == sessions.VerdictAllow, At: time.Now()})
	}
	h.mu.Unlock()
	if !waits {
		return sessions.ErrPermissionEnded
	}
	if during != nil {
		if err := during(a.managerRun, q.Token); err != nil {
			return err
		}
	}
	h.end(q.Token)
	return a.blockIfEnded(ctx)
}

// withHooks is a world with an agent that asks.
func withHooks(t *testing.T, f func(w *env)) {
	t.Helper()
	withEnvSetup(t, func(w *env) { w.hooks = &fakeHooks{waiting: map[string]chan struct{}{}} }, f)
}

// relayReports has what the agent reported taken up.
func (w *env) relayReports() {
	w.t.Helper()
	if _, err := w.m.Relay(context.Background(), sid); err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	w.advance(5 * time.Second)
}

// requestPermission has the agent ask, and returns the value of the buttons in the thread.
func (w *env) requestPermission(token string) string {
	w.t.Helper()
	w.hooks.request(token, time.Now())
	w.relayReports()
	return w.permissionButton(token)
}

// permissionButton is the value of the buttons under the question; empty: it has none.
func (w *env) permissionButton(token string) string {
	w.t.Helper()
	w.slack.mu.Lock()
	defer w.slack.mu.Unlock()
	value := ""
	for _, m := range w.slack.messages {
		if m.post == nil || !strings.Contains(m.text, "do "+token) {
			continue
		}
		if value != "" {
			w.t.Errorf("the question %s stands twice in the thread", token)
		}
		for _, b := range m.post.Buttons {
			value = b.Value
		}
	}
	return value
}

func (w *env) decide(button string, v sessions.Verdict, user string) string {
	w.t.Helper()
	text, err := w.m.DecidePermission(context.Background(), PermissionDecision{Token: button, Verdict: v, Actor: authz.Actor{User: user, Team: "T1"}})
	if err != nil {
		w.t.Errorf("rule: %v", err)
	}
	w.wait()
	return text
}

// permissionMessage is the text of the question in the thread.
func (w *env) permissionMessage(token string) string {
	w.t.Helper()
	for _, text := range w.slack.posted() {
		if strings.Contains(text, "do "+token) {
			return text
		}
	}
	return ""
}

func (w *env) wantPermissionAnswers(want ...sessions.Verdict) {
	w.t.Helper()
	w.hooks.mu.Lock()
	defer w.hooks.mu.Unlock()
	var got []sessions.Verdict
	for _, a := range w.hooks.taken {
		got = append(got, a.Verdict)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("the agent was answered %v; want %v", got, want)
	}
}

func TestAQuestionIsDecidedOnceByWhoIsLetIn(t *testing.T) {
	withHooks(t, func(w *env) {
		button := w.requestPermission("A")
		if !strings.HasPrefix(button, sid+".") || strings.Contains(button, "A.") || len(button) < len(sid)+27 {
			t.Errorf("the button holds %q", button)
		}
		if _, err := w.m.DecidePermission(context.Background(), PermissionDecision{Token: button, Verdict: sessions.VerdictAllow, Actor: authz.Actor{User: bob, Team: "T1"}}); !errors.Is(err, ErrDenied) {
			t.Errorf("somebody who is not on the list: %v", err)
		}
		w.locked(func() { w.configInvalid = true })
		if got := w.decide(button, sessions.VerdictAllow, ann); got != suspendedText {
			t.Errorf("while the list cannot be read: %q", got)
		}
		w.locked(func() { w.configInvalid = false })
		for _, guess := range []string{sid + ".AAAAAAAAAAAAAAAAAAAAAAAAAA", "id-2.x", "", "A"} {
			if got := w.decide(guess, sessions.VerdictAllow, ann); !strings.Contains(got, "no longer open") && got != sessionGoneText {
				t.Errorf("a guess: %q", got)
			}
		}
		w.wantPermissionAnswers()
		if got := w.decide(button, sessions.VerdictDeny, ann); !strings.Contains(got, "Denied by <@U1>") {
			t.Errorf("the answer: %q", got)
		}
		if got := w.decide(button, sessions.VerdictAllow, ann); !strings.Contains(got, "Already decided. Denied by <@U1>") {
			t.Errorf("the second answer: %q", got)
		}
		w.advance(5 * time.Second)
		w.wantPermissionAnswers(sessions.VerdictDeny)
		if got := w.permissionMessage("A"); !strings.Contains(got, "Denied by <@U1>") || w.permissionButton("A") != "" {
			t.Errorf("the thread shows %q", got)
		}
	})
}

// TestABotThatIsKilledWhileSomebodyDecidesTellsTheTruth has the end come before the agent heard the answer, and after.
func TestABotThatIsKilledWhileSomebodyDecidesTellsTheTruth(t *testing.T) {
	for name, c := range map[string]struct {
		ends bool // the agent took the answer
		want string
	}{"before": {false, ""}, "after": {true, "Allowed by <@U1>"}} {
		t.Run(name, func(t *testing.T) {
			withHooks(t, func(w *env) {
				button := w.requestPermission("A")
				w.hooks.setDuring(func(l *managerRun, token string) error {
					if w.kill(l); c.ends {
						w.hooks.end(token)
					} else {
						w.hooks.setAnswered() // it was not reported: the hook never heard of it
						return errors.New("killed")
					}
					return nil
				})
				go func() {
					_, _ = w.m.DecidePermission(context.Background(), PermissionDecision{Token: button, Verdict: sessions.VerdictAllow, Actor: authz.Actor{User: ann, Team: "T1"}})
				}()
				w.wait()
				w.stop()
				w.hooks.setDuring(nil)
				w.start()
				w.relayReports()
				if c.ends {
					if got := w.permissionMessage("A"); !strings.Contains(got, c.want) || w.permissionButton("A") != "" {
						t.Errorf("the thread shows %q", got)
					}
					return
				}
				if w.permissionButton("A") != button {
					t.Fatalf("it cannot be decided any more: %q", w.permissionMessage("A"))
				}
				if got := w.decide(button, sessions.VerdictDeny, ann); !strings.Contains(got, "Denied by") {
					t.Errorf("the answer: %q", got)
				}
			})
		})
	}
}

func TestAnAnswerInDoubtIsSaidToBe(t *testing.T) {
	withHooks(t, func(w *env) {
		button := w.requestPermission("A")
		w.hooks.setDuring(func(*managerRun, string) error { w.hooks.setAnswered(); return sessions.ErrInDoubt })
		if got := w.decide(button, sessions.VerdictAllow, ann); !strings.Contains(got, "I cannot tell whether the agent heard it: Allowed") {
			t.Errorf("the answer: %q", got)
		}
		w.advance(5 * time.Second)
		if got := w.permissionMessage("A"); !strings.Contains(got, "cannot tell") || w.permissionButton("A") != "" {
			t.Errorf("the thread shows %q", got)
		}
		w.hooks.setAnswered(sessions.AnsweredPermission{Token: "A", Allow: true})
		w.relayReports() // the hook's report is proof
		if got := w.permissionMessage("A"); !strings.Contains(got, "Allowed by <@U1>") || strings.Contains(got, "cannot tell") {
			t.Errorf("the thread shows %q", got)
		}
	})
}

func TestAnAgentThatCannotBeReachedCanBeAnsweredLater(t *testing.T) {
	withHooks(t, func(w *env) {
		button := w.requestPermission("A")
		w.hooks.setDuring(func(*managerRun, string) error { w.hooks.setAnswered(); return errors.New("no such luck") })
		if got := w.decide(button, sessions.VerdictAllow, ann); !strings.Contains(got, "nothing was decided") {
			t.Errorf("the answer: %q", got)
		}
		w.hooks.setDuring(nil)
		if got := w.decide(button, sessions.VerdictAllow, ann); !strings.Contains(got, "Allowed by") {
			t.Errorf("the next answer: %q", got)
		}
	})
}

func TestWhatWasOverBeforeItWasReadIsNotAsked(t *testing.T) {
	withHooks(t, func(w *env) {
		w.hooks.request("A", time.Now())
		w.hooks.end("A")
		w.requestPermission("B")
		if got := w.permissionMessage("A"); got != "" {
			t.Errorf("the thread shows %q", got)
		}
		w.wantPosts("do B")
	})
}

// keptPermissions is how many requests that ended are remembered.
const keptPermissions = 50

func TestOldQuestionsAreForgotten(t *testing.T) {
	withHooks(t, func(w *env) {
		for i := range keptPermissions + 10 {
			token := fmt.Sprintf("T%03d.", i)
			w.requestPermission(token)
			w.hooks.end(token)
			w.advance(5 * time.Second)
		}
		b, ok := w.m.index.of(sid).Snapshot(context.Background())
		if !ok || len(b.PermissionRequests) != keptPermissions {
			t.Errorf("%d questions are kept", len(b.PermissionRequests))
		}
		for _, a := range b.PermissionRequests {
			if a.Text != "" {
				t.Errorf("the text of a question that is over is kept: %+v", a)
			}
		}
	})
}

func TestALongWaitIsSaidOnceForAll(t *testing.T) {
	withHooks(t, func(w *env) {
		w.reply("hello")
		w.requestPermission("A")
		w.advance(30 * time.Second)
		w.requestPermission("B") // it is the same wait
		w.advance(15 * time.Second)
		w.wantPosts("do A", "do B")
		w.advance(10 * time.Second)
		w.wantPosts("do A", "do B", "<@U1> The agent waits for an answer")
		w.hooks.end("A")
		w.advance(10 * time.Minute)
		w.wantPosts("do A", "do B", "<@U1> The agent waits for an answer")
		w.hooks.end("B")
		w.advance(time.Minute)
		w.requestPermission("C")
		w.advance(2 * time.Minute)
		w.wantPosts("do A", "do B", "<@U1> The agent waits for an answer", "do C", "<@U1> The agent waits for an answer")
	})
}
