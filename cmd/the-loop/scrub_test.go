package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
)

func TestWhatIsPostedHoldsNeitherTokensNorPresentOrFormerValues(t *testing.T) {
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
	nothing := func(context.Context) ([]sessions.Pane, error) { return nil, sessions.ErrSilent }
	s := newScrubber(func() string { return file }, nothing, map[string]string{"BOT_TOKEN": "xoxb-canary"})
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

func TestWhatARunningAgentHoldsIsScrubbedToo(t *testing.T) {
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
	s := newScrubber(func() string { return file }, us, nil)
	if got := s.scrub("in " + home); home != "" && got != "in [HOME]" {
		t.Errorf("scrub = %q", got)
	}
}

// agents starts processes that hold values, as agents in panes do, and end with the test.
func agents(t *testing.T, environ ...string) (panes []sessions.Pane) {
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
func TestNothingThatIsDeclaredOrHeldIsForgotten(t *testing.T) {
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
			panes := agents(t, environ...)
			s := newScrubber(func() string { return file }, func(context.Context) ([]sessions.Pane, error) { return panes, nil },
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
func TestWhatPanesHoldCountsWithoutTheFile(t *testing.T) {
	t.Parallel()
	panes := agents(t, "OLD_KEY=of-a-former-file")
	panes[0].Declared = "OLD_KEY OTHER"
	file := filepath.Join(t.TempDir(), "agents.env")
	looks := func(context.Context) ([]sessions.Pane, error) { return panes, nil }
	missing := newScrubber(func() string { return file }, looks, nil)
	if got := missing.scrub("of-a-former-file"); got != "[OLD_KEY]" {
		t.Errorf("without a file: %q", got)
	}
	if err := os.WriteFile(file, []byte("NEW_KEY=of-this-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	left := newScrubber(func() string { return file }, looks, nil)
	if got := left.scrub("of-a-former-file, of-this-file"); got != "[OLD_KEY], [NEW_KEY]" {
		t.Errorf("with a file that has the name no more: %q", got)
	}
	if got := missing.scrub("of-a-former-file, of-this-file"); got != "[OLD_KEY], [NEW_KEY]" {
		t.Errorf("with a file that came later: %q", got)
	}
}
