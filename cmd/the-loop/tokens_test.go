package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/cmd/internal/config"
)

// unprivilegedUser is a user for whom walls hold: we ourselves, or nobody where we are root.
func unprivilegedUser() *syscall.Credential {
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 65534, 65534
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}
}

// chownTree makes a folder and all in it another user's.
func chownTree(t *testing.T, who *syscall.Credential, dir string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(who.Uid), int(who.Gid)))
	}); err != nil {
		t.Fatal(err)
	}
}

// readEnviron is what another program of that user is shown of a process's environment.
func readEnviron(pid int, who *syscall.Credential) (string, error) {
	cmd := exec.Command("cat", fmt.Sprintf("/proc/%d/environ", pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	cmd.Dir = "/"
	out, err := cmd.Output()
	return string(out), err
}

// The bot shuts itself before it reads a token: while it still waits for the pipe that they come on, no program of its user can
// look into it.
func TestTheBotIsUndumpableBeforeItReadsItsTokens(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("only Linux has a way to prevent it")
		return
	}
	s := newTestEnv(t, localslack.Options{})
	who := unprivilegedUser()
	program := filepath.Join(s.dir, "program")
	copyFile(t, os.Args[0], program)
	chownTree(t, who, s.dir)
	start := func(name string, args ...string) (*exec.Cmd, io.WriteCloser, io.Reader) {
		cmd := exec.Command(name, args...)
		cmd.Env, cmd.Dir = withoutVariables(s.environ, []string{"THE_LOOP_SLACK_BOT_TOKEN", "THE_LOOP_SLACK_APP_TOKEN"}), s.dir
		cmd.Env = append(cmd.Env, "THE_LOOP_GH_WEBHOOK_SECRET=webhook-canary")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd, in, out
	}
	// One that is not the bot can be looked into, so that the test sees what it says it sees.
	other, _, _ := start("sleep", "600")
	s.poll("an ordinary process is readable", func() bool {
		environ, err := readEnviron(other.Process.Pid, who)
		return err == nil && strings.Contains(environ, "webhook-canary")
	})
	bot, in, out := start(program, "serve", "--"+flagTokens)
	s.poll("the bot is shut", func() bool {
		_, err := readEnviron(bot.Process.Pid, who)
		return err != nil && bot.Process.Signal(syscall.Signal(0)) == nil
	})
	tokens := map[string]string{"THE_LOOP_SLACK_BOT_TOKEN": s.slack.BotToken(), "THE_LOOP_SLACK_APP_TOKEN": s.slack.AppToken()}
	if err := errors.Join(json.NewEncoder(in).Encode(tokens), in.Close()); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "ready:" {
		t.Fatalf("it says %q (%v)", line, err)
	}
	if environ, err := readEnviron(bot.Process.Pid, who); err == nil {
		t.Errorf("a program of the same user reads %d bytes of the bot's environment", len(environ))
	}
}

// A bot in the background was never given a token in its environment, and what it starts gets none.
func TestNoProcessIsStartedWithATokenInItsEnvironment(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	s.mustRun("start")
	defer s.mustRun("stop")
	for _, pid := range s.processes() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // it has ended, or is shut
		}
		for _, token := range []string{s.slack.BotToken(), s.slack.AppToken()} {
			if strings.Contains(string(environ), token) {
				args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Errorf("process %d has a token in its environment: %q", pid, args)
			}
		}
	}
}

// processes are those that have this site's configuration in their environment, and those whose arguments name its folder.
func (s *testEnv) processes() (pids []int) {
	s.t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		var pid int
		if _, err := fmt.Sscanf(d.Name(), "%d", &pid); err != nil {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "environ"))
		args, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline"))
		if strings.Contains(string(environ)+string(args), s.dir) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	if len(pids) < 3 { // the bot, the tmux server, the agent
		s.t.Fatalf("only %d processes are this site's", len(pids))
	}
	return pids
}

// What was read is gone from the environment, whatever it is called.
func TestTokensAreTakenOutOfTheEnvironment(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"BOT": "xoxb-1", "APP": "xapp-1", "HOOK": "secret", "HOME": "/home"}
	c := &cli{env: environment{getenv: func(name string) string { return environ[name] },
		unsetenv: func(name string) error { delete(environ, name); return nil }}}
	cfg := &config.Config{}
	cfg.Slack.BotTokenEnv, cfg.Slack.AppTokenEnv, cfg.GitHubWebhook.SecretEnv = "BOT", "APP", "HOOK"
	own, err := c.takeTokens(cfg)
	if err != nil || own["BOT"] != "xoxb-1" || own["APP"] != "xapp-1" || own["HOOK"] != "secret" {
		t.Errorf("took %d (%v)", len(own), err)
	}
	if len(environ) != 1 || environ["HOME"] == "" {
		t.Errorf("%d variables are left", len(environ))
	}
	if left := withoutVariables([]string{"BOT=x", "BOTTLE=y", "A=BOT=z"}, cfg.SecretNames()); !slices.Equal(left, []string{"BOTTLE=y", "A=BOT=z"}) {
		t.Errorf("left %v", left)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}
