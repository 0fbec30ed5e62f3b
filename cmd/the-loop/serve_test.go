package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/registry"
)

// testTimeout bounds every wait. Nothing is said about speed by it.
const testTimeout = 30 * time.Second

// testEnv is an operator's machine: a home folder with a configuration, and a Slack workspace.
type testEnv struct {
	t       testing.TB
	dir     string
	slack   *localslack.Workspace
	channel string
	ann     *localslack.Person
	environ []string
}

const testConfig = `version: 1
routing:
  defaultHarness: small-agent
  spawnWorkdir: %[1]q
  tmux: {socketName: %[5]s, harnessKillGraceSeconds: 1, resumeProbeSeconds: 0}
standingSessions:
  enabled: true
  sessions: [{name: helper}]
channels:
  slack: {enabled: true, channel: %[2]s, authorizedUsers: [%[3]s], apiUrl: %[4]q}
`

func newTestEnv(t testing.TB, o localslack.Options) *testEnv {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tl") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	o.BotToken, o.AppToken = "xoxb-1111-2222-"+rand.Text(), "xapp-1-A0000-3333-"+rand.Text() // canaries
	s := &testEnv{t: t, dir: dir, slack: localslack.New(o)}
	if err := s.slack.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.ann = s.slack.AddUser("ann")
	s.channel = s.slack.AddChannel("agents").ID
	s.slack.Join(s.channel, s.ann.ID)
	s.slack.Invite(s.channel, s.slack.BotUserID())
	s.writeConfig(fmt.Sprintf(testConfig, dir, s.channel, s.ann.ID, s.slack.APIURL(), filepath.Base(dir)))
	s.environ = append(os.Environ(), runVariable+"=1", "HOME="+dir, "TMUX=", "THE_LOOP_CLI_CONFIG="+s.configPath(),
		"THE_LOOP_SLACK_BOT_TOKEN="+s.slack.BotToken(), "THE_LOOP_SLACK_APP_TOKEN="+s.slack.AppToken())
	t.Cleanup(func() {
		s.run(context.Background(), "standing", "stop", "helper")
		_ = s.slack.Close()
		endTmuxServer(t, filepath.Base(dir))
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *testEnv) configPath() string { return filepath.Join(s.dir, "cli-config.yaml") }

func (s *testEnv) writeConfig(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.configPath(), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testEnv) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Dir = s.environ, s.dir
	return cmd
}

// run runs a command to its end and returns its exit code and what it printed.
func (s *testEnv) run(ctx context.Context, args ...string) (code int, out, errOut string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	cmd := s.command(ctx, args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("the-loop %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// mustRun is run for a command that has to succeed.
func (s *testEnv) mustRun(args ...string) string {
	s.t.Helper()
	code, out, errOut := s.run(context.Background(), args...)
	if code != exitOK {
		s.t.Fatalf("the-loop %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// serveProcess is a "the-loop serve" that runs.
type serveProcess struct {
	env    *testEnv
	cmd    *exec.Cmd
	lines  chan string
	stderr *bytes.Buffer
}

// startServe starts the bot and waits until it says that it is ready and is connected.
func (s *testEnv) startServe() *serveProcess {
	s.t.Helper()
	b := &serveProcess{env: s, cmd: s.command(context.Background(), "serve"), lines: make(chan string, 16), stderr: &bytes.Buffer{}}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	b.cmd.Stderr = b.stderr
	if err := b.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go b.readLines(out)
	s.t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	if line := b.nextLine(); !regexp.MustCompile(`^ready: process \d+ serves `).MatchString(line) {
		s.t.Fatalf("serve says %q first", line)
	}
	s.waitFor("the bot is connected", func() bool { return s.slack.Connections() == 1 })
	return b
}

// readLines ends with the process, which every test ends.
func (b *serveProcess) readLines(out io.Reader) {
	defer close(b.lines)
	for scan := bufio.NewScanner(out); scan.Scan(); {
		b.lines <- scan.Text()
	}
}

func (b *serveProcess) nextLine() string {
	b.env.t.Helper()
	select {
	case line := <-b.lines:
		return line
	case <-time.After(testTimeout):
		b.env.t.Fatalf("serve says nothing\n%s", b.stderr)
		return ""
	}
}

// signalAndWait sends a signal and returns the exit code.
func (b *serveProcess) signalAndWait(sig os.Signal) int {
	b.env.t.Helper()
	if err := b.cmd.Process.Signal(sig); err != nil {
		b.env.t.Fatal(err)
	}
	for range b.lines {
	}
	_ = b.cmd.Wait()
	return b.cmd.ProcessState.ExitCode()
}

// waitFor waits for a condition of the workspace.
func (s *testEnv) waitFor(what string, cond func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := s.slack.WaitFor(ctx, cond); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// poll waits for a condition that nothing tells of.
func (s *testEnv) poll(what string, cond func() bool) {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(testTimeout); !cond(); {
		select {
		case <-tick.C:
		case <-end:
			s.t.Fatalf("%s: it did not come", what)
		}
	}
}

func (s *testEnv) announcementTS() (ts string) {
	s.t.Helper()
	s.waitFor("the announcement", func() bool {
		for _, m := range s.slack.Messages(s.channel) {
			if m.User == s.slack.BotUserID() && m.Subtype == "" && !m.IsReply() {
				ts = m.TS
			}
		}
		return ts != ""
	})
	return ts
}

func (s *testEnv) status() (code int, st status) {
	s.t.Helper()
	code, out, errOut := s.run(context.Background(), "status", "--format", "json")
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		s.t.Fatalf("status: %v\n%s%s", err, out, errOut)
	}
	return code, st
}

func TestServeDeliversAReplyAndStopsOnASignal(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	b := s.startServe()
	s.mustRun("standing", "start", "helper")
	root := s.announcementTS()
	ts, err := s.ann.Reply(s.channel, root, "hello from Slack")
	if err != nil {
		t.Fatal(err)
	}
	s.waitFor("the receipt", func() bool { return s.slack.HasReaction(s.channel, ts, "white_check_mark") })

	s.poll("status is ok", func() bool { code, st := s.status(); return code == exitOK && st.OK && st.Bot.State.Connected })
	s.poll("status tells of the thread", func() bool {
		out := s.mustRun("status")
		return strings.Contains(out, "connected, 1 threads") && strings.Contains(out, "standing:helper")
	})
	if out := s.mustRun("events"); !strings.Contains(out, `"event":"channel.reply_received"`) || strings.Contains(out, "hello from Slack") {
		t.Errorf("the events are\n%s", out)
	}

	code, _, errOut := s.run(context.Background(), "serve")
	if code != exitFailed || !strings.Contains(errOut, fmt.Sprintf("process %d", b.cmd.Process.Pid)) {
		t.Errorf("a second serve: exit code %d, %q; want the holder named", code, errOut)
	}

	begin := time.Now()
	if code := b.signalAndWait(syscall.SIGTERM); code != exitOK {
		t.Errorf("SIGTERM: exit code %d\n%s", code, b.stderr)
	}
	t.Logf("stopped in %v", time.Since(begin))
	if out := s.mustRun("events"); !strings.Contains(out, `"event":"bot.started"`) || !strings.Contains(out, `"event":"bot.stopped"`) {
		t.Errorf("the events do not tell when the bot ran:\n%s", out)
	}
	if code, st := s.status(); code != exitFailed || st.Bot.Running || len(st.Bot.Problems) == 0 {
		t.Errorf("status after the stop: exit code %d, %+v", code, st.Bot)
	}
	if rows := s.mustRun("standing", "list"); !strings.Contains(rows, "running") {
		t.Errorf("the session did not outlive the bot:\n%s", rows)
	}
	for _, secret := range []string{s.slack.BotToken(), s.slack.AppToken()} {
		s.assertNotStored(secret)
	}
}

// assertNotStored looks through everything that was written for a secret.
func (s *testEnv) assertNotStored(secret string) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			s.t.Errorf("%s holds a token", path)
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

func TestServeIsInterruptedWhileSlackIsDown(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.slack.Faults().InjectAPI("*", -1, localslack.HTML(503))
	cmd := s.command(context.Background(), "serve")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready:") {
		t.Fatalf("serve says %q, %v", line, err)
	}
	s.poll("status knows", func() bool {
		_, st := s.status()
		return st.Bot.Running && !st.OK && strings.Contains(strings.Join(st.Bot.Problems, "\n"), "not connected")
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("SIGINT: %v", err)
	}
}

func TestServeRefusesTokensWithOneLineThatNamesTheVariable(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	bot, app := s.slack.BotToken(), s.slack.AppToken()
	for name, c := range map[string]struct {
		bot, app string
		want     string
	}{
		"missing":      {"", app, "THE_LOOP_SLACK_BOT_TOKEN"},
		"a user token": {"xoxp-1-2-3", app, "THE_LOOP_SLACK_BOT_TOKEN"},
		"swapped":      {app, bot, "THE_LOOP_SLACK_BOT_TOKEN"},
		"no app token": {bot, "", "THE_LOOP_SLACK_APP_TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			one := *s
			one.environ = append(s.environ, "THE_LOOP_SLACK_BOT_TOKEN="+c.bot, "THE_LOOP_SLACK_APP_TOKEN="+c.app)
			code, out, errOut := one.run(context.Background(), "serve")
			if code != exitUsage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.want) {
				t.Errorf("exit code %d, %q, %q", code, out, errOut)
			}
			for _, token := range []string{"xoxp-1-2-3", bot, app} {
				if strings.Contains(errOut, token) {
					t.Error("the line shows a token")
				}
			}
		})
	}
}

// Abilityai/trinity#215: a bad token made a busy loop.
func TestServeEndsWithTheRemedyWhenSlackRefusesItPermanently(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options localslack.Options
		break_  func(*localslack.Workspace)
		want    string
	}{
		"a revoked token": {localslack.Options{}, func(w *localslack.Workspace) { w.RevokeToken(w.BotToken(), "token_revoked") }, "token_revoked"},
		"a bad app token": {localslack.Options{}, func(w *localslack.Workspace) { w.RevokeToken(w.AppToken(), "invalid_auth") }, "app token"},
		"a missing scope": {localslack.Options{Scopes: []string{"chat:write"}}, func(*localslack.Workspace) {}, "channels:history"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t, c.options)
			c.break_(s.slack)
			code, _, errOut := s.run(context.Background(), "serve")
			last := strings.TrimSpace(errOut[strings.LastIndex(strings.TrimSpace(errOut), "\n")+1:])
			if code != exitFailed || !strings.HasPrefix(last, "the-loop: ") || !strings.Contains(last, c.want) {
				t.Errorf("exit code %d\n%s", code, errOut)
			}
		})
	}
}

func TestAConfigurationThatBreaksWhileServingIsNamedAndRepliesWait(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.startServe()
	s.mustRun("standing", "start", "helper")
	root := s.announcementTS()
	good, err := os.ReadFile(s.configPath())
	if err != nil {
		t.Fatal(err)
	}
	s.writeConfig(strings.Replace(string(good), "channels:", "chanels:", 1))
	s.poll("bot.json names the key", func() bool {
		state, _, err := registry.New(s.dir).BotRunning()
		return err == nil && strings.Contains(state.ConfigError, "chanels")
	})
	ts, err := s.ann.Reply(s.channel, root, "while it is broken")
	if err != nil {
		t.Fatal(err)
	}
	s.waitFor("the reply is heard", func() bool { return s.slack.HasReaction(s.channel, ts, "eyes") })
	s.writeConfig(string(good))
	s.waitFor("the reply goes in", func() bool { return s.slack.HasReaction(s.channel, ts, "white_check_mark") })
}

func TestSlackCheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	if out := s.mustRun("slack", "check"); strings.Contains(out, "FAIL") || !strings.Contains(out, "event delivery") {
		t.Errorf("a good set-up:\n%s", out)
	}
	s.startServe()
	if out := s.mustRun("slack", "check"); strings.Contains(out, "FAIL") || !strings.Contains(out, "event delivery") {
		t.Errorf("a good set-up while the bot runs:\n%s", out)
	}
	s.slack.Leave(s.channel, s.slack.BotUserID())
	code, out, _ := s.run(context.Background(), "slack", "check")
	if code != exitFailed || !strings.Contains(out, "/invite @the-loop") {
		t.Errorf("a bot that is not in the channel: exit code %d\n%s", code, out)
	}
}

func TestServeIsRefusedWhenSlackIsDisabled(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.writeConfig("version: 1\nrouting: {defaultHarness: small-agent}\n")
	code, _, errOut := s.run(context.Background(), "serve")
	if code != exitUsage || !strings.Contains(errOut, "channels.slack.enabled") || strings.Count(errOut, "\n") != 1 {
		t.Errorf("exit code %d, %q", code, errOut)
	}
}

func TestSayReadsStandardInputAndPrintsTheReceipt(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	code, _, errOut := s.run(context.Background(), "standing", "say", "helper", "--text", "x")
	if code != exitFailed || !strings.Contains(errOut, "the-loop standing start helper") {
		t.Errorf("to a session that does not run: exit code %d, %q", code, errOut)
	}
	s.mustRun("standing", "start", "helper")
	s.poll("the agent takes text", func() bool {
		cmd := s.command(context.Background(), "standing", "say", "helper", "--text", "-")
		cmd.Stdin = strings.NewReader("several\nlines\n")
		out, err := cmd.Output()
		return err == nil && string(out) == "standing:helper accepted\n"
	})
	code, out, _ := s.run(context.Background(), "attach", "helper", "--print", "--read-only")
	if code != exitOK || !strings.Contains(out, " -r") {
		t.Errorf("attach --print --read-only: exit code %d, %q", code, out)
	}
	var rows []sessions.Row
	if err := json.Unmarshal([]byte(s.mustRun("standing", "list", "--format", "json")), &rows); err != nil || len(rows) != 1 || !rows[0].Running {
		t.Errorf("list: %v, %+v", err, rows)
	}
}
