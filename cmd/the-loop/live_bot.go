package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"the-loop/cmd/internal/config"
)

// demoBot is the bot of the demo: "serve" as a process of its own, so that it can be killed.
type demoBot struct {
	program   string
	args      []string
	environ   []string
	errorPath string // the file of what it says when it ends with an error

	mu     sync.Mutex // guards the fields that follow
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

func newDemoBot(c *cli, cfg *config.Config, tokens map[string]string) (*demoBot, error) {
	program, err := stableProgramPath(c.env.self, filepath.Join(cfg.StateRoot, "run"))
	if err != nil {
		return nil, err
	}
	b := &demoBot{program: program, args: []string{"serve", "--" + flagDetached, "--config", c.configPath, "--" + flagSocket, c.tmuxSocket},
		environ: os.Environ(), errorPath: botErrorPath(cfg.StateRoot)}
	for name, value := range tokens {
		b.environ = append(b.environ, name+"="+value)
	}
	return b, os.MkdirAll(filepath.Dir(b.errorPath), 0o700)
}

// start starts it, unless it runs. A goroutine waits for its end; stop waits for that.
func (b *demoBot) start() error {
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
	cmd := exec.Command(b.program, b.args...)
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

// up reports whether it runs. The caller holds mu.
func (b *demoBot) isRunningLocked() bool {
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

// running is the process's number, 0 when there is none.
func (b *demoBot) pid() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isRunningLocked() {
		return 0
	}
	return b.cmd.Process.Pid
}

// end sends a signal and waits until it has ended.
func (b *demoBot) signalAndWait(ctx context.Context, sig os.Signal) error {
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

// stop asks it to end, and kills it when it does not.
func (b *demoBot) stop(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, botStopTimeout)
	defer cancel()
	if b.signalAndWait(asked, syscall.SIGTERM) == nil {
		return nil
	}
	return b.signalAndWait(ctx, syscall.SIGKILL)
}

// lastError is why it ended, if it did.
func (b *demoBot) lastError() string { return lastLine(b.errorPath) }
