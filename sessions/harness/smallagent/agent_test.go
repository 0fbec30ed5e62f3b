package smallagent

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func TestTypedTextIsRecordedAndAnswered(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("hello, 世界 👋")
	l.waitScreen("the draft", boxHolds("hello, 世界 👋"))
	if got := l.entriesOf(TypeUser); got != nil {
		t.Fatalf("a draft was recorded: %+v", got)
	}
	l.send("\r")
	if e := l.waitEntry(1, TypeUser); e.Text != "hello, 世界 👋" || e.How != HowTyped {
		t.Errorf("recorded %+v", e)
	}
	if e := l.waitEntry(1, TypeAgent); e.Turn != 1 || e.Text != "Turn 1. You said (11 characters, 1 line): hello, 世界 👋" {
		t.Errorf("answered %+v", e)
	}
	l.waitText("agent  Turn 1. You said (11 characters, 1 line): hello, 世界 👋")
	s := l.waitScreen("an empty box", boxHolds(""))
	if s.ID != "c1" {
		t.Errorf("the status line says %q", s.ID)
	}
}

func TestPasteGoesIntoTheBoxAndNeverSubmits(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.paste("one\r\ntwo\rthree\n\x1b[31m\x03\x04four")
	l.waitScreen("the paste", boxHolds("[Pasted text #1 +3 lines]"))
	l.paste("short")
	l.waitScreen("both", boxHolds("[Pasted text #1 +3 lines]short"))
	l.send("!\r")
	want := "one\ntwo\nthree\n\x1b[31m\x03\x04fourshort!"
	if e := l.waitEntry(1, TypeUser); e.Text != want || e.How != HowPaste {
		t.Errorf("recorded %+v", e)
	}
}

func TestLongPasteCutAnywhereArrivesWhole(t *testing.T) {
	t.Parallel()
	for _, size := range []int{40_000, 400_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			l := start(t)
			l.waitState(StateReady)
			text := strings.Repeat("naïve 日本語 👩‍👩‍👧 line\n", size/34+1)
			stream := "\x1b[200~" + text + "\x1b[201~\r"
			for cut := 0; stream != ""; stream = stream[cut:] {
				cut = min(len(stream), 1+rand.IntN(3000))
				l.send(stream[:cut])
			}
			if e := l.waitEntry(1, TypeUser); e.Text != text {
				t.Errorf("%d bytes recorded, want %d", len(e.Text), len(text))
			}
		})
	}
}

func TestLongTextWithoutBracketsArrivesWhole(t *testing.T) {
	t.Parallel()
	l := start(t, "--no-bracketed-paste")
	l.waitState(StateReady)
	if l.display.mode("?2004") {
		t.Error("it asked for bracketed paste")
	}
	text := strings.Repeat("é日 ", 10_000)
	l.send(text + "\r")
	if e := l.waitEntry(1, TypeUser); e.Text != text || e.How != HowTyped {
		t.Errorf("%d bytes recorded, want %d", len(e.Text), len(text))
	}
}

func TestWithoutBracketsEveryCRSubmits(t *testing.T) {
	t.Parallel()
	l := start(t, "--no-bracketed-paste")
	l.waitState(StateReady)
	l.send("one\rtwo\r")
	l.waitEntry(2, TypeUser)
}

func TestLineFeedIsANewLineInTheBox(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("one\ntwo")
	l.waitScreen("two rows", boxHolds("one\ntwo"))
	l.send("\r")
	if e := l.waitEntry(1, TypeUser); e.Text != "one\ntwo" {
		t.Errorf("recorded %+v", e)
	}
}

func TestEnterOnAnEmptyBoxDoesNothing(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("\r \r\x15x\r")
	if e := l.waitEntry(1, TypeUser); e.Text != "x" {
		t.Errorf("recorded %+v", e)
	}
}

func TestADraftIsPutAsideUntilTheNextSubmit(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("my draft\x13")
	l.waitScreen("an empty box", boxHolds(""))
	l.paste("theirs")
	l.send("\r")
	if e := l.waitEntry(1, TypeUser); e.Text != "theirs" {
		t.Errorf("recorded %+v", e)
	}
	l.waitScreen("the draft", boxHolds("my draft"))
}

