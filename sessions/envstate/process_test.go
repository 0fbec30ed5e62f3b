package envstate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProcessEnvironReadsAnotherProcess(t *testing.T) {
	t.Parallel()
	want := map[string]string{"KEY": "a value = with signs", "EMPTY": "", "MULTI": "line\nline", childEnv: "1"}
	pid := child(t, "KEY="+want["KEY"], "EMPTY=", "MULTI="+want["MULTI"])
	got, ok := ProcessEnviron(t.Context(), pid)
	if !ok {
		t.Fatal("not known")
	}
	if diff := cmp.Diff(want, map[string]string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestProcessEnvironReadsItsOwnProcess(t *testing.T) {
	t.Parallel()
	got, ok := ProcessEnviron(t.Context(), os.Getpid())
	if want, set := os.LookupEnv("PATH"); !ok || set && got["PATH"] != want {
		t.Errorf("known %v, PATH %q, want %q", ok, got["PATH"], want)
	}
}

func TestWithoutProcPsIsAsked(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("no ps")
	}
	want := map[string]string{"KEY": "two words", "OTHER": "x=y", "EMPTY": "", childEnv: "1"}
	pid := child(t, "KEY="+want["KEY"], "OTHER="+want["OTHER"], "EMPTY=")
	got, ok := platform{proc: t.TempDir(), ps: "ps"}.environ(t.Context(), pid)
	if !ok {
		t.Fatal("not known")
	}
	if diff := cmp.Diff(want, map[string]string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryFailureIsNotKnown(t *testing.T) {
	t.Parallel()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	gone := ended.Process.Pid
	for name, ask := range map[string]func() (Values, bool){
		"ended process":     func() (Values, bool) { return ProcessEnviron(t.Context(), gone) },
		"no such pid":       func() (Values, bool) { return ProcessEnviron(t.Context(), 1<<30) },
		"pid zero":          func() (Values, bool) { return ProcessEnviron(t.Context(), 0) },
		"negative pid":      func() (Values, bool) { return ProcessEnviron(t.Context(), -1) },
		"context has ended": func() (Values, bool) { return ProcessEnviron(done, os.Getpid()) },
		"neither proc nor ps": func() (Values, bool) {
			return platform{proc: t.TempDir(), ps: "/no/such/ps"}.environ(t.Context(), os.Getpid())
		},
		"ps knows no such process": func() (Values, bool) {
			return platform{proc: t.TempDir(), ps: "ps"}.environ(t.Context(), gone)
		},
		"not readable": func() (Values, bool) {
			return platform{proc: unreadableProc(t), ps: "/no/such/ps"}.environ(t.Context(), 7)
		},
		"nothing, as of a zombie": func() (Values, bool) { return parseEnviron("") },
		"overwritten by a title":  func() (Values, bool) { return parseEnviron("tool: working\x00\x00\x00A=1\x00") },
		"padded with NULs":        func() (Values, bool) { return parseEnviron("A=1\x00\x00\x00") },
		"cut short":               func() (Values, bool) { return parseEnviron("A=1\x00B=2") },
		"ps printed no variable":  func() (Values, bool) { return parsePS("words A=1") },
	} {
		if values, ok := ask(); ok || len(values) > 0 {
			t.Errorf("%s: known, %v", name, values)
		}
	}
}

func TestFirstOfTwoEqualNamesCounts(t *testing.T) {
	t.Parallel()
	got, ok := parseEnviron("A=1\x00B=2\x00A=3\x00")
	if !ok || got["A"] != "1" || len(got) != 2 {
		t.Errorf("known %v, A=%q", ok, got["A"])
	}
}

// unreadableProc is a folder in which the environ of process 7 cannot be read.
func unreadableProc(t *testing.T) string {
	t.Helper()
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "7", "environ"), 0o700); err != nil {
		t.Fatal(err)
	}
	return proc
}

// BenchmarkDrift compares reading, parsing and comparing with the bare read of the same file; ratio is the quotient.
func BenchmarkDrift(b *testing.B) {
	environ := make([]string, 30)
	declared := map[string]string{}
	for i := range environ {
		name, value := fmt.Sprintf("VARIABLE_%d", i), fmt.Sprintf("value-%040d", i)
		environ[i] = name + "=" + value
		if i < 10 {
			declared[name] = value
		}
	}
	pid := child(b, environ...)
	path := filepath.Join("/proc", strconv.Itoa(pid), "environ")
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile(path); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("drift", func(b *testing.B) {
		for b.Loop() {
			actual, ok := ProcessEnviron(b.Context(), pid)
			if !ok || len(Compare(declared, actual)) > 0 {
				b.Fatal("drift where there is none")
			}
		}
	})
}
