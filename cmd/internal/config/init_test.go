package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInitWritesATrustedConfigThatLoads(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	path := FolderPath(workdir)
	if err := Init(path, InitOptions{Home: home}); err != nil {
		t.Fatal(err)
	}
	found, err := Find("", noEnv, workdir, home)
	if err != nil {
		t.Fatal(err)
	}
	c, err := found.Loader(workdir, home).Load(found.Path)
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("a fresh file warns: %v", w)
	}
	for p, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700, filepath.Join(filepath.Dir(path), SchemaName): 0o600} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", p, info, err)
		}
	}
	if !strings.HasPrefix(string(Starter()), "# yaml-language-server: $schema=./"+SchemaName+"\n") {
		t.Error("editors are not told of the schema")
	}
}

// Whoever removes the marks of the commented keys must get a file that is valid too.
func TestTheStartersCommentedKeysAreValid(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, line := range strings.Split(string(Starter()), "\n") {
		code := strings.TrimLeft(line, " ")
		key, _, isKey := strings.Cut(strings.TrimLeft(strings.TrimPrefix(code, "#"), " -"), ":")
		if strings.HasPrefix(code, "# ") && isKey && !strings.Contains(key, " ") && key != "yaml-language-server" {
			line = strings.Replace(line, "# ", "", 1)
		}
		if line != "  sessions: []" {
			lines = append(lines, line)
			continue
		}
		lines = append(lines, "  sessions:")
	}
	c := mustParse(t, strings.Join(lines, "\n"))
	if len(c.Standing.Sessions) != 1 || c.EnvFile == "" || c.Slack.Channel == "" || c.Standing.Sessions[0].Prompt == "" {
		t.Errorf("not all were uncommented: %+v", c)
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	path := filepath.Join(workdir, "c.yaml")
	writeFile(t, path, "mine")
	err := Init(path, InitOptions{Home: home})
	got, _ := os.ReadFile(path)
	if !errors.Is(err, ErrExists) || string(got) != "mine" {
		t.Errorf("got %q, %v", got, err)
	}
	if there, _ := exists(filepath.Join(workdir, SchemaName)); there {
		t.Error("something was written")
	}
	if err := errors.Join(os.Remove(path), os.Symlink(filepath.Join(home, "elsewhere"), path)); err != nil {
		t.Fatal(err)
	}
	if err := Init(path, InitOptions{Home: home}); !errors.Is(err, ErrExists) {
		t.Errorf("wrote through a link: %v", err)
	}
}

func TestInitWritesNothingWhereOthersCouldChangeIt(t *testing.T) {
	t.Parallel()
	workdir, home := workdirAndHome(t)
	chmod(t, workdir, 0o777)
	err := Init(filepath.Join(workdir, "c.yaml"), InitOptions{Home: home})
	entries, _ := os.ReadDir(workdir)
	if !errors.Is(err, ErrUnsafeFile) || len(entries) != 0 {
		t.Errorf("got %v, %v", entries, err)
	}
	if err := Init(filepath.Join(home, "c.yaml"), InitOptions{}); err == nil {
		t.Error("wrote what it could not accept")
	}
}
