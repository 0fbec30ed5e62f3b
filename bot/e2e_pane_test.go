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
	w := newEnv(t)
	a := w.startSession("helper")
	for _, mode := range []string{"copy-mode", "clock-mode"} {
		w.runTmux(mode, "-t", a.pane().ID)
		a.replyAccepted("in spite of the " + mode)
	}
	a.wantPaneInput("in spite of the copy-mode", "in spite of the clock-mode")
}

// On tmux 3.3a a paste into a dead pane takes the server down, and every session in it.
func TestADeadPaneRefusesAndOtherSessionsGoOn(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a, other := w.startSession("helper"), w.startSession("other")
	server := w.tmuxServerPID()
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.waitUntil("the pane to be dead", func() bool { return a.pane().Dead })
	for range 3 {
		a.waitReceipt(a.reply("are you there?"), receiptFailed)
	}
	a.waitBotMessage("Not delivered", "has ended", "the-loop standing start helper")
	other.replyAccepted("and you?")
	other.wantPaneInput("and you?")
	if got := w.tmuxServerPID(); got != server {
		t.Errorf("the tmux server was %d and is %d", server, got)
	}
	a.wantPaneInput()
	w.restartSession(a)
	a.replyAccepted("welcome back")
}

// restartSession has the session start again, which resumes its conversation.
func (w *env) restartSession(a *testSession) {
	w.t.Helper()
	if _, err := w.core.Start(w.ctx, sessions.StartRequest{Ref: a.ref}); err != nil {
		w.t.Fatal(err)
	}
	w.reconcileNow()
	a.waitState(smallagent.StateReady)
}

func (w *env) stopSession(a *testSession) {
	w.t.Helper()
	if _, err := w.core.Stop(w.ctx, sessions.StopRequest{Ref: a.ref}); err != nil {
		w.t.Fatal(err)
	}
	w.reconcileNow()
}

func TestAStoppedSessionRefusesNamesTheRemedyAndIsNotStarted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	w.stopSession(a)
	w.waitUntil("the announcement to say so", func() bool {
		m, _ := w.Message(w.ch, a.root)
		return containsAll(m.Text, "is stopped", "the-loop standing start helper")
	})
	a.waitReceipt(a.reply("hello?"), receiptFailed)
	a.waitBotMessage("Not delivered", "standing:helper is not running", "the-loop standing start helper")
	w.restartSession(a)
	a.replyAccepted("now you hear me")
	a.wantReceived("now you hear me")
	if panes, err := w.tmux.Panes(w.ctx); err != nil || len(panes) != 1 {
		t.Errorf("panes %v, %v", panes, err)
	}
}

func TestAForeignPaneGetsNothing(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string][]string{"the mark is gone": {"-u", "@the-loop-id"}, "another mark": {"@the-loop-id", "somebody-else"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			a := w.startSession("helper")
			w.runTmux(append([]string{"set-option", "-p", "-t", a.pane().ID}, mark...)...)
			a.waitReceipt(a.reply("is this you?"), receiptFailed)
			a.waitBotMessage("Not delivered", "standing:helper is not running")
			a.wantPaneInput()
		})
	}
}

// imbue-ai/mngr#1145, andyrewlee/amux#156: a name that begins with another's leads to the other's pane.
func TestANameThatIsAPrefixOfAnotherReachesItsOwnPane(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	short, long := w.startSession("ab"), w.startSession("abc")
	short.replyAccepted("for the short one")
	w.stopSession(short)
	short.waitReceipt(short.reply("and now?"), receiptFailed)
	short.waitBotMessage("standing:ab is not running")
	long.replyAccepted("for the long one")
	short.wantReceived("for the short one")
	long.wantPaneInput("for the long one")
}

func TestASplitByTheOperatorGetsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	log := filepath.Join(w.botConfig.TmuxDir, "split")
	split := w.runTmux("split-window", "-t", a.pane().ID, "-P", "-F", "#{pane_id}", os.Args[0], roleBytes, log)
	w.waitUntil("the program in the split", func() bool { return containsAll(w.runTmux("capture-pane", "-p", "-t", split), "ready") })
	w.runTmux("select-pane", "-t", split)
	a.replyAccepted("for the agent")
	a.wantPaneInput("for the agent")
	w.runTmux("kill-pane", "-t", a.pane().ID)
	a.waitReceipt(a.reply("and now?"), receiptFailed)
	a.waitBotMessage("standing:helper is not running")
	if got, err := os.ReadFile(log); err != nil || len(got) > 0 {
		t.Errorf("the split got %q, %v", got, err)
	}
}

