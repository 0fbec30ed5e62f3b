package config

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// privateTempDir is a temporary folder without links in its path and with mode 0700.
func privateTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	chmod(t, dir, 0o700)
	return dir
}

func writeFile(t *testing.T, path, text string) {
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

// testLoader is a loader whose folders do not depend on the machine.
func testLoader() Loader { return Loader{Workdir: "/w", Home: "/home/op"} }

// parseText reads text as if it were the file c.yaml.
func parseText(text string) (*Config, error) {
	return testLoader().parse("/etc/loop/c.yaml", []byte(text))
}

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := parseText(text)
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return c
}
