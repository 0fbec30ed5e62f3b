package bot_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux/tmuxtest"
	"the-loop/threads"
	"the-loop/threads/binding"
)

// awslabs/cli-agent-orchestrator#654: copy-mode eats the submit.
func TestAPaneInCopyModeGetsTheReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	for _, mode := range []string{"copy-mode", "clock-mode"} {
		w.tmux(mode, "-t", a.pane().ID)
		a.tells("in spite of the " + mode)
	}
	a.wantsBytes("in spite of the copy-mode", "in spite of the clock-mode")
}

// On tmux 3.3a a paste into a dead pane takes the server down, and every session in it.
func TestADeadPaneRefusesAndNobodyElseIsHurt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, other := w.agent("helper"), w.agent("other")
	server := w.server()
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until("the pane to be dead", func() bool { return a.pane().Dead })
	for range 3 {
		a.receipt(a.reply("are you there?"), errorText)
	}
	a.answer("Not delivered", "has ended", "the-loop standing start helper")
	other.tells("and you?")
	other.wantsBytes("and you?")
	if got := w.server(); got != server {
		t.Errorf("the tmux server was %d and is %d", server, got)
	}
	a.wantsBytes()
	w.restart(a)
	a.tells("welcome back")
}

// restart has the session start again, which resumes its conversation.
func (w *world) restart(a *agent) {
	w.t.Helper()
	if _, err := w.core.Start(w.ctx, sessions.StartRequest{Ref: a.ref}); err != nil {
		w.t.Fatal(err)
	}
	w.reconcile()
	a.until(smallagent.StateReady)
}

func (w *world) halt(a *agent) {
	w.t.Helper()
	if _, err := w.core.Stop(w.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
		w.t.Fatal(err)
	}
	w.reconcile()
}

func TestAStoppedSessionRefusesNamesTheRemedyAndIsNotStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	w.halt(a)
	w.until("the announcement to say so", func() bool {
		m, _ := w.Message(w.ch, a.root)
		return contains(m.Text, "is stopped", "the-loop standing start helper")
	})
	a.receipt(a.reply("hello?"), errorText)
	a.answer("Not delivered", "standing:helper is not running", "the-loop standing start helper")
	w.restart(a)
	a.tells("now you hear me")
	a.wants("now you hear me")
	if panes, err := w.tm.Panes(w.ctx); err != nil || len(panes) != 1 {
		t.Errorf("panes %v, %v", panes, err)
	}
}

func TestAPaneThatIsNotOursGetsNothing(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string][]string{"the mark is gone": {"-u", "@the-loop-id"}, "another mark": {"@the-loop-id", "somebody-else"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.agent("helper")
			w.tmux(append([]string{"set-option", "-p", "-t", a.pane().ID}, mark...)...)
			a.receipt(a.reply("is this you?"), errorText)
			a.answer("Not delivered", "standing:helper is not running")
			a.wantsBytes()
		})
	}
}

// imbue-ai/mngr#1145, andyrewlee/amux#156: a name that begins with another's leads to the other's pane.
func TestANameThatBeginsAnothersLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short, long := w.agent("ab"), w.agent("abc")
	short.tells("for the short one")
	w.halt(short)
	short.receipt(short.reply("and now?"), errorText)
	short.answer("standing:ab is not running")
	long.tells("for the long one")
	short.wants("for the short one")
	long.wantsBytes("for the long one")
}

func TestASplitByTheOperatorGetsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	log := filepath.Join(w.plan.TmuxDir, "split")
	split := w.tmux("split-window", "-t", a.pane().ID, "-P", "-F", "#{pane_id}", os.Args[0], roleBytes, log)
	w.until("the program in the split", func() bool { return contains(w.tmux("capture-pane", "-p", "-t", split), "ready") })
	w.tmux("select-pane", "-t", split)
	a.tells("for the agent")
	a.wantsBytes("for the agent")
	w.tmux("kill-pane", "-t", a.pane().ID)
	a.receipt(a.reply("and now?"), errorText)
	a.answer("standing:helper is not running")
	if got, err := os.ReadFile(log); err != nil || len(got) > 0 {
		t.Errorf("the split got %q, %v", got, err)
	}
}

// A session made again under a name inherits neither the thread nor the pane nor what was held.
func TestASessionMadeAgainUnderTheSameNameInheritsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.agent("helper")
	old.asking()
	heldTS := old.reply("for the old one")
	old.receipt(heldTS, held)
	w.halt(old)
	if err := registry.New(w.plan.Root).Remove(w.ctx, old.ref); err != nil {
		t.Fatal(err)
	}
	a := w.launch(w.definition("helper"))
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: old.ref, ID: old.id, Text: "late"}); !errors.Is(err, sessions.ErrReplaced) {
		t.Errorf("Say for the old session: %v; want ErrReplaced", err)
	}
	a.announced()
	a.ready()
	if a.root == old.root || a.id == old.id {
		t.Fatal("the new session has the old one's thread or id")
	}
	old.answer("This session was deleted")
	w.dropped(old.reply("hello?"), threads.ReasonUnmapped)
	a.tells("hello, you")
	a.wantsBytes("hello, you")
	old.wants("ask: deploy")
}

// silence stops the tmux server, and returns what has it go on.
func (w *world) silence() (resume func()) {
	w.t.Helper()
	pid := w.server()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // a server that goes on already takes no notice
	w.t.Cleanup(resume)
	return resume
}

func impatient(s *setup) { s.plan = func(p *plan) { p.TmuxTimeout = time.Second } }

func TestATmuxThatDoesNotAnswerHoldsTheReplyAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient)
	a := w.agent("helper")
	resume := w.silence()
	first, second := a.reply("can you hear me?"), a.reply("or me?")
	a.receipt(first, held)
	a.answer("tmux does not answer")
	resume()
	a.receipt(first, accepted)
	a.receipt(second, accepted)
	a.wantsBytes("can you hear me?", "or me?")
	if n := a.count("tmux does not answer"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A harness without a screen has nothing looked at before the paste: the paste itself meets the silence.
func TestATmuxThatDoesNotAnswerThePasteGetsItOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient)
	a := w.templated("tool", 0)
	resume := w.silence()
	ts := a.reply("can you hear me?")
	a.receipt(ts, held)
	resume()
	a.receipt(ts, typed)
	a.receipt(a.reply("the end"), typed)
	w.until("both", func() bool { return len(a.got()) >= 2 })
	a.wantsBytes("can you hear me?", "the end")
}

// openclaw/openclaw#82310, #77651: one slow session holds all others up.
func TestASlowSessionDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asks, stuck, quick := w.agent("asks"), w.agent("stuck", "--lose-enters", "2"), w.agent("quick")
	asks.asking()
	first, second := asks.reply("wait"), stuck.reply("wait too")
	asks.receipt(first, held)
	w.until("the reply to be on its way", func() bool { return stuck.state(second).State == binding.StateInflight })
	for range 3 {
		quick.tells("go on")
	}
	if s := stuck.state(second).State; s != binding.StateInflight {
		t.Errorf("the slow one is %q by now: this shows nothing", s)
	}
	stuck.receipt(second, accepted)
	asks.deny()
	asks.receipt(first, accepted)
	stuck.wants("wait too")
}

// tmux/tmux#4640: a cleaner removes the socket from /tmp.
func TestASocketThatACleanerRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("helper")
	if err := os.Remove(tmuxtest.Socket(w.plan.TmuxDir)); err != nil {
		t.Fatal(err)
	}
	a.tells("still there?")
	a.wantsBytes("still there?")
}
