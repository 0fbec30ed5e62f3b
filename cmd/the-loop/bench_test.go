package main

import (
	"os"
	"os/exec"
	"path/filepath"
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
		own += took(b, cmd)
		floor += took(b, exec.Command("true"))
		runs++
	}
	b.ReportMetric(float64(own.Microseconds())/1000/float64(runs), "ms/version")
	b.ReportMetric(float64(own)/float64(floor), "version/true")
}

// BenchmarkHook is how long an agent's hook holds the agent up, beside true(1): the built program reports a tool's use.
func BenchmarkHook(b *testing.B) {
	program, report := filepath.Join(b.TempDir(), "the-loop"), filepath.Join(b.TempDir(), "reports", "s.jsonl")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v: %s", err, out)
	}
	var own, floor time.Duration
	runs := 0
	for b.Loop() {
		for range 20 {
			cmd := exec.Command(program, "report", "hook", report)
			cmd.Stdin = strings.NewReader(`{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hello"}`)
			own += took(b, cmd)
			floor += took(b, exec.Command("true"))
			runs++
		}
	}
	if info, err := os.Stat(report); err != nil || info.Size() == 0 {
		b.Fatal("nothing was reported", err)
	}
	b.ReportMetric(float64(own.Microseconds())/1000/float64(runs), "ms/hook")
	b.ReportMetric(float64(own)/float64(floor), "hook/true")
}

func took(b *testing.B, cmd *exec.Cmd) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}
