package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/bot/render"
)

// writeEnvFile writes the env file as an editor does that replaces it.
func (s *testEnv) writeEnvFile(lines ...string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "agents.env")
	if err := os.WriteFile(path+"~", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		s.t.Fatal(err)
	}
}

// waitForChannelMessage waits for a message of the bot in the channel itself that holds the text.
func (s *testEnv) waitForChannelMessage(text string) (found localslack.Message) {
	s.t.Helper()
	s.waitFor("the channel is told "+text, func() bool {
		for _, m := range s.slack.Messages(s.channel) {
			if m.User == s.slack.BotUserID() && !m.IsReply() && strings.Contains(m.Text, text) {
				found = m
			}
		}
		return found.TS != ""
	})
	return found
}

// Credentials are rotated on a real machine: the bot sees the file change and tells the channel, the command line and a button
// restart, and no value is printed, posted, written down or given to a process in its arguments.
func TestR_CredentialsAreRotatedAndNoValueIsShown(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{RateLimits: localslack.RateLimitsOff})
	s.writeConfig(fmt.Sprintf(testConfig, s.dir, s.channel, s.ann.ID, s.slack.APIURL(), filepath.Base(s.dir)) + "env: {file: agents.env}\n")
	canary := "canary-" + rand.Text() // not in this program
	s.writeEnvFile("TOKEN=" + canary + "-old")
	stop := watchArguments(t, canary)
	b := s.startServe()
	s.mustRun("standing", "start", "helper")
	s.waitForChannelMessage("*helper* is running")
	var printed strings.Builder
	verb := func(want int, args ...string) {
		t.Helper()
		code, out, errOut := s.run(context.Background(), args...)
		printed.WriteString(out + errOut)
		if code != want {
			t.Errorf("the-loop %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errOut)
		}
	}
	s.writeEnvFile("TOKEN="+canary+"-new", canary+" is no assignment")
	m := s.waitForChannelMessage("sessions 1 of 1 running with a stale environment — `the-loop sessions restart --all`\n• *helper*: `TOKEN`")
	verb(exitOK, "status")
	verb(exitOK, "status", "--format", "json")
	verb(exitOK, "sessions", "restart", "--all", "--dry-run")
	verb(exitOK, "sessions", "restart", "helper", "--format", "json")
	s.waitForChannelMessage("No session runs on a stale environment any more (1 running).")
	s.writeEnvFile("TOKEN=" + canary + "-newer")
	m = s.waitForChannelMessage("sessions 1 of 1 running with a stale environment")
	if err := s.ann.Click(context.Background(), s.channel, m.TS, render.ActionRestartAll); err != nil {
		t.Fatal(err)
	}
	s.waitFor("the button's restart", func() bool {
		m, _ := s.slack.Message(s.channel, m.TS)
		return strings.Contains(m.Text, "*helper* was restarted and holds what the env file declares")
	})
	for _, args := range [][]string{{"sessions", "restart", "--all"}, {"standing", "restart", "helper"}, {"standing", "list", "--format", "json"}, {"standing", "peek", "helper"}, {"events"}} {
		verb(exitOK, args...)
	}
	s.writeEnvFile("TOKEN=" + strings.Repeat(canary, 5_000))
	verb(exitFailed, "sessions", "restart", "--all")
	verb(exitFailed, "standing", "restart", "helper")
	if err := os.Remove(filepath.Join(s.dir, "agents.env")); err != nil {
		t.Fatal(err)
	}
	verb(exitUsage, "sessions", "restart", "--all")
	verb(exitOK, "status")
	if code := b.signalAndWait(os.Interrupt); code != exitOK {
		t.Errorf("serve ends with code %d", code)
	}
	stop()
	places := map[string]string{"what was printed": printed.String(), "serve's standard error": b.stderr.String()}
	for i, r := range s.slack.Requests() {
		places[fmt.Sprint("request ", i)] = fmt.Sprintf("%+v", r)
	}
	readTree(t, s.dir, places)
	for where, text := range places {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s holds a value: %.300q", where, text[max(0, i-100):])
		}
	}
}

// readTree reads every file below dir.
func readTree(t *testing.T, dir string, into map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		into[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// watchArguments looks at every process's arguments until stop is called.
func watchArguments(t *testing.T, text string) (stop func()) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
			for _, path := range lines {
				if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), text) {
					t.Errorf("%s: %q", path, line)
				}
			}
		}
	})
	stop = sync.OnceFunc(func() { close(ended); wg.Wait() })
	t.Cleanup(stop)
	return stop
}
