package bot_test

import (
	"syscall"
	"testing"
	"time"
)

func TestTheExitOfAnAgentIsNoticed(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("heard")
	if err := syscall.Kill(a.pane().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	a.waitBotMessage("*heard* is down")
	if took := time.Since(killed); took > 15*time.Second { // half of what a bot that only asks would need
		t.Errorf("it was noticed after %s", took)
	}
}
