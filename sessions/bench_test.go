package sessions_test

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
	"the-loop/sessions/eventlog/eventlogtest"
	"the-loop/sessions/harness"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
	"the-loop/sessions/tmux/tmuxtest"
)

// sleeper is a harness that costs nothing, so that what is measured is the-loop and tmux.
var sleeper = harness.Template{Title: "sleeper", Binary: "sleep", Args: []string{"100000"}, ResumeArgs: []string{"100000"}}

// fleet is a world of n declared sessions of sleepers, on a tmux whose every call is counted.
func fleet(b *testing.B, n int) (*world, func() int) {
	b.Helper()
	w := &world{t: b, dir: tmuxtest.Dir(b), events: &eventlogtest.Recorder{}}
	calls, binary := filepath.Join(w.dir, "calls"), filepath.Join(w.dir, "tmux")
	path, err := exec.LookPath("tmux")
	if err != nil {
		b.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nprintf x >>%s\nexec %s \"$@\"\n", calls, path)
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		b.Fatal(err)
	}
	w.tmux = tmuxtest.StartIn(b, w.dir, tmux.Options{})
	counted, err := tmux.New(tmux.Options{SocketPath: tmuxtest.Socket(w.dir), Dir: filepath.Join(w.dir, "c"), Binary: binary})
	if err != nil {
		b.Fatal(err)
	}
	w.registry = registry.New(filepath.Join(w.dir, "state"))
	w.cfg = sessions.Config{Enabled: true, RemainOnExit: true, Resume: true, KillGrace: time.Second}
	for i := range n {
		w.cfg.Declared = append(w.cfg.Declared, sessions.Definition{Name: "s" + strconv.Itoa(i), Source: sessions.SourceDeclared,
			Harness: "sleeper", Cwd: w.dir, AutoStart: true})
	}
	w.Core = sessions.New(sessions.Options{Terminal: counted, Store: w.registry, Sink: w.events, Config: w.config, Harnesses: harness.NewSet(sleeper).Get})
	return w, func() int {
		data, err := os.ReadFile(calls)
		if err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
		return len(data)
	}
}

func (w *world) allUp(b *testing.B) {
	b.Helper()
	if all, err := w.StartAll(b.Context()); err != nil || all.Failed() != 0 {
		b.Fatalf("%d of %d failed, %v: %+v", all.Failed(), len(all.Rows), err, all.Rows[0])
	}
}

func (w *world) allDown(b *testing.B) {
	b.Helper()
	if all, err := w.StopAll(b.Context()); err != nil || all.Failed() != 0 {
		b.Fatalf("%d of %d failed, %v", all.Failed(), len(all.Rows), err)
	}
}

// BenchmarkList is what status and standing list do. The number of tmux invocations must not grow with the sessions.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w, calls := fleet(b, n)
			w.allUp(b)
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
			w.allDown(b)
		})
	}
}

// BenchmarkStartStop starts and stops 100 sessions and, beside it, 100 bare tmux sessions, one after the other and eight at
// a time, as a person with a shell would.
func BenchmarkStartStop(b *testing.B) {
	const n = 100
	w, calls := fleet(b, n)
	bare := filepath.Join(tmuxtest.Dir(b), "s")
	keep := exec.Command("tmux", "-f", "/dev/null", "-S", bare, "new-session", "-d", "-s", "keep", "sleep", "100000")
	if out, err := keep.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Cleanup(func() { tmuxtest.EndServer(b, bare) })
	var start, stop, bareStart, bareStop, bareStart8, bareStop8 time.Duration
	loops, before := 0, 0
	for b.Loop() {
		before = calls()
		start += timed(func() { w.allUp(b) })
		stop += timed(func() { w.allDown(b) })
		before = calls() - before
		bareStart += timed(func() { each(b, n, 1, bare, "new-session", "-d", "-s", "s%d", "sleep", "100000") })
		bareStop += timed(func() { each(b, n, 1, bare, "kill-session", "-t", "=s%d") })
		bareStart8 += timed(func() { each(b, n, 8, bare, "new-session", "-d", "-s", "s%d", "sleep", "100000") })
		bareStop8 += timed(func() { each(b, n, 8, bare, "kill-session", "-t", "=s%d") })
		loops++
	}
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(loops) / n }
	b.ReportMetric(per(start), "ms/start")
	b.ReportMetric(per(stop), "ms/stop")
	b.ReportMetric(float64(start)/float64(bareStart), "start/bare")
	b.ReportMetric(float64(stop)/float64(bareStop), "stop/bare")
	b.ReportMetric(float64(start)/float64(bareStart8), "start/bare-8")
	b.ReportMetric(float64(stop)/float64(bareStop8), "stop/bare-8")
	b.ReportMetric(float64(before)/n, "tmux-calls/session")
}

func timed(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

// each runs a tmux command n times, so many at once.
func each(b *testing.B, n, atOnce int, socket string, words ...string) {
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