func TestItsUserEndsIt(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{
		"C-c twice": "draft\x03\x03", "C-d": "\x04", "exit": "exit\r", "quit": " quit \r",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t)
			l.waitState(StateReady)
			l.send(keys)
			if got := l.waitExit(); got != StatusOK {
				t.Errorf("exit status %d", got)
			}
			if e := l.waitEntry(1, TypeEnd); e.Status != StatusOK {
				t.Errorf("recorded %+v", e)
			}
			if got := l.entriesOf(TypeUser); got != nil {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

func TestCtrlCNeedsTwoInARowAndCtrlDAnEmptyBox(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("draft\x04")
	l.waitScreen("the draft", boxHolds("draft"))
	l.send("\x03")
	l.waitText("C-c again ends the agent")
	l.send("still here\x03x\r")
	if e := l.waitEntry(1, TypeUser); e.Text != "x" {
		t.Errorf("recorded %+v", e)
	}
}

func termios(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *mode
}

func TestTheTerminalIsRestored(t *testing.T) {
	t.Parallel()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	before := termios(t, slave)
	_, _ = master.Close(), slave.Close()
	for name, end := range map[string]func(*agentProcess){
		"exit": func(l *agentProcess) { l.send("exit\r") },
		"TERM": func(l *agentProcess) { _ = l.cmd.Process.Signal(unix.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := agentCommand(t, "--dir", t.TempDir())
			master, slave, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer master.Close()
			defer slave.Close()
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			l := &agentProcess{t: t, cmd: cmd, tty: master, display: newDisplay(), exited: make(chan struct{})}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go func() { _ = cmd.Wait(); close(l.exited) }()
			readDone := make(chan struct{})
			go func() { l.display.readFrom(master); close(readDone) }()
			defer func() { _ = cmd.Process.Kill(); <-l.exited; slave.Close(); <-readDone }()
			l.waitState(StateReady)
			if during := termios(t, slave); during == before || !l.display.mode("?2004") || !l.display.mode("?1049") {
				t.Error("not in raw mode, with brackets, on a screen of its own")
			}
			end(l)
			l.waitExit()
			if after := termios(t, slave); after != before {
				t.Errorf("terminal modes were %+v, are %+v", before, after)
			}
			eventually(t, l.display.changed, func() bool {
				return !l.display.mode("?2004") && !l.display.mode("?1049") && l.display.mode("?25") && l.display.mode("?7")
			}, func() string { return "modes left on" })
		})
	}
}

func TestEscapeInterruptsATurn(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("slow: 1h\r")
	l.waitState(StateWorking)
	l.send("queued\r")
	l.waitText("1 message waiting")
	l.waitEntry(2, TypeUser)
	if got := l.entriesOf(TypeAgent); got != nil {
		t.Fatalf("answered %+v", got)
	}
	l.send("\x1b")
	l.waitEntry(1, TypeInterrupt)
	if e := l.waitEntry(1, TypeAgent); !strings.HasSuffix(e.Text, "queued") {
		t.Errorf("answered %+v", e)
	}
	l.waitText("agent  interrupted")
}

func TestATurnTakesItsTimeAndWhatIsSubmittedMeanwhileIsRecordedAtOnce(t *testing.T) {
	t.Parallel()
	l := start(t, "first", "prompt")
	if got := l.waitExit(); got != StatusUsage {
		t.Fatalf("two prompts: exit status %d", got)
	}
	l = start(t, "--reply-delay", "1h", "first prompt")
	l.waitState(StateWorking)
	if e := l.waitEntry(1, TypeUser); e.Text != "first prompt" || e.How != HowPrompt {
		t.Errorf("recorded %+v", e)
	}
	l.paste("second")
	l.send("\r!ls\r/help\r")
	if e := l.waitEntry(2, TypeUser); e.Text != "second" {
		t.Errorf("recorded %+v", e)
	}
	l.waitEntry(1, TypeCommand)
	if got := l.entriesOf(TypeAgent); got != nil {
		t.Errorf("answered before its time: %+v", got)
	}
}

func TestADialogIsAnsweredByEnterAndDropsPastes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ keys, decision string }{
		"a paste and Enter approve": {"\x1b[200~a reply\nof two lines\x1b[201~\r", DecisionApproved},
		"text and Enter approve":    {"reply\r", DecisionApproved},
		"1":                         {"1", DecisionApproved},
		"2":                         {"2", DecisionDenied},
		"down, Enter":               {"\x1b[B\r", DecisionDenied},
		"down, up, Enter":           {"\x1bOB\x1bOA\r", DecisionApproved},
		"Escape":                    {"\x1b", DecisionDenied},
		"C-c":                       {"\x03", DecisionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t)
			l.waitState(StateReady)
			l.send("ask: rm -rf /\rdraft")
			s := l.waitScreen("the dialog", hasState(StateAsking))
			if s.Box != "" || s.Dialog[0] != "Allow rm -rf /?" || s.Dialog[1] != "❯ 1. Yes" || s.Dialog[2] != "  2. No" {
				t.Errorf("the dialog reads %+v", s)
			}
			l.send(c.keys)
			if e := l.waitEntry(1, TypeDialog); e.Decision != c.decision || e.Text != "Allow rm -rf /?" {
				t.Errorf("recorded %+v", e)
			}
			l.waitEntry(1, TypeAgent)
			l.waitScreen("an empty box", boxHolds(""))
			l.waitEntry(1, TypeUser)
		})
	}
}

