package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What packages may allocate before main, in bytes: it tells what they do then, and does not depend on how busy the machine
// is. An agent waits for each of its hooks, and each is a process of its own.
const (
	maxOwnInitBytes   = 120_000 // of one of our packages
	maxOtherInitBytes = 300_000 // of any other one
	maxTotalInitBytes = 1_500_000
)

func TestAHookStartsWithoutHeavyWork(t *testing.T) {
	t.Parallel()
	report := filepath.Join(t.TempDir(), "s.jsonl")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "report", "hook", report)
	cmd.Env = append(os.Environ(), runVariable+"=1", "GODEBUG=inittrace=1")
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hello"}`)
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, trace.String())
	}
	if data, err := os.ReadFile(report); err != nil || !bytes.Contains(data, []byte("UserPromptSubmit")) {
		t.Errorf("reported %q, %v", data, err)
	}
	total, packages := 0, 0
	for line := range strings.Lines(trace.String()) {
		var name string
		var at, clock float64
		var size, allocs int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &clock, &size, &allocs); err != nil {
			continue
		}
		packages++
		total += size
		if limit := initLimit(name); size > limit {
			t.Errorf("%s allocates %d bytes before main, of at most %d: leave that to who first needs it", name, size, limit)
		}
	}
	if packages < 20 || total > maxTotalInitBytes {
		t.Errorf("%d packages allocate %d bytes before main, of at most %d", packages, total, maxTotalInitBytes)
	}
}

func initLimit(name string) int {
	if name == "main" || strings.HasPrefix(name, modulePath+"/") {
		return maxOwnInitBytes
	}
	return maxOtherInitBytes
}
