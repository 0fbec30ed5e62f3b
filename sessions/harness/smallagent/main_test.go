package smallagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
)

// runAsAgent makes the test binary the agent.
const runAsAgent = "SMALL_AGENT_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsAgent) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}
	goleak.VerifyTestMain(m)
}

const testTimeout = 30 * time.Second

// eventually waits until ok holds, looking again at each change or tick.
func eventually(t *testing.T, changed <-chan struct{}, ok func() bool, describe func() string) {
	t.Helper()
	deadline := time.NewTimer(testTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-changed:
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not in time: %s", describe())
		}
	}
}

// agentProcess is an agent in a pty.
type agentProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	tty     *os.File
	display *display
	exited  chan struct{}
	dir, id string
}

func agentCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = []string{runAsAgent + "=1", "TERM=xterm-256color", "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	return cmd
}

// start runs a new conversation "c1" in a folder of its own, with answers at once.
func start(t *testing.T, args ...string) *agentProcess {
	t.Helper()
	return startIn(t, t.TempDir(), append([]string{"--session-id", "c1"}, args...)...)
}

func startIn(t *testing.T, dir string, args ...string) *agentProcess {
	t.Helper()
	cmd := agentCommand(t, append([]string{"--dir", dir, "--reply-delay", "0s"}, args...)...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	l := &agentProcess{t: t, cmd: cmd, tty: tty, display: newDisplay(), exited: make(chan struct{}), dir: dir, id: "c1"}
	read := make(chan struct{})
	go func() {
		defer close(read)
		l.display.readFrom(tty)
	}()
	go func() {
		defer close(l.exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-l.exited
		_ = tty.Close()
		<-read
	})
	return l
}

func (l *agentProcess) send(s string) {
	l.t.Helper()
	if _, err := l.tty.WriteString(s); err != nil {
		l.t.Fatalf("send: %v", err)
	}
}

func (l *agentProcess) paste(s string) {
	l.t.Helper()
	l.send("\x1b[200~" + s + "\x1b[201~")
}

// waitScreen waits for a screen.
func (l *agentProcess) waitScreen(what string, ok func(Screen) bool) Screen {
	l.t.Helper()
	var s Screen
	eventually(l.t, l.display.changed, func() bool {
		var whole bool
		s, whole = ParseScreen(l.display.text())
		return whole && ok(s)
	}, func() string { return what + "; the screen:\n" + l.display.text() })
	return s
}

func (l *agentProcess) waitText(text string) {
	l.t.Helper()
	eventually(l.t, l.display.changed, func() bool { return strings.Contains(l.display.text(), text) },
		func() string { return strconv.Quote(text) + " on the screen:\n" + l.display.text() })
}

func (l *agentProcess) waitState(state State) {
	l.t.Helper()
	l.waitScreen(string(state), hasState(state))
}

func hasState(state State) func(Screen) bool { return func(s Screen) bool { return s.State == state } }

func boxHolds(text string) func(Screen) bool {
	return func(s Screen) bool { return s.Box == text && s.Dialog == nil }
}

func (l *agentProcess) entries() []Entry {
	l.t.Helper()
	entries, _, err := ReadTranscript(TranscriptPath(l.dir, l.id), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	return entries
}

func (l *agentProcess) entriesOf(kind string) (found []Entry) {
	l.t.Helper()
	for _, e := range l.entries() {
		if e.Type == kind {
			found = append(found, e)
		}
	}
	return found
}

// waitEntry waits until there are n entries of a kind, and returns the last.
func (l *agentProcess) waitEntry(n int, kind string) Entry {
	l.t.Helper()
	eventually(l.t, nil, func() bool { return len(l.entriesOf(kind)) >= n },
		func() string {
			return fmt.Sprintf("%d entries %q in %+v; the screen:\n%s", n, kind, l.entries(), l.display.text())
		})
	found := l.entriesOf(kind)
	if len(found) > n {
		l.t.Fatalf("%d entries %q, want %d: %+v", len(found), kind, n, found)
	}
	return found[n-1]
}

// waitExit waits for the end and returns its status.
func (l *agentProcess) waitExit() int {
	l.t.Helper()
	select {
	case <-l.exited:
	case <-time.After(testTimeout):
		l.t.Fatalf("it did not end; the screen:\n%s", l.display.text())
	}
	return l.cmd.ProcessState.ExitCode()
}

// display is as much of a terminal as the agent uses: it sets rows as a whole.
type display struct {
	changed chan struct{}

	mu       sync.Mutex // guards the fields that follow
	unparsed string
	row      int
	isFresh  bool // the cursor was set, and nothing was written since
	rows     map[int]string
	modes    map[string]bool
}

func newDisplay() *display {
	return &display{changed: make(chan struct{}, 1), row: 1, rows: map[int]string{}, modes: map[string]bool{}}
}

func (d *display) readFrom(f *os.File) {
	buf := make([]byte, 1<<16)
	for {
		n, err := f.Read(buf)
		d.write(string(buf[:n]))
		if err != nil {
			return
		}
	}
}

var terminalToken = regexp.MustCompile(`(?s)^(?:\x1b\[([?0-9;]*)([A-Za-z])|[^\x1b]+)`)

func (d *display) write(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unparsed += s
	for {
		m := terminalToken.FindStringSubmatch(d.unparsed)
		if m == nil {
			break
		}
		d.unparsed = d.unparsed[len(m[0]):]
		d.apply(m[0], m[1], m[2])
	}
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *display) apply(all, parameters, final string) {
	switch final {
	case "":
		if d.isFresh {
			d.rows[d.row] = ""
		}
		d.rows[d.row] += all
		d.isFresh = false
	case "H":
		row, _, _ := strings.Cut(parameters, ";")
		d.row, _ = strconv.Atoi(row)
		d.isFresh = true
	case "J":
		d.rows = map[int]string{}
	case "K":
		if d.isFresh {
			d.rows[d.row] = ""
		}
	case "h", "l":
		d.modes[parameters] = final == "h"
	}
}

func (d *display) mode(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.modes[name]
}

func (d *display) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for i := 1; i <= 200; i++ {
		b.WriteString(d.rows[i] + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
