package core_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/core"
	"the-loop/sessions/eventlog/eventlogtest"
	"the-loop/sessions/harness"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// sleepHarness is a harness that costs nothing, so that what is measured is the-loop and tmux.
var sleepHarness = harness.Template{Title: "sleeper", Binary: "sleep", Args: []string{"100000"}, ResumeArgs: []string{"100000"}}

// newCountedFleet is a fleet on a tmux whose every call is counted.
func newCountedFleet(b *testing.B, n int) (*env, func() int) {
	b.Helper()
	dir := tmuxtest.Dir(b)
	calls, binary := filepath.Join(dir, "calls"), filepath.Join(dir, "tmux")
	path, err := exec.LookPath("tmux")
	if err != nil {
		b.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nprintf x >>%s\nexec %s \"$@\"\n", calls, path)
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		b.Fatal(err)
	}
	return newFleet(b, n, binary), func() int {
		data, err := os.ReadFile(calls)
		if err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
		return len(data)
	}
}

// newFleet is an environment with n declared sessions of sleepers.
func newFleet(b *testing.B, n int, binary string) *env {
	b.Helper()
	w := &env{t: b, dir: tmuxtest.Dir(b), events: &eventlogtest.Recorder{}}
	w.tmux = tmuxtest.StartIn(b, w.dir, tmux.Options{})
	terminal, err := tmux.New(tmux.Options{SocketPath: tmuxtest.Socket(w.dir), Dir: filepath.Join(w.dir, "c"), Binary: binary})
	if err != nil {
		b.Fatal(err)
	}
	w.registry = registry.New(filepath.Join(w.dir, "state"))
	w.cfg = core.Config{Enabled: true, RemainOnExit: true, Resume: true, KillGrace: time.Second}
	for i := range n {
		w.cfg.Declared = append(w.cfg.Declared, sessions.Definition{Name: "s" + strconv.Itoa(i), Source: sessions.SourceDeclared,
			Harness: "sleeper", Cwd: w.dir, AutoStart: true})
	}
	w.Core = core.New(core.Options{Terminal: terminal, Store: w.registry, Sink: w.events, Config: w.config, Harnesses: harness.NewSet(sleepHarness).Get})
	return w
}

func (w *env) startAll(b *testing.B) {
	b.Helper()
	if all, err := w.StartAll(b.Context()); err != nil || all.Failed() != 0 {
		b.Fatalf("%d of %d failed, %v: %+v", all.Failed(), len(all.Rows), err, all.Rows[0])
	}
}

func (w *env) stopAll(b *testing.B) {
	b.Helper()
	if all, err := w.StopAll(b.Context()); err != nil || all.Failed() != 0 {
		b.Fatalf("%d of %d failed, %v", all.Failed(), len(all.Rows), err)
	}
}

// BenchmarkList is what status and standing list do. The number of tmux invocations must not grow with the sessions.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w, calls := newCountedFleet(b, n)
			w.startAll(b)
			before, loops := calls(), 0
			for b.Loop() {
				rows, err := w.List(b.Context())
				if err != nil || len(rows) != n || !rows[0].Running {
					b.Fatalf("%d rows, %v", len(rows), err)
				}
				loops++
			}
			b.ReportMetric(float64(calls()-before)/float64(loops), "tmux-calls/op")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(loops)/float64(n), "µs/session")
			b.StopTimer()
			w.stopAll(b)
		})
	}
}

// verbTimes is what the verbs on n sessions take, and the same on bare tmux in the same minute.
type verbTimes struct {
	start, stop, status             time.Duration
	bareStart, bareStop, bareStatus time.Duration
}

// BenchmarkScale starts, lists and stops a hundred sessions and a thousand, and beside each does the same with bare tmux: one
// new-session and one kill-session after the other, and for status one list of panes with the bare reads of the records and
// environments. ×10 is how much more a thousand cost than a hundred.
func BenchmarkScale(b *testing.B) {
	var of [2]verbTimes
	loops := 0
	for b.Loop() {
		for i, n := range []int{100, 1000} {
			of[i].measure(b, n)
		}
		loops++
	}
	few, many := of[0], of[1]
	b.ReportMetric(0, "ns/op")
	for name, d := range map[string][4]time.Duration{"start": {few.start, many.start, few.bareStart, many.bareStart},
		"stop": {few.stop, many.stop, few.bareStop, many.bareStop}, "status": {few.status, many.status, few.bareStatus, many.bareStatus}} {
		b.ReportMetric(float64(d[1])/float64(d[0]), name+"-×10")
		b.ReportMetric(float64(d[0])/float64(d[2]), name+"-100/bare")
		b.ReportMetric(float64(d[1])/float64(d[3]), name+"-1000/bare")
		b.ReportMetric(float64(d[1].Milliseconds())/float64(loops), name+"-1000-ms")
	}
}

func (s *verbTimes) measure(b *testing.B, n int) {
	w := newFleet(b, n, "")
	w.writeEnvFile("TOKEN=old", "OTHER=1")
	s.start += timed(func() { w.startAll(b) })
	pids := w.pids(b)
	for range 5 {
		s.status += timed(func() { w.survey(b, n) })
		s.bareStatus += timed(func() {
			w.runTmux("", "list-panes", "-a", "-F", "#{pane_id} #{pane_pid}")
			readEnvirons(b, pids)
			w.readRecords(b, n)
		})
	}
	s.stop += timed(func() { w.stopAll(b) })
	bare := filepath.Join(tmuxtest.Dir(b), "s")
	keep := exec.Command("tmux", "-f", "/dev/null", "-S", bare, "new-session", "-d", "-s", "keep", "sleep", "100000")
	if out, err := keep.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	s.bareStart += timed(func() { runTmuxTimes(b, n, 1, bare, "new-session", "-d", "-s", "s%d", "sleep", "100000") })
	s.bareStop += timed(func() { runTmuxTimes(b, n, 1, bare, "kill-session", "-t", "=s%d") })
	tmuxtest.EndServer(b, bare)
}

// survey calls what status calls.
func (w *env) survey(b *testing.B, n int) {
	b.Helper()
	s, err := w.Survey(b.Context())
	if err != nil || len(s.Rows) != n || !s.Rows[0].Running {
		b.Fatalf("%d rows, %v", len(s.Rows), err)
	}
	if d := s.Drift; d.Running != n || d.Stale != 0 || d.Unknown != 0 {
		b.Fatalf("%d running, %d stale, %d unknown, %s", d.Running, d.Stale, d.Unknown, d.Problem)
	}
}

func (w *env) readRecords(b *testing.B, n int) {
	b.Helper()
	for i := range n {
		if _, err := os.ReadFile(filepath.Join(w.dir, "state", "local", "standing", "s"+strconv.Itoa(i)+".json")); err != nil {
			b.Fatal(err)
		}
	}
}

func timed(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

// runTmuxTimes runs a tmux command n times, so many at once.
func runTmuxTimes(b *testing.B, n, atOnce int, socket string, words ...string) {
	b.Helper()
	gate := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			args := []string{"-f", "/dev/null", "-S", socket}
			for _, word := range words {
				args = append(args, strings.ReplaceAll(word, "%d", strconv.Itoa(i)))
			}
			if out, err := exec.Command("tmux", args...).CombinedOutput(); err != nil {
				b.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
}
