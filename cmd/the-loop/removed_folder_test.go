package main

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// removedFolderRuns is what is run from a folder that was removed, in this order, with the code that it ends with. Every command is in it.
var removedFolderRuns = []struct {
	code int
	args string
}{
	{0, "version"}, {0, "config schema"}, {0, "config validate"}, {0, "config init --config $HOME/new/cli-config.yaml"},
	{0, "config trust $HOME/new/cli-config.yaml"}, {0, "config claude-key"}, {0, "slack manifest"}, {2, "slack check"},
	{0, "standing create a --cwd $HOME"}, {0, "standing list"}, {0, "standing say a --text hello"}, {0, "standing peek a"},
	{0, "attach a --print"}, {0, "standing restart a"}, {0, "standing stop a"}, {0, "standing start a"}, {2, "standing delete a"},
	{1, "standing create b --cwd sub"}, {1, "standing create b"},
	{0, "sessions register github:acme/shop#7 --cwd $HOME"}, {0, "sessions list"}, {0, "sessions deliver github:acme/shop#7 --text opened"},
	{0, "sessions reply github:acme/shop#7 --text hello"}, {0, "sessions attach github:acme/shop#7 --print"}, {0, "sessions feed"},
	{2, "sessions restart --all"}, {0, "sessions close github:acme/shop#7"},
	{0, "status"}, {0, "events"}, {2, "report say hello"}, {2, "report file x"},
	{0, "stop"}, {0, "start"}, {0, "restart"}, {2, "serve"}, {0, "demo --once"}, {0, "standing delete a --yes"},
}

func TestEveryCommandWorksInAFolderThatWasRemoved(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("/tmp", "tl") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	socket := "tls-" + strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		endTmuxServer(t, socket)
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(home, ".the-loop", "cli-config.yaml")
	text := "version: 1\nstandingSessions: {enabled: true}\nrouting: {defaultHarness: small-agent, tmux: {socketName: " + socket +
		", harnessKillGraceSeconds: 1, resumeProbeSeconds: 0}}\n" // spawnWorkdir starts at the current folder
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), runVariable+"=1", "HOME="+home, "TMUX=", "PWD=")
	for i, line := range removedFolderRuns {
		cmd := exec.Command("sh", "-c", `mkdir -p "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"`, "sh", filepath.Join(home, "gone"))
		for _, word := range strings.Fields(line.args) {
			cmd.Args = append(cmd.Args, strings.ReplaceAll(word, "$HOME", home))
		}
		cmd.Args = slices.Insert(cmd.Args, 5, os.Args[0])
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if code := exitCode(err); code != line.code || strings.Contains(string(out), "getwd") {
			t.Errorf("%d. the-loop %s ends with %d, not %d:\n%s", i, line.args, code, line.code, out)
		}
		if wants := line.args == "standing delete a"; wants != strings.Contains(string(out), "use --yes") { // its input is /dev/null
			t.Errorf("the-loop %s says %q", line.args, out)
		}
	}
}

func TestEveryCommandIsTriedInAFolderThatWasRemoved(t *testing.T) {
	t.Parallel()
	for _, cmd := range allCommands(newRootCommand(systemEnvironment())) {
		name := strings.TrimPrefix(cmd.CommandPath(), "the-loop ")
		tried := func(args string) bool { return args == name || strings.HasPrefix(args, name+" ") }
		if cmd.Hidden || cmd.HasSubCommands() || slices.ContainsFunc(removedFolderRuns, func(l struct {
			code int
			args string
		}) bool {
			return tried(l.args)
		}) {
			continue
		}
		t.Errorf("%q is not tried", cmd.CommandPath())
	}
}
