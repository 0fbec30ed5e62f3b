package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"the-loop/bot/localslack"
	"the-loop/sessions"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux/tmuxtest"
)

// runLifecycle runs start, stop or restart and returns its exit code and its report.
func (s *testEnv) runLifecycle(args ...string) (int, lifecycleResult) {
	s.t.Helper()
	code, out, errOut := s.run(context.Background(), append(args, "--format", "json")...)
	var r lifecycleResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		s.t.Fatalf("%q: exit code %d, %v\n%s%s", args, code, err, out, errOut)
	}
	return code, r
}

// stopAtEnd takes the site down when the test ends, and fails it if a bot is left.
func (s *testEnv) stopAtEnd() {
	s.t.Cleanup(func() {
		if code, out, errOut := s.run(context.Background(), "stop"); code != exitOK {
			s.t.Errorf("stop: exit code %d\n%s%s", code, out, errOut)
		}
	})
}

func TestR2_1_StartBringsUpTheBotAndThenTheSessionsAndStopTakesThemDown(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.stopAtEnd()
	code, r := s.runLifecycle("start")
	if code != exitOK || !r.OK || len(r.Services) != 1 || r.Services[0].Outcome != sessions.OutcomeStarted || !r.Services[0].Running ||
		len(r.Sessions) != 1 || r.Sessions[0].Outcome != sessions.OutcomeStarted {
		t.Fatalf("start: exit code %d, %+v", code, r)
	}
	pid := r.Services[0].PID
	if group, err := unix.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the bot is in the process group %d, %v", group, err)
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("the bot is in the session %d, %v", sid, err)
	}
	root := s.announcementTS()
	ts, err := s.ann.Reply(s.channel, root, "hello")
	if err != nil {
		t.Fatal(err)
	}
	s.waitFor("the receipt", func() bool { return s.slack.HasReaction(s.channel, ts, "white_check_mark") })
	s.poll("status is ok", func() bool {
		code, st := s.status()
		return code == exitOK && st.OK && len(st.Services) == 1 && st.Services[0].PID == pid
	})

	if code, r := s.runLifecycle("start"); code != exitOK || r.Services[0].Outcome != sessions.OutcomeAlreadyRunning || r.Services[0].PID != pid ||
		r.Sessions[0].Outcome != sessions.OutcomeAlreadyRunning {
		t.Errorf("start again: exit code %d, %+v", code, r)
	}
	if code, r := s.runLifecycle("restart"); code != exitOK || r.Services[0].PID == pid || r.Sessions[0].Outcome != sessions.OutcomeResumed {
		t.Errorf("restart: exit code %d, %+v", code, r)
	}
	code, r = s.runLifecycle("stop")
	if code != exitOK || r.Services[0].Outcome != sessions.OutcomeStopped || r.Services[0].Running || r.Sessions[0].Outcome != sessions.OutcomeStopped {
		t.Errorf("stop: exit code %d, %+v", code, r)
	}
	if code, r := s.runLifecycle("stop"); code != exitOK || r.Services[0].Outcome != sessions.OutcomeAlreadyStopped || r.Sessions[0].Outcome != sessions.OutcomeAlreadyStopped {
		t.Errorf("stop again: exit code %d, %+v", code, r)
	}
	if tmuxtest.IsAlive(pid) {
		t.Error("the bot lives")
	}
}

func TestR4_5_SessionsStartAlsoWhenSlackOrTheBotDoesNot(t *testing.T) {
	t.Parallel()
	t.Run("Slack is away", func(t *testing.T) {
		t.Parallel()
		s := newTestEnv(t, localslack.Options{})
		s.stopAtEnd()
		s.slack.Faults().InjectAPI("*", -1, localslack.HTML(503))
		if code, r := s.runLifecycle("start"); code != exitOK || !r.Services[0].Running || !r.Sessions[0].Running {
			t.Errorf("exit code %d, %+v", code, r)
		}
		if code, st := s.status(); code != exitFailed || st.Bot.State.Connected || !st.Sessions[0].Running {
			t.Errorf("status: exit code %d, %+v", code, st)
		}
	})
	t.Run("Slack refuses the token", func(t *testing.T) {
		t.Parallel()
		s := newTestEnv(t, localslack.Options{})
		s.stopAtEnd()
		s.slack.RevokeToken(s.slack.BotToken(), "token_revoked")
		code, r := s.runLifecycle("start")
		if code != exitFailed || r.Services[0].Running || !strings.Contains(r.Services[0].Detail, "token_revoked") || !r.Sessions[0].Running {
			t.Errorf("exit code %d, %+v", code, r)
		}
		if _, st := s.status(); len(st.Bot.Problems) != 1 || !strings.Contains(st.Bot.Problems[0], "token_revoked") {
			t.Errorf("%+v", st.Bot)
		}
		if code, out, _ := s.run(context.Background(), "start", "--foreground"); code != exitFailed || !strings.Contains(out, "already-running") {
			t.Errorf("in the foreground: exit code %d\n%s", code, out)
		}
	})
	t.Run("the token is missing", func(t *testing.T) {
		t.Parallel()
		s := newTestEnv(t, localslack.Options{})
		s.stopAtEnd()
		s.environ = append(s.environ, "THE_LOOP_SLACK_BOT_TOKEN=")
		code, r := s.runLifecycle("start")
		if code != exitFailed || r.OK || r.Services[0].Outcome != sessions.OutcomeFailed || !strings.Contains(r.Services[0].Detail, "THE_LOOP_SLACK_BOT_TOKEN") || !r.Sessions[0].Running {
			t.Errorf("exit code %d, %+v", code, r)
		}
	})
}

