package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout bounds how long a bot may take to exit.
const stopTimeout = 20 * time.Second

// botProcess is the bot of the demo: a process of its own, so that it can be killed.
type botProcess struct {
	command   []string // program and arguments
	environ   []string
	errorPath string // the file in which it says why it ended

	mu     sync.Mutex // guards the fields that follow
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

func newBotProcess(a *App, tokens map[string]string) (*botProcess, error) {
	b := &botProcess{command: a.BotCommand, environ: os.Environ(), errorPath: a.BotErrorPath}
	for name, value := range tokens {
		b.environ = append(b.environ, name+"="+value)
	}
	return b, os.MkdirAll(filepath.Dir(b.errorPath), 0o700)
}

// start starts the bot unless it runs. A goroutine waits for the process; stop waits for that goroutine.
func (b *botProcess) start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isRunningLocked() {
		return nil
	}
	errs, err := os.OpenFile(b.errorPath, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = errs.Close() }()
	cmd := exec.Command(b.command[0], b.command[1:]...)
	cmd.Env, cmd.Stderr, cmd.Dir = b.environ, errs, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for us: we take things down in their order
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the bot: %w", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // how it ended is in its files
	b.cmd, b.exited = cmd, ended
	return nil
}

// isRunningLocked reports whether the bot runs. The caller holds mu.
func (b *botProcess) isRunningLocked() bool {
	if b.cmd == nil {
		return false
	}
	select {
	case <-b.exited:
		return false
	default:
		return true
	}
}

// pid returns the process's number, 0 if the bot is not running.
func (b *botProcess) pid() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isRunningLocked() {
		return 0
	}
	return b.cmd.Process.Pid
}

// signalAndWait sends a signal and waits until the process has exited.
func (b *botProcess) signalAndWait(ctx context.Context, sig os.Signal) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isRunningLocked() {
		return nil
	}
	if err := b.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the bot: %w", err)
	}
	select {
	case <-b.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the bot (process %d) did not exit: %w", b.cmd.Process.Pid, ctx.Err())
	}
}

// stop ends the bot, and kills it if it does not exit within stopTimeout.
func (b *botProcess) stop(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if b.signalAndWait(within, syscall.SIGTERM) == nil {
		return nil
	}
	return b.signalAndWait(ctx, syscall.SIGKILL)
}

// lastError returns the last line of what the bot said when it ended; empty if it said nothing.
func (b *botProcess) lastError() string {
	data, err := os.ReadFile(b.errorPath)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "the-loop: ")
}
