package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkVersion is how long the program takes to start and end, beside true(1).
func BenchmarkVersion(b *testing.B) {
	var own, floor time.Duration
	runs := 0
	for b.Loop() {
		cmd := exec.Command(os.Args[0], "version")
		cmd.Env = append(os.Environ(), runVariable+"=1")
		own += measureRun(b, cmd)
		floor += measureRun(b, exec.Command("true"))
		runs++
	}
	b.ReportMetric(float64(own.Microseconds())/1000/float64(runs), "ms/version")
	b.ReportMetric(float64(own)/float64(floor), "version/true")
}

// BenchmarkHook is how long an agent's hook holds the agent up, beside true(1) and a program in Go that does nothing: the built
// program reports a tool's use. Medians, since a busy machine makes some of each slow.
func BenchmarkHook(b *testing.B) {
	program, report := filepath.Join(b.TempDir(), "the-loop"), filepath.Join(b.TempDir(), "reports", "s.jsonl")
	buildProgram(b, ".", program)
	bare := filepath.Join(b.TempDir(), "bare")
	if err := os.WriteFile(bare+".go", []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	buildProgram(b, bare+".go", bare)
	var own, floor, empty []time.Duration
	for b.Loop() {
		for range 50 {
			cmd := exec.Command(program, "report", "hook", report)
			cmd.Stdin = strings.NewReader(`{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hello"}`)
			own = append(own, measureRun(b, cmd))
			floor = append(floor, measureRun(b, exec.Command("true")))
			empty = append(empty, measureRun(b, exec.Command(bare)))
		}
	}
	if info, err := os.Stat(report); err != nil || info.Size() == 0 {
		b.Fatal("nothing was reported", err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(own).Microseconds())/1000, "ms/hook")
	b.ReportMetric(float64(median(own))/float64(median(floor)), "hook/true")
	b.ReportMetric(float64(median(own))/float64(median(empty)), "hook/bare-go")
}

func buildProgram(b *testing.B, source, program string) {
	b.Helper()
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		b.Fatalf("build: %v: %s", err, out)
	}
}

func median(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func measureRun(b *testing.B, cmd *exec.Cmd) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}