func TestADraftComesBackAfterADialog(t *testing.T) {
	t.Parallel()
	l := start(t, "--reply-delay", "1h", "first")
	l.waitState(StateWorking)
	l.send("ask: this\rdraft")
	l.waitScreen("the draft", boxHolds("draft"))
	l.send("\x1b")
	l.waitState(StateAsking)
	l.paste("dropped")
	l.send("2")
	l.waitScreen("the draft", boxHolds("draft"))
}

func TestMenuDropsPastes(t *testing.T) {
	t.Parallel()
	for keys, decision := range map[string]string{"\r": DecisionChosen, "\x1b": DecisionClosed} {
		l := start(t)
		l.waitState(StateReady)
		l.send("menu\r")
		if s := l.waitScreen("the menu", hasState(StateAsking)); s.Dialog[0] != "Menu" {
			t.Errorf("the menu reads %q", s.Dialog)
		}
		l.paste("dropped")
		l.send(keys)
		if e := l.waitEntry(1, TypeDialog); e.Decision != decision {
			t.Errorf("recorded %+v", e)
		}
		l.waitScreen("an empty box", boxHolds(""))
	}
}

func TestAskWordsOpenADialog(t *testing.T) {
	t.Parallel()
	l := start(t, "--ask", "deploy", "--ask", "delete", "please delete it")
	if s := l.waitScreen("the dialog", hasState(StateAsking)); s.Dialog[0] != "Allow delete?" {
		t.Errorf("the dialog reads %q", s.Dialog)
	}
}

func TestTheChordSubmitsAndDoesNothingInADialog(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.paste("ask: it")
	l.send("\x19")
	l.send("\x18\x19")
	l.waitState(StateAsking)
	l.paste("reply")
	l.send("\x18\x192")
	if e := l.waitEntry(1, TypeDialog); e.Decision != DecisionDenied {
		t.Errorf("recorded %+v", e)
	}
}

func TestTextLandsAndEnterIsLostDuringTheStart(t *testing.T) {
	t.Parallel()
	l := start(t, "--start-delay", "1500ms")
	l.waitState(StateStarting)
	l.paste("early")
	l.send("\r")
	l.waitScreen("the text in the box when it has started", func(s Screen) bool {
		return s.State == StateReady && s.Box == "early"
	})
	if got := l.entriesOf(TypeUser); got != nil {
		t.Fatalf("recorded %+v", got)
	}
	l.send("\r")
	l.waitEntry(1, TypeUser)
}