func TestInTheForegroundStartStaysAndTheSessionsOutliveIt(t *testing.T) {
	t.Parallel()
	for name, slack := range map[string]bool{"with Slack": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t, localslack.Options{})
			s.stopAtEnd()
			if !slack {
				data, err := os.ReadFile(s.configPath())
				if err != nil {
					t.Fatal(err)
				}
				s.writeConfig(strings.Replace(string(data), "slack: {enabled: true", "slack: {enabled: false", 1))
			}
			cmd := s.command(context.Background(), "start", "--foreground")
			var errs strings.Builder
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			s.poll("the session runs", func() bool { _, st := s.status(); return st.Sessions[0].Running && st.Bot.Running == slack })
			if slack {
				s.announcementTS()
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, &errs)
			}
			if _, st := s.status(); !st.Sessions[0].Running || st.Bot.Running {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestABotThatIsKilledIsReportedAndStartedAgain(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.stopAtEnd()
	_, r := s.runLifecycle("start")
	if err := syscall.Kill(r.Services[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.poll("status sees it", func() bool { code, st := s.status(); return code == exitFailed && !st.Bot.Running })
	if code, again := s.runLifecycle("start"); code != exitOK || again.Services[0].Outcome != sessions.OutcomeStarted || again.Sessions[0].Outcome != sessions.OutcomeAlreadyRunning {
		t.Errorf("exit code %d, %+v", code, again)
	}
}

// What is told of a bot that could not start must not grow, and must be for its owner only.
func TestTheBotsFilesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.stopAtEnd()
	s.runLifecycle("start")
	for _, file := range []string{"bot.err", "bot.log", "events.jsonl"} {
		info, err := os.Stat(filepath.Join(s.dir, "logs", file))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(s.dir, "logs", "bot.err")); err != nil || len(data) != 0 {
		t.Errorf("bot.err holds %q, %v", data, err)
	}
}

// R3.5: the surfaces are thin. What the command prints is what the core says.
func TestR3_5_TheCommandPrintsTheCoresRows(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.mustRun("standing", "start", "helper")
	var rows []sessions.Row
	if err := json.Unmarshal([]byte(s.mustRun("standing", "list", "--format", "json")), &rows); err != nil {
		t.Fatal(err)
	}
	_, st := s.status()
	if len(rows) != 1 || len(st.Sessions) != 1 || rows[0].ID == "" || rows[0].ID != st.Sessions[0].ID || rows[0].Conversation != st.Sessions[0].Conversation {
		t.Errorf("list %+v, status %+v", rows, st.Sessions)
	}
}

// R3.2: the records of standing sessions are where nothing looks for a work item's.
func TestR3_2_StandingSessionsHaveANamespaceOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.mustRun("standing", "start", "helper")
	entries, err := os.ReadDir(filepath.Join(s.dir, "local"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "standing" || !entries[0].IsDir() {
		t.Errorf("%v, %v", entries, err)
	}
	if code, _, _ := s.run(context.Background(), "standing", "start", "github:owner/repo#15"); code != exitUsage {
		t.Errorf("a work item is taken for a session: exit code %d", code)
	}
}

func TestDeleteAsksOnATerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("needs script(1) for a terminal")
	}
	s := newTestEnv(t, localslack.Options{})
	s.mustRun("standing", "create", "extra", "--no-start")
	answer := func(text string) string {
		cmd := exec.Command("script", "-qec", os.Args[0]+" standing delete extra", "/dev/null")
		cmd.Env, cmd.Dir, cmd.Stdin = s.environ, s.dir, strings.NewReader(text)
		out, _ := cmd.CombinedOutput() // what it printed says it
		return string(out)
	}
	if out := answer("n\n"); !strings.Contains(out, "Delete standing:extra") || !strings.Contains(out, "nothing was deleted") {
		t.Errorf("%q", out)
	}
	if out := answer("y\n"); !strings.Contains(out, "deleted") || strings.Contains(out, "nothing") {
		t.Errorf("%q", out)
	}
}

// What start says of the connection, status says too when it is asked at once; and of a bot that has ended nobody reads that it
// is connected.
func TestStatusAgreesWithTheStartBeforeIt(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.stopAtEnd()
	if code, r := s.runLifecycle("start"); code != exitOK || r.Services[0].Detail == "" && !s.botState().Connected {
		t.Fatalf("start: exit code %d, %+v, and then %+v", code, r, s.botState())
	}
	s.poll("connected", func() bool { return s.botState().Connected })
	s.runLifecycle("stop")
	if st := s.botState(); st.Connected {
		t.Errorf("after its end bot.json says %+v", st)
	}
}

func (s *testEnv) botState() registry.BotState {
	state, _, err := registry.New(s.dir).BotRunning()
	if err != nil {
		s.t.Error(err)
	}
	return state
}
