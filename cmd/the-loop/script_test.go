package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"the-loop/sessions/tmux/tmuxtest"
)

// TestScripts plays the scenarios of testdata/script, each with a home, a state and a tmux server of its own. The numbers in
// their names are those of the acceptance criteria.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: filepath.Join("testdata", "script"), Setup: func(e *testscript.Env) error { return setUpScript(t, e) }, RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"append": appendLine, "eventually": runUntilSuccess, "sees": runUntilPrinted, "exits": runWithExitCode, "expand": expandFile, "tmux": runTmux}})
}

func setUpScript(t *testing.T, e *testscript.Env) error {
	socket := "tls-" + strings.ToLower(rand.Text()[:10])
	e.Setenv("SOCKET", socket)
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("TMUX", "")
	e.Setenv("THE_LOOP_CLI_CONFIG", filepath.Join(e.WorkDir, "cli-config.yaml"))
	e.Defer(func() {
		for _, name := range []string{socket, socket + "-2"} {
			if left := endTmuxServer(t, name); left != "" {
				e.T().Log("left behind on", name+":", left)
				e.T().FailNow()
			}
		}
	})
	return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700)
}

// endTmuxServer ends what a script left running, its agents first, and returns a word on what should not have been there: a
// server without panes ends by itself, so only what the script forgot is seen.
func endTmuxServer(t testing.TB, socket string) (left string) {
	t.Helper()
	path := socketPath(socket)
	out, err := exec.Command("tmux", "-N", "-S", path, "list-panes", "-a", "-F", "#{session_name}").CombinedOutput()
	if err == nil {
		left = strings.TrimSpace(string(out))
	}
	tmuxtest.EndServer(t, path)
	_ = os.Remove(path) // tmux leaves its socket
	return left
}

// socketPath is the path of the tmux socket with a name.
func socketPath(name string) string { return fmt.Sprintf("/tmp/tmux-%d/%s", os.Getuid(), name) }

// expandFile writes FILE from FILE.in, with variables filled in.
func expandFile(ts *testscript.TestScript, _ bool, args []string) {
	text := os.Expand(ts.ReadFile(args[0]+".in"), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// appendLine adds a line to a file.
func appendLine(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0]) + args[1] + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// runWithExitCode runs a command that has to end with that code.
func runWithExitCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	if got := exitCode(err); got != want {
		ts.Fatalf("it ends with code %d, not %d", got, want)
	}
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return -1
}

// runUntilSuccess runs a command again until it succeeds.
func runUntilSuccess(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := pollUntil(ctx, func() bool { return ts.Exec(args[0], args[1:]...) == nil }); err != nil {
		ts.Fatalf("%s does not succeed", strings.Join(args, " "))
	}
}

// runUntilPrinted runs a command again until it prints a text.
func runUntilPrinted(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	err := pollUntil(ctx, func() bool {
		return ts.Exec(args[1], args[2:]...) == nil && strings.Contains(ts.ReadFile("stdout"), args[0])
	})
	if err != nil {
		ts.Fatalf("%s does not print %q", strings.Join(args[1:], " "), args[0])
	}
}

// runTmux asks the script's tmux server.
func runTmux(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("tmux", append([]string{"-L", ts.Getenv("SOCKET")}, args...)...))
}
