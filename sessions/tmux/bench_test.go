package tmux_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/tmux/tmuxtest"
)

// BenchmarkDeliver sets a guarded delivery against its floor, one bare tmux invocation with the same load, paste and
// submit and nothing that looks. Both are taken in turn, so that the machine's moods meet both.
func BenchmarkDeliver(b *testing.B) {
	for name, size := range map[string]int{"200B": 200, "40kB": 40_000} {
		b.Run(name, func(b *testing.B) {
			f := newEnv(b)
			pane := f.spawn("a")
			text := strings.Repeat("x", size)
			var ours, floor []time.Duration
			got := 0
			for b.Loop() {
				ours = append(ours, measure(b, func() error {
					return f.Paste(b.Context(), sessions.Paste{Target: pane.Target(), Text: text, Submit: "\r"})
				}))
				got += len(framedText(text))
				f.awaitBytes("a", got)
				floor = append(floor, measure(b, func() error { return pasteUnguarded(b, f, pane, text) }))
				got += len(framedText(text))
				f.awaitBytes("a", got)
			}
			report(b, "p50", ours, floor, 50)
			report(b, "p99", ours, floor, 99)
		})
	}
}

// awaitBytes waits until the agent got that many bytes, so that one text's reading is not taken for the next one's typing.
func (f *tmuxEnv) awaitBytes(name string, bytes int) {
	f.t.Helper()
	tmuxtest.Await(f.t, "the text", func() bool {
		info, err := os.Stat(filepath.Join(f.dir, name, "log"))
		return err == nil && info.Size() >= int64(bytes)
	})
}

// pasteUnguarded is the floor.
func pasteUnguarded(b *testing.B, f *tmuxEnv, pane sessions.Pane, text string) error {
	cmd := exec.CommandContext(b.Context(), "tmux", "-u", "-S", tmuxtest.Socket(f.dir), "load-buffer", "-b", "bare", "-", ";",
		"paste-buffer", "-p", "-r", "-d", "-b", "bare", "-t", pane.ID, ";", "set-buffer", "-b", "bare", "\r", ";",
		"paste-buffer", "-r", "-d", "-b", "bare", "-t", pane.ID)
	cmd.Stdin = bytes.NewReader([]byte(text))
	return cmd.Run()
}

func measure(b *testing.B, do func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

func report(b *testing.B, name string, ours, floor []time.Duration, percent int) {
	at := func(d []time.Duration) float64 {
		d = slices.Sorted(slices.Values(d))
		return float64(d[(len(d)-1)*percent/100])
	}
	b.ReportMetric(at(ours)/at(floor), name+"-ratio")
	b.ReportMetric(at(ours)/1e6, name+"-ms")
}