func TestThePromptIsTakenDuringTheStart(t *testing.T) {
	t.Parallel()
	l := start(t, "--start-delay", "1h", "first")
	l.waitEntry(1, TypeUser)
	l.waitState(StateStarting)
	if got := l.entriesOf(TypeAgent); got != nil {
		t.Errorf("answered %+v", got)
	}
}

func TestAnEnterTooSoonAfterAPasteIsLost(t *testing.T) {
	t.Parallel()
	l := start(t, "--enter-gap", "400ms")
	l.waitState(StateReady)
	l.send("\x1b[200~line\nline\x1b[201~\r")
	l.waitScreen("the text in the box", boxHolds("[Pasted text #1 +1 lines]"))
	eventually(t, nil, func() bool { l.send("\r"); return len(l.entriesOf(TypeUser)) > 0 },
		func() string { return "a later Enter" })
	first := l.waitEntry(1, TypeUser)
	if gap := first.At.Sub(l.entriesOf(TypeStart)[0].At); gap < 400*time.Millisecond {
		t.Errorf("taken %v after the start", gap)
	}
}

func TestTheFirstEntersAreLost(t *testing.T) {
	t.Parallel()
	l := start(t, "--lose-enters", "2")
	l.waitState(StateReady)
	l.send("\r\rtext\r")
	l.waitScreen("the text", boxHolds("text"))
	l.send("one\r")
	l.waitScreen("the text", boxHolds("textone"))
	l.send("\r")
	if e := l.waitEntry(1, TypeUser); e.Text != "textone" {
		t.Errorf("recorded %+v", e)
	}
}

func TestShellAndCommandsAreRecordedAsSuch(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.paste("!touch /tmp/never")
	l.send("\r")
	if e := l.waitEntry(1, TypeShell); e.Text != "!touch /tmp/never" || e.How != HowPaste {
		t.Errorf("recorded %+v", e)
	}
	l.send("  /usr/bin is full\r")
	l.waitEntry(1, TypeCommand)
	l.waitText("unknown command")
	l.paste("Ann: !ls")
	l.send("\r")
	l.waitEntry(1, TypeUser)
	if got := l.entriesOf(TypeAgent); len(got) > 1 {
		t.Errorf("answered %+v", got)
	}
}

func TestClearChangesTheConversationID(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("one\r")
	l.waitEntry(1, TypeAgent)
	l.send("/clear\r")
	id := l.waitEntry(1, TypeClear).Conversation
	l.waitScreen("the new id", func(s Screen) bool { return s.ID == id && s.State == StateReady })
	l.id = id
	if e := l.waitEntry(1, TypeStart); e.How != HowClear || e.Conversation != "c1" {
		t.Errorf("recorded %+v", e)
	}
	l.send("two\r")
	if e := l.waitEntry(1, TypeAgent); e.Turn != 1 {
		t.Errorf("answered %+v", e)
	}
}

func TestResumeGoesOn(t *testing.T) {
	t.Parallel()
	l := start(t, "first")
	l.waitEntry(1, TypeAgent)
	l.send("exit\r")
	l.waitExit()
	again := startIn(t, l.dir, "--resume", "c1", "second")
	again.waitText("you    first")
	again.waitText("resumed, 1 turn so far")
	if e := again.waitEntry(2, TypeAgent); e.Turn != 2 {
		t.Errorf("answered %+v", e)
	}
	for i, e := range again.entries() {
		if e.Seq != int64(i+1) {
			t.Errorf("entry %d has number %d", i, e.Seq)
		}
	}
	if e := again.waitEntry(2, TypeStart); e.How != HowResume || e.Pid != again.cmd.Process.Pid {
		t.Errorf("recorded %+v", e)
	}
}

