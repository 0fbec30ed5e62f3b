package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"the-loop/cmd/internal/config"
)

// readmeBlocks returns the fenced blocks of README.md in that language, without their indent.
func readmeBlocks(t *testing.T, language string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var block []string
	inside := false
	for line := range strings.Lines(string(data)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case !inside && trimmed == "```"+language:
			inside, block = true, nil
		case inside && trimmed == "```":
			inside = false
			all = append(all, unindent(block))
		case inside:
			block = append(block, line)
		}
	}
	if len(all) == 0 {
		t.Fatalf("README.md has no block in %s", language)
	}
	return all
}

func unindent(lines []string) string {
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l[min(indent, len(l)-len(strings.TrimLeft(l, " "))):])
	}
	return b.String()
}

// maskVariableParts replaces what differs from run to run.
func maskVariableParts(text string) string {
	for pattern, name := range map[string]string{
		`[0-9a-f]{8}-[0-9a-f-]{27}`:         "CONVERSATION",
		`small-agent in \S+`:                "small-agent in FOLDER",
		`(?m)[ \t]+$`:                       "",
		`(Turn \d+\. You said \()\d+(?: c)`: "${1}N c",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, name)
	}
	return text
}

func TestREADMEShowsTheDemosOutputAndTheDemoCleansUp(t *testing.T) {
	tmp, err := os.MkdirTemp("/tmp", "tl") // short: a socket's path goes into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	t.Setenv("TMPDIR", tmp)
	env := systemEnvironment()
	var out, errOut bytes.Buffer
	env.out, env.err = &out, &errOut
	if code := run(context.Background(), []string{"demo", "--once"}, env); code != exitOK {
		t.Fatalf("demo --once: exit code %d\n%s%s", code, out.String(), errOut.String())
	}
	if diff := cmp.Diff(maskVariableParts(readmeBlocks(t, "transcript")[0]), maskVariableParts(out.String())); diff != "" {
		t.Errorf("README.md shows another conversation than the demo plays:\n%s", diff)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("the demo left %v, %v", left, err)
	}
}

func TestTheDemoWithoutTmuxSaysHowToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	env := systemEnvironment()
	var out, errOut bytes.Buffer
	env.out, env.err = &out, &errOut
	code := run(context.Background(), []string{"demo", "--once"}, env)
	if code != exitFailed || strings.Count(errOut.String(), "\n") != 1 || !strings.Contains(errOut.String(), "apt install tmux") {
		t.Errorf("exit code %d, %q; want one line that says how to install tmux", code, errOut.String())
	}
}

func TestREADMEsCommandsExist(t *testing.T) {
	t.Parallel()
	targets := makeTargets(t)
	for _, block := range readmeBlocks(t, "sh") {
		for line := range strings.Lines(block) {
			words := strings.Fields(line)
			switch {
			case len(words) == 0, words[0] == "export":
			case words[0] == "make":
				if !slices.Contains(targets, words[1]) {
					t.Errorf("there is no target for %q", line)
				}
			case words[0] == "go":
				i := slices.Index(words, "./cmd/the-loop")
				if i < 0 {
					t.Errorf("%q does not name the command", line)
					continue
				}
				parseCommandLine(t, words[i+1:])
			case words[0] == "the-loop":
				parseCommandLine(t, words[1:])
			default:
				t.Errorf("README.md has a command that no test knows: %q", line)
			}
		}
	}
}

// parseCommandLine finds the command of a line and reads its flags.
func parseCommandLine(t *testing.T, args []string) {
	t.Helper()
	cmd, rest, err := newRootCommand(systemEnvironment()).Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil && cmd.Args != nil {
		err = cmd.Args(cmd, cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("the-loop %s: %v", strings.Join(args, " "), err)
	}
}

func makeTargets(t *testing.T) (all []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+):`).FindAllStringSubmatch(string(data), -1) {
		all = append(all, m[1])
	}
	return all
}

func TestREADMEListsEveryCommand(t *testing.T) {
	t.Parallel()
	text := strings.Join(readmeBlocks(t, "text"), "\n")
	for _, cmd := range allCommands(newRootCommand(systemEnvironment())) {
		if cmd.Hidden || cmd.HasSubCommands() || cmd.Name() == "version" || cmd.Name() == "help" {
			continue
		}
		if !mentionsCommand(text, cmd) {
			t.Errorf("README.md does not list %q", cmd.CommandPath())
		}
	}
}

// mentionsCommand reports whether a line lists the command, alone or among its siblings as in "start|stop".
func mentionsCommand(text string, cmd *cobra.Command) bool {
	prefix := regexp.QuoteMeta(cmd.Parent().CommandPath())
	return regexp.MustCompile(prefix + ` (\S+\|)*` + regexp.QuoteMeta(cmd.Name()) + `\b`).MatchString(text)
}

func TestREADMEsConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	for i, block := range readmeBlocks(t, "yaml") {
		if !strings.Contains(block, "version:") {
			block = "version: 1\n" + block
		}
		path := filepath.Join(t.TempDir(), "cli-config.yaml")
		if err := os.WriteFile(path, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(path); err != nil {
			t.Errorf("block %d: %v", i, err)
		}
	}
}

func TestTheCIScriptCallsTheTestCommandOfTheREADME(t *testing.T) {
	t.Parallel()
	script := filepath.Join("..", "..", ".ci", "run")
	data, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^make test$`).Match(data) || !slices.Contains(readmeBlocks(t, "sh"), "make test\n") {
		t.Error("make test is not the test command of both")
	}
	if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
