package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/registry"
)

// service is a part of the-loop that runs beside the sessions.
type service struct {
	Name    string           `json:"name"`
	Enabled bool             `json:"enabled"`
	Running bool             `json:"running"`
	PID     int              `json:"pid,omitempty"`
	Outcome sessions.Outcome `json:"outcome,omitempty"`
	Detail  string           `json:"detail,omitempty"`
}

// serviceBot is the name of the Slack bot among the services.
const serviceBot = "bot"

func (s service) describe() string {
	words := "not running"
	switch {
	case s.Running:
		words = fmt.Sprintf("process %d", s.PID)
	case !s.Enabled && s.Outcome == "":
		words = "disabled (channels.slack.enabled is false)"
	}
	if s.Outcome != "" {
		words += " (" + string(s.Outcome) + ")"
	}
	if s.Detail != "" {
		words += ": " + s.Detail
	}
	return words
}

func (s service) withFailure(format string, args ...any) service {
	s.Outcome, s.Detail = sessions.OutcomeFailed, fmt.Sprintf(format, args...)
	return s
}

// botService returns how the bot is.
func (a *app) botService() (service, registry.BotState) {
	s := service{Name: serviceBot, Enabled: a.cfg().Slack.Enabled}
	state, alive, err := a.registry.BotRunning()
	if err != nil && !alive {
		s.Detail = err.Error()
	}
	if alive {
		s.Running, s.PID = true, state.PID
	}
	return s, state
}

// How long a bot may take to say that it is ready, and to end.
const (
	botStartTimeout   = 20 * time.Second
	botConnectTimeout = 3 * time.Second // how long a start waits for Slack once the bot is ready
	botStopTimeout    = 20 * time.Second
	botPollInterval   = 20 * time.Millisecond
)

// startBot starts the bot in the background and waits until it is ready. Slack may be down meanwhile.
func (c *cli) startBot(ctx context.Context, a *app) service {
	s, _ := a.botService()
	switch {
	case s.Running:
		s.Outcome = sessions.OutcomeAlreadyRunning
		return s
	case !s.Enabled:
		return s
	}
	cmd, err := c.spawnBot(a.cfg())
	if err != nil {
		return s.withFailure("%v", err)
	}
	defer func() { _ = cmd.Process.Release() }()
	b := &botStart{app: a, pid: cmd.Process.Pid}
	switch err := b.wait(ctx); {
	case b.exited && b.otherHasLock: // somebody else started one at the same time
		s, _ = a.botService()
		s.Outcome = sessions.OutcomeAlreadyRunning
		return s
	case b.exited:
		return s.withFailure("%s", lastBotError(a.cfg().StateRoot))
	case err != nil:
		return s.withFailure("process %d is not ready (%v): see logs/bot.log", b.pid, err)
	}
	s.Running, s.PID, s.Outcome = true, b.pid, sessions.OutcomeStarted
	if !b.connected {
		s.Detail = "not connected to Slack yet"
	}
	return s
}

// botStart is a bot that was started and has not said how it is.
type botStart struct {
	app          *app
	pid          int
	ready        bool // it has the lock and its loops run
	connected    bool
	exited       bool
	otherHasLock bool // another bot has the lock
}

// wait waits until the bot is ready, and then for a moment until it is connected or Slack has refused it.
func (b *botStart) wait(ctx context.Context) error {
	ready, cancel := context.WithTimeout(ctx, botStartTimeout)
	defer cancel()
	if err := pollUntil(ready, func() bool { b.refresh(); return b.exited || b.ready }); err != nil || b.exited {
		return err
	}
	moment, cancel := context.WithTimeout(ctx, botConnectTimeout)
	defer cancel()
	_ = pollUntil(moment, func() bool { b.refresh(); return b.exited || b.connected }) // Slack may be away
	return nil
}

