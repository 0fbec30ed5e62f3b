package tmuxtest

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"the-loop/sessions/process"
)

// EndServer ends the tmux server at a socket, and waits for the end of the server and of everything that was started in its
// panes. Only then may a test remove the folders that its agents write to. There need be no server.
func EndServer(t testing.TB, socket string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "tmux", "-N", "-S", socket, "display-message", "-p", "#{pid}").Output()
	server, _ := strconv.Atoi(strings.TrimSpace(string(out))) // none: no server
	endServer(ctx, t, socket, server)
}

// endServer is EndServer for a server whose process is known; 0: none.
func endServer(ctx context.Context, t testing.TB, socket string, server int) {
	t.Helper()
	// Fails when the server has gone with its last pane, which is what is wanted.
	_ = exec.CommandContext(ctx, "tmux", "-N", "-S", socket, "kill-server").Run()
	await(ctx, t, "the tmux server", func() bool { return server == 0 || !IsAlive(server) })
	await(ctx, t, "what was started in the panes", func() bool {
		left := paneProcesses(socket)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that ended meanwhile is gone all the same
		}
		return len(left) == 0
	})
}

// await polls until ok, and says what it waited for when ctx ends.
func await(ctx context.Context, t testing.TB, what string, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Errorf("%s did not end", what)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// paneProcesses lists the processes that were started in panes of the server at a socket, wherever they are by now: tmux gives each
// of them TMUX=SOCKET,PID,SESSION. Where there is no /proc it finds none.
func paneProcesses(socket string) (pids []int) {
	all, _ := process.System().WithVariable("TMUX", socket+",")
	for _, p := range all {
		if IsAlive(p.PID) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}