func TestSubmittedTextSurvivesAKill(t *testing.T) {
	t.Parallel()
	l := start(t, "--reply-delay", "1h")
	l.waitState(StateReady)
	l.paste("precious")
	l.send("\r")
	l.waitState(StateWorking)
	_ = l.cmd.Process.Kill()
	l.waitExit()
	if e := l.waitEntry(1, TypeUser); e.Text != "precious" {
		t.Errorf("recorded %+v", e)
	}
	f, err := os.OpenFile(TranscriptPath(l.dir, "c1"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"type":"user","te`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	again := startIn(t, l.dir, "--resume", "c1", "more")
	again.waitEntry(2, TypeUser)
	again.waitEntry(1, TypeAgent)
}

func TestItRefusesToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := createConversation(dir, "used")
	if err != nil {
		t.Fatal(err)
	}
	c.close()
	for _, c := range []struct {
		args    []string
		status  int
		message string
	}{
		{[]string{"--resume", "nobody"}, 1, "No conversation found with session ID: nobody"},
		{[]string{"--resume", "../used"}, 1, "No conversation found with session ID: ../used"},
		{[]string{"--session-id", "used"}, 1, "Session ID used is already in use"},
		{[]string{"--session-id", "../x"}, 2, "--session-id"},
		{[]string{"--session-id", "a", "--resume", "used"}, 2, "give one of them"},
		{[]string{"--no-such-flag"}, 2, "Usage: small-agent"},
		{[]string{"--help"}, 0, "Usage: small-agent"},
	} {
		l := startIn(t, dir, c.args...)
		if got := l.waitExit(); got != c.status {
			t.Errorf("%q: exit status %d, want %d", c.args, got, c.status)
		}
		l.waitText(c.message)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("it left %q", files)
	}
}

func TestItNeedsATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := agentCommand(t, "--dir", dir)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "must be a terminal") {
		t.Errorf("%v, %s", err, out)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("it left %v", files)
	}
}

func TestSignalsEndIt(t *testing.T) {
	t.Parallel()
	for s, status := range map[unix.Signal]int{unix.SIGTERM: 143, unix.SIGHUP: 129, unix.SIGINT: 130} {
		l := start(t)
		l.waitState(StateReady)
		_ = l.cmd.Process.Signal(s)
		if got := l.waitExit(); got != status {
			t.Errorf("%v: exit status %d, want %d", s, got, status)
		}
		if e := l.waitEntry(1, TypeEnd); e.Status != status {
			t.Errorf("recorded %+v", e)
		}
	}
}

