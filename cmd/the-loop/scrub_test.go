package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

func TestPostsContainNoTokensNorCurrentOrFormerValues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agents.env")
	declare := func(value string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, []byte("API_KEY="+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(context.Context) ([]sessions.Pane, error) { return nil, sessions.ErrTerminalTimeout }
	s := newScrubber(func() declaredSources { return declaredSources{envFile: file} }, nothing, map[string]string{"BOT_TOKEN": "xoxb-canary"})
	want := func(text, scrubbed string) {
		t.Helper()
		if got := s.scrub(text); got != scrubbed {
			t.Errorf("scrub(%q) = %q; want %q", text, got, scrubbed)
		}
	}
	want("xoxb-canary", "[BOT_TOKEN]") // before there is a file
	now := time.Now()
	declare("first-value", now)
	want("a first-value and xoxb-canary", "a [API_KEY] and [BOT_TOKEN]")
	declare("other-value", now.Add(time.Second))
	want("first-value, other-value", "[API_KEY], [API_KEY]")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want("first-value, other-value", "[API_KEY], [API_KEY]")
}

func TestValuesOfARunningAgentAreScrubbed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agents.env")
	if err := os.WriteFile(file, []byte("HOME=/nowhere/at/all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := os.Getenv("HOME")
	if len(home) < 6 {
		home = ""
	}
	us := func(context.Context) ([]sessions.Pane, error) {
		return []sessions.Pane{{PID: os.Getpid(), Mark: "x"}}, nil
	}
	s := newScrubber(func() declaredSources { return declaredSources{envFile: file} }, us, nil)
	if got := s.scrub("in " + home); home != "" && got != "in [HOME]" {
		t.Errorf("scrub = %q", got)
	}
}

// startAgentProcesses starts processes that hold values, as agents in panes do, and end with the test.
func startAgentProcesses(t *testing.T, environ ...string) (panes []sessions.Pane) {
	t.Helper()
	for _, e := range environ {
		cmd := exec.Command("sleep", "600")
		cmd.Env = []string{e}
		if err := cmd.Start(); err != nil { // returns when the program runs
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		panes = append(panes, sessions.Pane{PID: cmd.Process.Pid, Mark: "x"})
	}
	return panes
}

// However many sessions go on with values of their own, none of them is forgotten, nor is what is declared now.
func TestDeclaredAndHeldValuesStayScrubbed(t *testing.T) {
	t.Parallel()
	for _, n := range []int{31, 33, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "agents.env")
			at := time.Now()
			declare := func(value string) {
				t.Helper()
				at = at.Add(time.Second)
				if err := errors.Join(os.WriteFile(file, []byte("API_KEY="+value+"\n"), 0o600), os.Chtimes(file, at, at)); err != nil {
					t.Fatal(err)
				}
			}
			var environ []string
			for i := range n {
				environ = append(environ, fmt.Sprintf("API_KEY=generation-%03d", i))
			}
			panes := startAgentProcesses(t, environ...)
			s := newScrubber(func() declaredSources { return declaredSources{envFile: file} }, func(context.Context) ([]sessions.Pane, error) { return panes, nil },
				map[string]string{"BOT_TOKEN": "xoxb-canary"})
			gone := func(text, name string) {
				t.Helper()
				if got := s.scrub(text); got != "["+name+"]" {
					t.Errorf("scrub(%q) = %q", text, got)
				}
			}
			for rotation := range 3 {
				declare(fmt.Sprintf("declared-%d", rotation))
				for old := range rotation + 1 {
					gone(fmt.Sprintf("declared-%d", old), "API_KEY")
				}
				for i := range n {
					gone(fmt.Sprintf("generation-%03d", i), "API_KEY")
				}
				gone("xoxb-canary", "BOT_TOKEN")
			}
			if shown := fmt.Sprintf("%v %+v %#v", s.secrets, s.secrets, s.secrets); strings.Contains(shown, "declared-") {
				t.Errorf("printed as %s", shown)
			}
		})
	}
}

// A name that left the file, and a file that was not there when the bot started, are no reason to show what agents hold.
func TestValuesHeldByPanesAreScrubbedWithoutTheEnvFile(t *testing.T) {
	t.Parallel()
	panes := startAgentProcesses(t, "OLD_KEY=of-a-former-file")
	panes[0].Declared = "OLD_KEY OTHER"
	file := filepath.Join(t.TempDir(), "agents.env")
	looks := func(context.Context) ([]sessions.Pane, error) { return panes, nil }
	missing := newScrubber(func() declaredSources { return declaredSources{envFile: file} }, looks, nil)
	if got := missing.scrub("of-a-former-file"); got != "[OLD_KEY]" {
		t.Errorf("without a file: %q", got)
	}
	if err := os.WriteFile(file, []byte("NEW_KEY=of-this-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	left := newScrubber(func() declaredSources { return declaredSources{envFile: file} }, looks, nil)
	if got := left.scrub("of-a-former-file, of-this-file"); got != "[OLD_KEY], [NEW_KEY]" {
		t.Errorf("with a file that has the name no more: %q", got)
	}
	if got := missing.scrub("of-a-former-file, of-this-file"); got != "[OLD_KEY], [NEW_KEY]" {
		t.Errorf("with a file that came later: %q", got)
	}
}

// What a command prints and what it leaves behind, in the event log and the logs, shows no value, whichever way it came there:
// here, in the name of a folder that is not there.
func TestStatusErrorsAndEventsShowNoValue(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	secret := `k"3y&<va>lue/with\marks`
	config, err := os.ReadFile(s.configPath())
	if err != nil {
		t.Fatal(err)
	}
	cwd, err := json.Marshal(filepath.Join(s.dir, secret))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(config), "{name: helper}", "{name: helper, cwd: "+string(cwd)+"}", 1) + "env: {file: agents.env}\n"
	s.writeConfig(text)
	if err := os.WriteFile(filepath.Join(s.dir, "agents.env"), []byte("API_KEY='"+secret+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, args := range [][]string{{"standing", "start", "helper"}, {"start"}, {"status"}, {"status", "--format", "json"}, {"standing", "list"},
		{"standing", "list", "--format", "json"}, {"sessions", "restart", "--all", "--dry-run"}, {"events"}, {"stop"}} {
		_, out, errs := s.run(context.Background(), args...)
		fmt.Fprintf(&shown, "$ %s\n%s%s", strings.Join(args, " "), out, errs)
	}
	logs, err := filepath.Glob(filepath.Join(s.dir, "logs", "*"))
	if err != nil || len(logs) < 2 {
		t.Fatalf("logs %v, error %v", logs, err)
	}
	for _, name := range append(logs, filepath.Join(s.dir, "run", "bot.json")) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&shown, "$ cat %s\n%s", name, data)
	}
	if !strings.Contains(shown.String(), "[API_KEY]") {
		t.Errorf("nothing shows that there was a value: %s", shown.String())
	}
	for line := range strings.Lines(shown.String()) {
		if found := envstate.Scrub(line, map[string]string{"API_KEY": secret}); found != line {
			t.Errorf("a value is shown: %s", line)
		}
	}
}

func TestScrubbedJSONStaysValid(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := scrubbingWriter{&out, envstate.NewScrubber(map[string]string{"KEY": `a":"b","c`}).Scrub}
	in := `{"a":"b","c":"x a\":\"b\",\"c y"}` + "\n"
	if n, err := w.Write([]byte(in)); n != len(in) || err != nil {
		t.Fatal(n, err)
	}
	if want := `{"a":"b","c":"x [KEY] y"}` + "\n"; out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}
