package main

import (
	"context"
	"os"
	"path/filepath"
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
