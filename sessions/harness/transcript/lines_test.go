package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLineEndIsFoundFarFromTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		content string
		want    int64
	}{{"", 0}, {"a", 0}, {"a\n", 2}, {"a\nb", 2}, {long, 0}, {"a\n" + long, 2}, {long + "\n", int64(len(long)) + 1}} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := End(path); err != nil || got != c.want {
			t.Errorf("of %d bytes: %d, %v; want %d", len(c.content), got, err, c.want)
		}
	}
}
