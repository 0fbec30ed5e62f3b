package main

import (
	"os"
	"os/exec"
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

func took(b *testing.B, cmd *exec.Cmd) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}
