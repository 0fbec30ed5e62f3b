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
	"sessions/core":                  {"sessions", "sessions/envstate"},
	"sessions/envstate":              {"sessions/process"},
	"sessions/process":               {},
	"sessions/loop":                  {},
	"sessions/statefile":             {},
	"sessions/tmux":                  {"sessions", "sessions/process"},
	"sessions/tmux/tmuxtest":         {"sessions", "sessions/process", "sessions/tmux"},
	"sessions/registry":              {"sessions", "sessions/statefile"},
	"sessions/eventlog":              {"sessions"},
	"sessions/eventlog/eventlogtest": {"sessions"},
	"sessions/harness":               {"sessions", "sessions/process", "sessions/harness/"},
	"sessions/harness/transcript":    {"sessions"},
	"sessions/harness/permission":    {"sessions"},
	"sessions/harness/screen":        {"sessions"},
	"sessions/harness/report":        {"sessions", "sessions/harness/permission"},
	"sessions/harness/claude":        agent,
	"sessions/harness/codex":         agent,
	"sessions/harness/gemini":        agent,
	"sessions/harness/opencode":      agent,
	"sessions/harness/smallagent":    agent,
	"sessions/harness/harnesstest":   {"sessions"},
	"threads":                        {"authz", "sessions", "sessions/statefile", "threads/"},
	"threads/catchup":                {"threads/binding", "threads/chat"},
	"threads/chat":                   {"authz"},
	"threads/receipts":               {"sessions", "threads/binding", "threads/chat"},
	"threads/relay":                  {"sessions", "threads/actor", "threads/attachments", "threads/binding", "threads/chat", "threads/outbox"},
	"threads/status":                 {"sessions", "threads/actor", "threads/binding", "threads/chat", "threads/outbox"},
	"threads/actor":                  {},
	"threads/binding":                {"sessions", "sessions/statefile", "threads/actor", "threads/chat", "threads/permission"},
	"threads/outbox":                 {"threads/chat", "sessions/statefile"},
	"threads/permission":             {"threads/chat", "sessions"},
	"threads/attachments":            {"threads/chat", "sessions"},
	"bot":                            {"authz", "bot/", "sessions", "sessions/core", "threads/"},
	"bot/slack":                      {"authz", "bot/slack/lenientjson", "bot/slack/scrub", "threads/chat"},
	"bot/slack/lenientjson":          {},
	"bot/slack/scrub":                {},
	"bot/slack/socket":               {"bot/slack", "bot/slack/lenientjson", "threads/chat"},
	"bot/slack/app":                  {"authz", "bot/slack", "bot/slack/socket", "threads/chat"},
	"bot/command":                    {"authz", "bot/render", "sessions", "threads", "threads/chat"},
	"bot/interact":                   {"authz", "bot/command", "bot/render", "bot/slack", "bot/slack/lenientjson", "sessions", "threads/"},
	"bot/reconcile":                  {"bot/render", "sessions", "sessions/statefile", "threads/"},
	"bot/render":                     {"bot/render/visible", "sessions", "threads/chat"},
	"bot/render/visible":             {"sessions"},
	"bot/control":                    {"authz", "sessions", "threads"},
	"bot/github":                     {"authz", "sessions", "sessions/statefile", "threads/chat"},
	"bot/localslack":                 {"bot/localslack/blockkit", "bot/localslack/events", "bot/localslack/faults", "bot/localslack/slackerr", "bot/localslack/slackid", "bot/localslack/slacktime", "bot/localslack/socket", "bot/localslack/store", "bot/localslack/webapi"},
	"bot/localslack/blockkit":        {"bot/localslack/slackerr", "bot/localslack/slackid"},
	"bot/localslack/wiretest":        {},
	"bot/localslack/events":          {"bot/localslack/slackerr", "bot/localslack/socket", "bot/localslack/store"},
	"bot/localslack/faults":          {"bot/localslack/slacktime"},
	"bot/localslack/page":            {"bot/localslack", "bot/localslack/blockkit", "bot/localslack/slackerr", "bot/localslack/slackid", "bot/localslack/slacktime", "bot/localslack/store", "bot/localslack/webapi"},
	"bot/localslack/slackerr":        {},
	"bot/localslack/slackid":         {},
	"bot/localslack/slacktime":       {},
	"bot/localslack/socket":          {"bot/localslack/faults", "bot/localslack/slackerr", "bot/localslack/slackid", "bot/localslack/store"},
	"bot/localslack/store":           {"bot/localslack/blockkit", "bot/localslack/slackerr", "bot/localslack/slackid", "bot/localslack/slacktime"},
	"bot/localslack/webapi":          {"bot/localslack/blockkit", "bot/localslack/events", "bot/localslack/slackerr", "bot/localslack/slackid", "bot/localslack/slacktime", "bot/localslack/store"},
	"cmd/internal/config":            {"authz", "bot/", "sessions/", "threads/"},
	"cmd/internal/demo":              {"authz", "bot/", "cmd/internal/", "sessions/", "threads/"},
	"cmd/the-loop":                   {"authz", "bot/", "cmd/internal/", "sessions/", "threads/"},
}

// agent is what a package that holds one agent may import: the agents do not know each other.
var agent = []string{"sessions", "sessions/process", "sessions/harness/transcript", "sessions/harness/permission",
	"sessions/harness/screen", "sessions/harness/report"}

// shared are the packages that every package may import: they import nothing of ours.
var shared = []string{"sessions/loop"}

// topLevelFolders are the top-level ones that there may be.
var topLevelFolders = []string{"authz", "bot", "cmd", "sessions", "testdata", "threads"}

func TestImportsKeepToTheLayout(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	for _, file := range goFiles(t, root) {
		pkg := path.Dir(file)
		allowed, known := layout[pkg]
		allowed = slices.Concat(allowed, shared)
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