func (b *botStart) refresh() {
	var status unix.WaitStatus
	if pid, _ := unix.Wait4(b.pid, &status, unix.WNOHANG, nil); pid == b.pid {
		b.exited = true
	}
	state, alive, _ := b.app.registry.BotRunning()
	ours := alive && state.PID == b.pid
	b.ready = ours && !state.Written.IsZero()
	b.connected = b.ready && state.Connected
	b.otherHasLock = alive && !ours
}

// spawnBot runs "serve" in a session and a process group of its own, so that no key and no end of our terminal reaches it.
// What it says when it ends with an error goes to a file of its own. Its tokens come on a pipe.
func (c *cli) spawnBot(cfg *config.Config) (*exec.Cmd, error) {
	root := cfg.StateRoot
	self, err := stableProgramPath(c.env.self, filepath.Join(root, "run"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(botErrorPath(root)), 0o700); err != nil {
		return nil, err
	}
	errs, err := os.OpenFile(botErrorPath(root), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = errs.Close() }()
	tokens, err := newTokenPipe(c.readTokens(cfg))
	if err != nil {
		return nil, fmt.Errorf("pass the tokens to the bot: %w", err)
	}
	defer func() { _ = tokens.Close() }()
	args := []string{"serve", "--" + flagDetached, "--" + flagTokens}
	if c.configPath != "" {
		args = append(args, "--config", c.env.abs(c.configPath))
	}
	cmd := exec.Command(self, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = c.env.workdir, tokens, errs
	cmd.Env = withoutSessionVariables(withoutVariables(os.Environ(), cfg.SecretNames()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the bot: %w", err)
	}
	return cmd, nil
}

// withoutSessionVariables is an environment without the session of a pane that the bot may be started beside: it outlives that pane, and is
// nobody's agent.
func withoutSessionVariables(environ []string) []string {
	return slices.DeleteFunc(environ, func(entry string) bool {
		return strings.HasPrefix(entry, sessionVariable+"=") || strings.HasPrefix(entry, instanceVariable+"=")
	})
}

// pollUntil looks every few milliseconds, until ok or the end of ctx.
func pollUntil(ctx context.Context, ok func() bool) error {
	tick := time.NewTicker(botPollInterval)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// botErrorPath is where a bot in the background says why it ended. Each start begins it anew.
func botErrorPath(root string) string { return filepath.Join(root, "logs", "bot.err") }

// lastBotError is why the last bot in the background ended.
func lastBotError(root string) string {
	if last := lastLine(botErrorPath(root)); last != "" {
		return last
	}
	return "it exited immediately: see logs/bot.log"
}

// lastLine is the last line of a file, without the program's name; empty when there is none.
func lastLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "the-loop: ")
}

// stopBot asks the process that has the bot's lock to end, and waits until it has let go of it.
func (a *app) stopBot(ctx context.Context) service {
	s, state := a.botService()
	switch {
	case !s.Running && s.Enabled:
		s.Outcome = sessions.OutcomeAlreadyStopped
		return s
	case !s.Running:
		return s
	case s.PID <= 1:
		return s.withFailure("its process id is not known yet: try again")
	}
	if err := a.terminateBot(state); err != nil {
		return s.withFailure("cannot signal process %d: %v", s.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, botStopTimeout)
	defer cancel()
	if err := pollUntil(ctx, func() bool { return !a.holdsBotLock(state) }); err != nil {
		return s.withFailure("it did not stop within %s: see logs/bot.log", botStopTimeout)
	}
	s.Running, s.Outcome = false, sessions.OutcomeStopped
	return s
}

// terminateBot sends TERM. The process is held by its descriptor before the lock is asked again, so that a number that was
// given away meanwhile is not signalled.
func (a *app) terminateBot(state registry.BotState) error {
	p, err := os.FindProcess(state.PID)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }()
	if !a.holdsBotLock(state) {
		return nil
	}
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// holdsBotLock reports whether that bot has the lock.
func (a *app) holdsBotLock(state registry.BotState) bool {
	now, alive, _ := a.registry.BotRunning()
	return alive && now.PID == state.PID && now.Started.Equal(state.Started)
}
