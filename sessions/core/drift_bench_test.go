package core_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"the-loop/sessions/envstate"
)

// BenchmarkDrift is how status compares environments, against bare reads of the same /proc files in the same run. There is
// one tmux invocation for all of them.
func BenchmarkDrift(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w, calls := newCountedFleet(b, n)
			path := w.writeEnvFile("TOKEN=old", "OTHER=1")
			w.startAll(b)
			pids := w.pids(b)
			before, loops, bare, parse := calls(), 0, time.Duration(0), time.Duration(0)
			for b.Loop() {
				if d := w.Drift(b.Context()); d.Running != n || d.Stale != 0 || d.Unknown != 0 {
					b.Fatalf("%d running, %d stale, %d unknown, %s", d.Running, d.Stale, d.Unknown, d.Problem)
				}
				b.StopTimer()
				bare += timed(func() { readEnvirons(b, pids) })
				parse += timed(func() { compareEnvirons(b, pids, path) })
				loops++
				b.StartTimer()
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(loops) / float64(n)
			floor := float64(bare.Nanoseconds()) / float64(loops) / float64(n)
			b.ReportMetric(float64(calls()-before)/float64(loops), "tmux-calls/op")
			b.ReportMetric(each/1000, "µs/session")
			b.ReportMetric(floor/1000, "bare-µs/session")
			b.ReportMetric(each/floor, "×bare")
			b.ReportMetric(float64(parse.Nanoseconds())/float64(loops)/float64(n)/1000, "parsed-µs/session")
			w.stopAll(b)
		})
	}
}

func (w *env) pids(b *testing.B) (pids []int) {
	b.Helper()
	panes, err := w.tmux.Panes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range panes {
		pids = append(pids, p.PID)
	}
	return pids
}

func readEnvirons(b *testing.B, pids []int) {
	for _, pid := range pids {
		if _, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ"); err != nil {
			b.Fatal(err)
		}
	}
}

// compareEnvirons is what the comparison cannot do without: the file once, and every environment taken apart.
func compareEnvirons(b *testing.B, pids []int, path string) {
	file, err := envstate.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	declared := file.Values()
	for _, pid := range pids {
		if held, ok := envstate.ProcessEnviron(b.Context(), pid); !ok || len(envstate.Compare(declared, held)) > 0 {
			b.Fatal("an environment is not as it should be")
		}
	}
}
