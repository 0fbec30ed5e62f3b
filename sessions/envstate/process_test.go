package envstate

import (
	"fmt"
	"os"
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
