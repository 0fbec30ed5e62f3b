package tmux_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

func TestTextArrivesFramedWholeAndSubmittedOnce(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	want := ""
	for _, text := range []string{"hello", "two\nlines\n\tand a tab", "👩‍👩‍👧‍👦 日本語 é", "$HOME `x` \"q\" 'q' \\ #{pid} ; ~ !", ";", "-x", "end;",
		strings.Repeat("40 kB, ", 40_000/7), strings.Repeat("400 kB!\n", 50_000) + "."} {
		if err := f.deliver(pane, text); err != nil {
			t.Fatal(err)
		}
		want += framedText(text)
		f.awaitLog("a", want)
	}
	f.assertNoBuffers()
}

// assertNoBuffers fails unless every buffer of ours is gone.
func (f *tmuxEnv) assertNoBuffers() {
	f.t.Helper()
	if left := f.tmux("list-buffers", "-F", "#{buffer_name}"); left != "" {
		f.t.Errorf("buffers are left: %s", left)
	}
}

func TestAProgramWithoutBracketedPasteGetsPlainTextWithItsLineFeeds(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	if err := f.deliver(f.spawn("a", "-plain"), "a\nb"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", "a\nb\r")
}

func TestDelayedSubmitIsKeptByTheServer(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	d := sessions.Paste{Target: pane.Target(), Text: "x", Submit: "\r", Delay: 300 * time.Millisecond}
	begin := time.Now()
	if err := f.Paste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", "\x1b[200~x\x1b[201~")
	f.awaitLog("a", framedText("x"))
	if took := time.Since(begin); took < d.Delay {
		t.Errorf("submitted after %s", took)
	}
	f.assertNoBuffers()
}

func TestDelayedSubmitChecksTheMarkAgain(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	a, b := f.spawn("a"), f.spawn("b")
	d := sessions.Paste{Target: a.Target(), Text: "x", Submit: "\r", Delay: 200 * time.Millisecond}
	if err := f.Paste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.tmux("set-option", "-p", "-t", a.ID, "@the-loop-id", "another")
	d.Target = b.Target()
	if err := f.Paste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("b", framedText("x"))
	f.awaitLog("a", "\x1b[200~x\x1b[201~")
	f.assertNoBuffers()
	f.tmux("set-option", "-p", "-t", a.ID, "@the-loop-id", a.Mark)
}

// run-shell -C expands formats at once, for the current pane: the guard must not be among them.
func TestDelayedSubmitsGoToPanesThatAreNotTheCurrentOne(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	var panes []sessions.Pane
	for i := range 3 {
		panes = append(panes, f.spawn(fmt.Sprint("p", i)))
	}
	for _, pane := range panes {
		d := sessions.Paste{Target: pane.Target(), Text: pane.SessionName, Submit: "\r", Delay: 50 * time.Millisecond}
		if err := f.Paste(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	for _, pane := range panes {
		f.awaitLog(pane.SessionName, framedText(pane.SessionName))
	}
}

// awslabs/cli-agent-orchestrator#654: copy-mode eats the submit.
func TestEveryModeIsLeftBeforeThePaste(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	want := ""
	for _, mode := range []string{"copy-mode", "clock-mode", "choose-tree"} {
		f.tmux(mode, "-t", pane.ID)
		if s, err := f.Capture(t.Context(), pane.Target()); err != nil || !s.InMode || !strings.Contains(s.Text, "ready") {
			t.Fatalf("%s: %+v, %v", mode, s, err)
		}
		if err := f.deliver(pane, "in\n"+mode); err != nil {
			t.Fatal(err)
		}
		want += framedText("in\n" + mode)
		f.awaitLog("a", want)
	}
	f.tmux("copy-mode", "-t", pane.ID)
	if err := f.Press(t.Context(), pane.Target(), "\x1b"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", want+"\x1b")
}

func TestDelayedSubmitLeavesAModeEnteredMeanwhile(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	d := sessions.Paste{Target: pane.Target(), Text: "x", Submit: "\r", Delay: 200 * time.Millisecond}
	if err := f.Paste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.tmux("copy-mode", "-t", pane.ID)
	f.awaitLog("a", framedText("x"))
}

// tmux/tmux#3830: an unguarded paste into a dead pane ends the server.
func TestADeadPaneIsRefusedAndTheServerLives(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	live, dead := f.spawn("live"), f.spawn("dead")
	if err := syscall.Kill(f.pid("dead", "main"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Await(t, "the pane's death", func() bool { return tmuxtest.FindPane(t, f.Tmux, dead.Mark).Dead })
	if p := tmuxtest.FindPane(t, f.Tmux, dead.Mark); p.ExitStatus != -1 || p.ExitSignal == "" {
		t.Errorf("killed, it shows %+v", p)
	}
	for _, try := range []func() error{
		func() error { return f.deliver(dead, "x") },
		func() error { return f.Press(t.Context(), dead.Target(), "\r") },
		func() error { return f.Press(t.Context(), sessions.Target{Mark: dead.Mark}, "\r") },
	} {
		if err := try(); !errors.Is(err, sessions.ErrPaneDead) || errors.Is(err, sessions.ErrInDoubt) {
			t.Errorf("to a dead pane: %v", err)
		}
	}
	if err := f.deliver(live, "still here"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("live", framedText("still here"))
	f.assertNoBuffers()
}

func TestADelayedSubmitToAPaneThatDiesSparesTheServer(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	live, dying := f.spawn("live"), f.spawn("dying")
	d := sessions.Paste{Target: dying.Target(), Text: "x", Submit: "\r", Delay: 300 * time.Millisecond}
	if err := f.Paste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(f.pid("dying", "main"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.Target = live.Target()
	if err := f.Paste(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("live", framedText("x"))
	f.assertNoBuffers()
}

// imbue-ai/mngr#1145: a name that begins another one reaches the wrong session.
func TestNamesThatBeginAnotherAreTheirOwn(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	f.spawn("abc")
	if err := f.Press(t.Context(), sessions.Target{Mark: "id-a"}, "x"); !errors.Is(err, sessions.ErrPaneGone) {
		t.Errorf("a session that is not there: %v", err)
	}
	ab := f.spawn("ab")
	if err := f.deliver(ab, "for ab"); err != nil {
		t.Fatal(err)
	}
	if err := f.End(t.Context(), sessions.Target{Mark: "id-a"}, 0); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("ab", framedText("for ab"))
	f.awaitLog("abc", "")
}

func TestAnotherSessionsPaneAndAStalePaneAreResolvedByTheMark(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	a, b := f.spawn("a"), f.spawn("b")
	for i, pane := range []string{b.ID, "%999", "", "nonsense"} {
		text := fmt.Sprint("text ", i)
		if err := f.Paste(t.Context(), sessions.Paste{Target: sessions.Target{Pane: pane, Mark: a.Mark}, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	want := ""
	for i := range 4 {
		want += fmt.Sprintf("\x1b[200~text %d\x1b[201~", i)
	}
	f.awaitLog("a", want)
	f.awaitLog("b", "")
	f.assertNoBuffers()
}

func TestASplitByTheOperatorGetsNothing(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	split := f.tmux("split-window", "-P", "-F", "#{pane_id}", "-t", pane.ID, "cat")
	if err := f.Press(t.Context(), sessions.Target{Pane: split, Mark: pane.Mark}, "k"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", "k")
	if shows := f.tmux("capture-pane", "-p", "-t", split); strings.TrimSpace(shows) != "" {
		t.Errorf("the split shows %q", shows)
	}
}

func TestASessionMadeAgainUnderItsNameIsAnother(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	old := f.spawn("a")
	if err := f.End(t.Context(), old.Target(), time.Second); err != nil {
		t.Fatal(err)
	}
	again := f.spawnRequest("a")
	again.Mark = "id-new"
	fresh, err := f.Spawn(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Paste(t.Context(), sessions.Paste{Target: sessions.Target{Pane: fresh.ID, Mark: old.Mark}, Text: "x"}); !errors.Is(err, sessions.ErrPaneGone) {
		t.Errorf("the old session's text: %v", err)
	}
}

func TestSynchronizedPanesDoNotShareASubmit(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	split := f.tmux("split-window", "-P", "-F", "#{pane_id}", "-t", pane.ID, "cat -v")
	f.tmux("set-option", "-w", "-t", pane.ID, "synchronize-panes", "on")
	if err := f.deliver(pane, "x"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", framedText("x"))
	if shows := f.tmux("capture-pane", "-p", "-t", split); strings.TrimSpace(shows) != "" {
		t.Errorf("the split shows %q", shows)
	}
}

func TestSwitchedOffInputIsReported(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	f.tmux("select-pane", "-d", "-t", pane.ID)
	if err := f.deliver(pane, "x"); !errors.Is(err, tmux.ErrInputOff) || errors.Is(err, sessions.ErrInDoubt) {
		t.Errorf("%v", err)
	}
	if err := f.Press(t.Context(), sessions.Target{Mark: pane.Mark}, "x"); !errors.Is(err, tmux.ErrInputOff) {
		t.Errorf("resolved by the mark: %v", err)
	}
	f.tmux("select-pane", "-e", "-t", pane.ID)
	if err := f.deliver(pane, "y"); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("a", framedText("y"))
}

// eneskirca/nodeterm#198: an escape in the text leaves the paste frame and runs.
func TestTextThatCouldLeaveThePasteIsRefused(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	for _, text := range []string{"\x1b[201~rm", "a\rb", "a\x00", "\x7f", "\u009b201~", "\x9b201~"} {
		if err := f.deliver(pane, text); !errors.Is(err, tmux.ErrInvalidText) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := f.deliver(pane, ""); !errors.Is(err, sessions.ErrEmptyText) {
		t.Errorf("no text: %v", err)
	}
	f.awaitLog("a", "")
}

func TestKeysArriveAsTheirBytes(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	pane := f.spawn("a")
	want := ""
	for _, keys := range []string{"\r", "\x1b", "\x18\x19", "\x1b[A", "\x00", ";", "-", "\xff", "a\n"} {
		if err := f.Press(t.Context(), pane.Target(), keys); err != nil {
			t.Fatalf("%q: %v", keys, err)
		}
		want += keys
		f.awaitLog("a", want)
	}
	for _, submit := range []string{"\x1b\r", ";", "-x", "\n", "\""} {
		if err := f.Paste(t.Context(), sessions.Paste{Target: pane.Target(), Text: "x", Submit: submit}); err != nil {
			t.Fatalf("%q: %v", submit, err)
		}
		want += "\x1b[200~x\x1b[201~" + submit
		f.awaitLog("a", want)
	}
	f.assertNoBuffers()
}

func TestFiftyDeliveriesAtOnceDoNotCross(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	var panes []sessions.Pane
	for i := range 10 {
		panes = append(panes, f.spawn(fmt.Sprint("p", i)))
	}
	text := func(pane, n int) string { return strings.Repeat(fmt.Sprintf("<%d.%d>", pane, n), 1000) }
	var wg sync.WaitGroup
	for n := range 5 {
		for i, pane := range panes {
			wg.Go(func() {
				if err := f.deliver(pane, text(i, n)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for i := range panes {
		name := fmt.Sprint("p", i)
		log := tmuxtest.AwaitFile(t, f.dir+"/"+name+"/log", func(s string) bool { return strings.Count(s, "\r") == 5 })
		for n := range 5 {
			if strings.Count(log, framedText(text(i, n))) != 1 {
				t.Errorf("%s did not get text %d once and whole", name, n)
			}
		}
		if len(log) != 5*len(framedText(text(i, 0))) {
			t.Errorf("%s got %d bytes", name, len(log))
		}
	}
	f.assertNoBuffers()
}

func TestPasteToAProgramThatDoesNotReadIsNotConfirmed(t *testing.T) {
	t.Parallel()
	f := newEnv(t)
	r := f.spawnRequest("a", "-sleep")
	pane, err := f.Spawn(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.deliver(pane, strings.Repeat("x", 50<<20)); err != nil {
		t.Fatal(err)
	}
	if p := tmuxtest.FindPane(t, f.Tmux, pane.Mark); p.Dead {
		t.Error("the pane died of it")
	}
}
