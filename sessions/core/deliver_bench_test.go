package core_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/tmux/tmuxtest"
)

// runTmux runs one tmux command line on the environment's own server, as a person with a shell would.
func (w *env) runTmux(input string, words ...string) {
	w.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", tmuxtest.Socket(w.dir)}, words...)...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// BenchmarkDeliverLive takes events to a live agent, until its record shows them, and beside each pastes a text with one tmux
// command and does nothing else, and with the wait for the record.
func BenchmarkDeliverLive(b *testing.B) {
	w := newWorkItemEnv(b, nil)
	text := strings.Repeat("some words of an event ", 9)
	w.deliver("first", "the first one") // the agent may only just be coming up
	var deliver, paste, taken time.Duration
	n := 0
	for b.Loop() {
		deliver += timed(func() { w.deliver(fmt.Sprint("d", n), fmt.Sprint(text, n)) })
		pane, before := w.pane(item).ID, len(w.transcriptTexts(item, smallagent.TypeUser))
		begin := time.Now()
		w.runTmux(fmt.Sprint(text, "bare ", n), "load-buffer", "-b", "x", "-", ";", "paste-buffer", "-p", "-r", "-d", "-b", "x", "-t", pane,
			";", "set-buffer", "-b", "y", "\r", ";", "paste-buffer", "-r", "-d", "-b", "y", "-t", pane)
		paste += time.Since(begin)
		w.awaitUserTexts(item, before+1)
		taken += time.Since(begin)
		n++
	}
	b.ReportMetric(float64(deliver.Microseconds())/1000/float64(n), "ms/deliver")
	b.ReportMetric(float64(deliver)/float64(paste), "deliver/paste")
	b.ReportMetric(float64(deliver)/float64(taken), "deliver/paste-until-taken")
}

// BenchmarkDeliverRespawn takes events to a work item whose agent has ended, and beside each makes a bare tmux session with the
// same program and waits as long as the probe.
func BenchmarkDeliverRespawn(b *testing.B) {
	w := newWorkItemEnv(b, nil)
	probe := w.config().Probe
	var respawn, bare time.Duration
	n := 0
	for b.Loop() {
		w.killAgent(item)
		respawn += timed(func() {
			if d := w.deliver(fmt.Sprint("d", n), fmt.Sprint("event ", n)); d.Row.Outcome != sessions.OutcomeResumed {
				b.Fatalf("%+v", d)
			}
		})
		argv := w.agentArgv(item)
		bare += timed(func() {
			w.runTmux("", append([]string{"new-session", "-d", "-e", runAsAgent + "=1", "-s", fmt.Sprint("bare-", n), "--", os.Args[0]}, argv[1:]...)...)
			time.Sleep(probe)
		})
		w.runTmux("", "kill-session", "-t", fmt.Sprint("=bare-", n))
		n++
	}
	b.ReportMetric(float64(respawn.Microseconds())/1000/float64(n), "ms/respawn")
	b.ReportMetric(float64(respawn)/float64(bare), "respawn/new-session+probe")
}
