package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// modulePath is the module's path; go.mod is the other place that has it.
const modulePath = "the-loop"

// layout says which of our packages each package may import, in code that is not a test. A trailing slash means the
// packages below too.
var layout = map[string][]string{
	"authz":                          {},
	"sessions":                       {"sessions/envstate"},
	"sessions/envstate":              {},
	"sessions/tmux":                  {"sessions"},
	"sessions/tmux/tmuxtest":         {"sessions", "sessions/tmux"},
	"sessions/harness":               {"sessions", "sessions/harness/smallagent"},
	"sessions/harness/harnesstest":   {},
	"sessions/harness/smallagent":    {},
	"sessions/registry":              {"sessions"},
	"sessions/eventlog":              {"sessions"},
	"sessions/eventlog/eventlogtest": {"sessions"},
	"threads":                        {"authz", "sessions", "threads/"},
	"threads/chat":                   {"authz"},
	"bot":                            {"threads", "threads/chat", "sessions", "authz", "bot/render", "bot/slack/"},
	"bot/render":                     {"sessions", "threads/chat"},
	"bot/slack":                      {"authz", "threads/chat"},
	"bot/control":                    {"sessions", "authz", "threads"},
	"bot/webhook":                    {"sessions", "authz"},
	"bot/localslack":                 {},
	"cmd/internal/config":            {"authz", "bot/", "sessions/", "threads/"},
	"cmd/the-loop":                   {"authz", "bot/", "cmd/internal/", "sessions/", "threads/"},
}

// topLevelFolders are the top-level ones that there may be.
var topLevelFolders = []string{"authz", "bot", "cmd", "sessions", "testdata", "threads"}

func TestImportsKeepToTheLayout(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for _, file := range goFiles(t, root) {
		pkg := path.Dir(file)
		allowed, known := layout[pkg]
		if !known {
			t.Errorf("%s: the layout knows no package %s", file, pkg)
			continue
		}
		for _, imported := range importsOf(t, filepath.Join(root, file)) {
			ours, is := strings.CutPrefix(imported, modulePath+"/")
			if is && !slices.ContainsFunc(allowed, func(a string) bool { return isAllowedImport(a, ours) }) {
				t.Errorf("%s imports %s, which the layout does not allow", file, imported)
			}
			if strings.HasPrefix(imported, "github.com/slack-go/") && !isAllowedImport("bot/", pkg) {
				t.Errorf("%s imports %s: only bot and what is below it may", file, imported)
			}
		}
	}
}

func isAllowedImport(allowed, pkg string) bool {
	below, tree := strings.CutSuffix(allowed, "/")
	return pkg == below || tree && strings.HasPrefix(pkg, allowed)
}

// goFiles are the files of Go code that are not tests, from root, with slashes.
func goFiles(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && p != root):
			return fs.SkipDir
		case strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go"):
			rel, err := filepath.Rel(root, p)
			files = append(files, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func importsOf(t *testing.T, file string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestTheTopLevelHasNoOtherFolder(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevelFolders, e.Name()) {
			t.Errorf("there is a folder %s", e.Name())
		}
	}
}