// startAndHangUp runs an agent in a terminal that nobody reads, and takes the terminal away when it waits for input.
func startAndHangUp(t *testing.T, args ...string) *agentProcess {
	t.Helper()
	dir := t.TempDir()
	cmd := agentCommand(t, append([]string{"--dir", dir, "--session-id", "c1"}, args...)...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	l := &agentProcess{t: t, cmd: cmd, tty: tty, display: newDisplay(), exited: make(chan struct{}), dir: dir, id: "c1"}
	go func() { _ = cmd.Wait(); close(l.exited) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-l.exited })
	l.waitEntry(1, TypeStart)
	l.send("taken\r")
	l.waitEntry(1, TypeUser)
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAHangUpEndsIt(t *testing.T) {
	t.Parallel()
	if got := startAndHangUp(t).waitExit(); got != 129 {
		t.Errorf("exit status %d", got)
	}
}

func TestAnIgnoredHangUpLeavesItAtWork(t *testing.T) {
	t.Parallel()
	l := startAndHangUp(t, "--ignore-hup", "--reply-delay", "500ms")
	l.waitEntry(1, TypeAgent)
	_ = l.cmd.Process.Signal(unix.SIGTERM)
	if got := l.waitExit(); got != 143 {
		t.Errorf("exit status %d", got)
	}
}

func TestIgnoredSignalsAreIgnored(t *testing.T) {
	t.Parallel()
	l := start(t, "--ignore-term", "--ignore-hup")
	l.waitState(StateReady)
	_ = l.cmd.Process.Signal(unix.SIGTERM)
	_ = l.cmd.Process.Signal(unix.SIGHUP)
	l.send("still here\r")
	l.waitEntry(1, TypeAgent)
}

// A terminal that takes no output, such as that of a stopped tmux server, must not keep a TERM from it.
func TestAStalledTerminalDoesNotKeepItFromEnding(t *testing.T) {
	t.Parallel()
	cmd := agentCommand(t, "--dir", t.TempDir(), "--session-id", "c1", "--reply-delay", "0s")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 200, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	defer func() { _ = cmd.Process.Kill(); <-exited }()
	l := &agentProcess{t: t, cmd: cmd, exited: exited, display: newDisplay(), dir: cmd.Args[2], id: "c1"}
	l.waitEntry(1, TypeStart)
	for range 20 {
		if _, err := tty.WriteString(strings.Repeat("long line ", 30) + "\r"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, nil, func() bool { return len(l.entriesOf(TypeUser)) == 20 }, func() string { return "20 messages" })
	_ = cmd.Process.Signal(unix.SIGTERM)
	if got := l.waitExit(); got != 143 {
		t.Errorf("exit status %d", got)
	}
}

func TestTheEndOfItsContextEndsIt(t *testing.T) {
	t.Parallel()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	l := &agentProcess{t: t, display: newDisplay(), dir: t.TempDir(), id: "c1"}
	ctx, cancel := context.WithCancel(t.Context())
	status := make(chan int, 1)
	go func() {
		status <- Main(ctx, []string{"--session-id", "c1"}, slave, slave, io.Discard,
			func(name string) string { return map[string]string{DirEnv: l.dir}[name] })
	}()
	l.waitEntry(1, TypeStart)
	cancel()
	if got := <-status; got != 143 {
		t.Errorf("exit status %d", got)
	}
}

func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestChildrenSurviveASignalAndEndWithTheUser(t *testing.T) {
	t.Parallel()
	l := start(t, "--fork")
	pids := l.waitEntry(1, TypeFork).Pids
	defer func() {
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}()
	own, err := unix.Getsid(pids[1])
	if err != nil || own != pids[1] || len(pids) != 2 {
		t.Fatalf("the grandchild %v has session %d: %v", pids, own, err)
	}
	_ = l.cmd.Process.Signal(unix.SIGHUP)
	l.waitExit()
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGHUP); err != nil || !isAlive(pid) {
			t.Errorf("%d ended with the agent: %v", pid, err)
		}
	}

	l = start(t, "--fork")
	pids = append(pids, l.waitEntry(1, TypeFork).Pids...)
	l.waitState(StateReady)
	l.send("exit\r")
	l.waitExit()
	eventually(t, nil, func() bool { return !isAlive(pids[2]) && !isAlive(pids[3]) },
		func() string { return "the family ends with its user's exit" })
}

func TestEveryByteIsKept(t *testing.T) {
	t.Parallel()
	l := start(t, "--log-bytes")
	l.waitState(StateReady)
	sent := "\x1b[200~a\r\nb\x1b[201~\x1b[A\x00\xff\r/clear\rlast\r"
	l.send(sent)
	id := l.waitEntry(1, TypeClear).Conversation
	l.id = id
	l.waitEntry(1, TypeAgent)
	if got := readFile(t, BytesPath(l.dir, "c1")); got != sent {
		t.Errorf("kept %q, want %q", got, sent)
	}
}

func TestItFollowsTheSizeOfItsTerminal(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.waitState(StateReady)
	l.send("a draft that stays")
	for _, size := range []pty.Winsize{{Rows: 40, Cols: 120}, {Rows: 10, Cols: 40}, {Rows: 24, Cols: 80}} {
		if err := pty.Setsize(l.tty, &size); err != nil {
			t.Fatal(err)
		}
		eventually(t, l.display.changed, func() bool {
			text := l.display.text()
			_, whole := ParseScreen(text)
			lines := strings.Split(text, "\n")
			return whole && len(lines) == int(size.Rows) && lines[len(lines)-2] == strings.Repeat(RuleChar, int(size.Cols))
		}, func() string { return fmt.Sprintf("%v; the screen:\n%s", size, l.display.text()) })
		l.waitScreen("the draft", boxHolds("a draft that stays"))
	}
}

func TestFilesAreTheirOwnersOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "dir")
	l := startIn(t, dir, "--session-id", "c1", "--log-bytes")
	l.waitState(StateReady)
	for path, mode := range map[string]os.FileMode{dir: 0o700, TranscriptPath(dir, "c1"): 0o600, BytesPath(dir, "c1"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}
