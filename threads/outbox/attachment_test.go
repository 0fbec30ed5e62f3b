package outbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A value that lies across the parts in which a file is looked through is found.
func TestASecretIsFoundWhereverItLies(t *testing.T) {
	t.Parallel()
	o := &Outbox{o: Options{IsSecret: func(text string) bool { return strings.Contains(text, "hunter2") }}}
	for _, at := range []int{0, scanChunk - scanOverlap - 3, scanChunk - 3, 2*scanChunk - scanOverlap - 3, 3 * scanChunk} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(strings.Repeat("x", at)+"hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := checkSecrets(f, o.o.IsSecret); err == nil {
			t.Errorf("at %d it is not found", at)
		}
	}
}