// A session made again under a name inherits neither the thread nor the pane nor what was held.
func TestASessionMadeAgainUnderTheSameNameInheritsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	old := w.startSession("helper")
	old.startDialog()
	heldTS := old.reply("for the old one")
	old.waitReceipt(heldTS, receiptHeld)
	w.stopSession(old)
	if err := registry.New(w.botConfig.Root).Remove(w.ctx, old.ref); err != nil {
		t.Fatal(err)
	}
	a := w.startDefined(w.definition("helper"))
	if _, err := w.core.Submit(w.ctx, sessions.SubmitRequest{Ref: old.ref, ID: old.id, Text: "late"}); !errors.Is(err, sessions.ErrReplaced) {
		t.Errorf("Say for the old session: %v; want ErrReplaced", err)
	}
	a.waitAnnounced()
	a.waitReady()
	if a.root == old.root || a.id == old.id {
		t.Fatal("the new session has the old one's thread or id")
	}
	old.waitBotMessage("This session was deleted")
	w.waitDropped(old.reply("hello?"), threads.ReasonUnmapped)
	a.replyAccepted("hello, you")
	a.wantPaneInput("hello, you")
	old.wantReceived("ask: deploy")
}

// suspendTmux stops the tmux server, and returns what has it go on.
func (w *env) suspendTmux() (resume func()) {
	w.t.Helper()
	pid := w.tmuxServerPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) } // a server that goes on already takes no notice
	w.t.Cleanup(resume)
	return resume
}

func withShortTmuxTimeout(s *envOptions) {
	s.config = func(p *botConfig) { p.TmuxTimeout = time.Second }
}

func TestATmuxThatDoesNotAnswerHoldsTheReplyAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withShortTmuxTimeout)
	a := w.startSession("helper")
	resume := w.suspendTmux()
	first, second := a.reply("can you hear me?"), a.reply("or me?")
	a.waitReceipt(first, receiptHeld)
	a.waitBotMessage("tmux does not answer")
	resume()
	a.waitReceipt(first, receiptAccepted)
	a.waitReceipt(second, receiptAccepted)
	a.wantPaneInput("can you hear me?", "or me?")
	if n := a.countBotMessages("tmux does not answer"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A harness without a screen has nothing looked at before the paste: the paste itself meets the silence.
func TestATmuxThatDoesNotAnswerThePasteGetsItOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withShortTmuxTimeout)
	a := w.startTemplateSession("tool", 0)
	resume := w.suspendTmux()
	ts := a.reply("can you hear me?")
	a.waitReceipt(ts, receiptHeld)
	resume()
	a.waitReceipt(ts, receiptTyped)
	a.waitReceipt(a.reply("the end"), receiptTyped)
	w.waitUntil("both", func() bool { return len(a.receivedTexts()) >= 2 })
	a.wantPaneInput("can you hear me?", "the end")
}

// openclaw/openclaw#82310, #77651: one slow session holds all others up.
func TestASlowSessionDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	asks, stuck, quick := w.startSession("asks"), w.startSession("stuck", "--lose-enters", "2"), w.startSession("quick")
	asks.startDialog()
	first, second := asks.reply("wait"), stuck.reply("wait too")
	asks.waitReceipt(first, receiptHeld)
	w.waitUntil("the reply to be on its way", func() bool { return stuck.storedReply(second).State == binding.StateInflight })
	for range 3 {
		quick.replyAccepted("go on")
	}
	if s := stuck.storedReply(second).State; s != binding.StateInflight {
		t.Errorf("the slow one is %q by now: this shows nothing", s)
	}
	stuck.waitReceipt(second, receiptAccepted)
	asks.denyInTerminal()
	asks.waitReceipt(first, receiptAccepted)
	stuck.wantReceived("wait too")
}

// tmux/tmux#4640: a cleaner removes the socket from /tmp.
func TestARemovedTmuxSocketIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	if err := os.Remove(tmuxtest.Socket(w.botConfig.TmuxDir)); err != nil {
		t.Fatal(err)
	}
	a.replyAccepted("still there?")
	a.wantPaneInput("still there?")
}
