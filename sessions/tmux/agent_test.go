package tmux_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/term"

	"the-loop/sessions"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// TestMain is the tests, or the program in a pane when it is called as "agent", or one that delivers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := runTestAgent(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "committer" {
		if err := runKilledInCommit(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "deliverer" {
		if err := runDeliverLoop(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// runTestAgent logs the exact bytes it gets. With -children it keeps other processes, which say their pid in a file.
func runTestAgent(args []string) error {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder of log and pid files")
	plain := flags.Bool("plain", false, "do not ask for bracketed paste")
	deaf := flags.Bool("deaf", false, "ignore HUP, INT and TERM")
	name := flags.String("name", "main", "of the pid file")
	child := flags.String("child", "", "keep a child: deaf, setsid or orphan")
	sleep := flags.Bool("sleep", false, "read nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *deaf {
		signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	}
	if *child != "" {
		if err := keepChild(*dir, *child); err != nil {
			return err
		}
	}
	if *sleep {
		if err := writePID(*dir, *name); err != nil {
			return err
		}
		select {}
	}
	old, err := term.MakeRaw(0)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(0, old) }()
	if !*plain {
		fmt.Print("\x1b[?2004h")
	}
	fmt.Print("ready\r\n")
	log, err := os.OpenFile(filepath.Join(*dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := writePID(*dir, *name); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return err
		}
		if _, err := log.Write(buf[:n]); err != nil {
			return err
		}
	}
}

func keepChild(dir, kind string) error {
	args := []string{"agent", "-dir", dir, "-name", kind, "-sleep"}
	if kind != "plain" {
		args = append(args, "-deaf")
	}
	if kind == "orphan" { // its parent is killed by the first TERM, and it is nobody's child then
		args = []string{"agent", "-dir", dir, "-name", "parent", "-sleep", "-child", "setsid"}
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: kind == "setsid"}
	return cmd.Start()
}

func writePID(dir, name string) error {
	path := filepath.Join(dir, name+".pid")
	if err := os.WriteFile(path+"~", fmt.Appendf(nil, "%d", os.Getpid()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

// tmuxEnv is a server with panes that log what they get.
type tmuxEnv struct {
	*tmux.Tmux
	t   testing.TB
	dir string
}

func newEnv(t testing.TB) *tmuxEnv {
	t.Helper()
	dir := tmuxtest.Dir(t)
	return &tmuxEnv{tmuxtest.StartIn(t, dir, tmux.Options{}), t, dir}
}

func newEnvWith(t testing.TB, o tmux.Options) *tmuxEnv {
	t.Helper()
	dir := tmuxtest.Dir(t)
	return &tmuxEnv{tmuxtest.StartIn(t, dir, o), t, dir}
}

// spawnRequest is a spawn of the agent under a name, with the mark "id-" and the name.
func (f *tmuxEnv) spawnRequest(name string, flags ...string) sessions.Spawn {
	f.t.Helper()
	dir := filepath.Join(f.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	argv := append([]string{os.Args[0], "agent", "-dir", dir}, flags...)
	return sessions.Spawn{Name: name, Mark: "id-" + name, Argv: argv, Cwd: f.dir, RemainOnExit: true}
}

func (f *tmuxEnv) spawn(name string, flags ...string) sessions.Pane {
	f.t.Helper()
	pane, err := f.Spawn(f.t.Context(), f.spawnRequest(name, flags...))
	if err != nil {
		f.t.Fatal(err)
	}
	f.awaitReady(name)
	return pane
}

// awaitReady waits until the agent reads, and tmux knows that it wants bracketed paste.
func (f *tmuxEnv) awaitReady(name string) {
	f.t.Helper()
	pid := f.pid(name, "main")
	tmuxtest.Await(f.t, "the agent's greeting", func() bool {
		s, err := f.Capture(f.t.Context(), sessions.Target{Mark: "id-" + name})
		return err == nil && strings.Contains(s.Text, "ready") && pid > 0
	})
}

func (f *tmuxEnv) pid(name, process string) int {
	f.t.Helper()
	text := tmuxtest.AwaitFile(f.t, filepath.Join(f.dir, name, process+".pid"), func(s string) bool { return s != "" })
	var pid int
	if _, err := fmt.Sscan(text, &pid); err != nil {
		f.t.Fatal(err)
	}
	return pid
}

// awaitLog waits until the agent got exactly want.
func (f *tmuxEnv) awaitLog(name, want string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name, "log")
	got := tmuxtest.AwaitFile(f.t, path, func(s string) bool { return len(s) >= len(want) })
	if got != want {
		f.t.Fatalf("%s got %.200q (%d bytes), want %.200q (%d bytes)", name, got, len(got), want, len(want))
	}
}

// tmux runs a command as an operator would.
func (f *tmuxEnv) tmux(args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "tmux", append([]string{"-u", "-N", "-S", tmuxtest.Socket(f.dir)}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (f *tmuxEnv) deliver(p sessions.Pane, text string) error {
	return f.Paste(f.t.Context(), sessions.Paste{Target: p.Target(), Text: text, Submit: "\r"})
}

// framedText is a text as a program that asked for bracketed paste gets it, submitted.
func framedText(text string) string { return "\x1b[200~" + text + "\x1b[201~\r" }
