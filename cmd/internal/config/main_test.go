package config

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folderOfOurs is a temporary folder without links in its path and with mode 0700.
func folderOfOurs(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	chmod(t, dir, 0o700)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// at is a loader whose folders do not depend on the machine.
func at() Loader { return Loader{Workdir: "/w", Home: "/home/op"} }

// parse reads text as if it were the file c.yaml.
func parse(text string) (*Config, error) { return at().parse("/etc/loop/c.yaml", []byte(text)) }

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := parse(text)
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return c
}
