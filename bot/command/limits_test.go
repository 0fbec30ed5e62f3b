package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"the-loop/bot/render"
)

func TestWhatIsCreatedFromSlackStaysWithinTheLimits(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(root, "in"), filepath.Join(outside, "deep"), filepath.Join(dir, "rooted")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, to string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("root/away", outside)
	link("root/home", filepath.Join(root, "in"))
	link("alias", root)
	l := Limits{CwdRoots: []string{filepath.Join(dir, "alias"), "/not/there"}, Harnesses: []string{"claude", "codex"}}
	for cwd, want := range map[string]string{
		root:                         root,
		filepath.Join(root, "in"):    filepath.Join(root, "in"),
		filepath.Join(root, "home"):  filepath.Join(root, "in"),
		dir + "/alias/in":            filepath.Join(root, "in"),
		root + "/in/../in/.":         filepath.Join(root, "in"),
		outside:                      "",
		filepath.Join(root, "away"):  "",
		root + "/away/deep":          "",
		root + "/../outside":         "",
		root + "/in/../../outside":   "",
		filepath.Join(dir, "rooted"): "", // begins like the root
		dir:                          "",
		"/":                          "",
		"in":                         "",
		"":                           "",
		"/not/there/either":          "",
		outside + "/not-there":       "",
	} {
		got, err := l.apply("claude", cwd)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", cwd, got, err, want)
		}
		var field *FieldError
		if err != nil && (!errors.As(err, &field) || field.Field != render.FieldCwd) {
			t.Errorf("%q is refused without its field: %v", cwd, err)
		}
	}
	// Whether a folder outside is there is told to nobody; that one inside is missing is.
	_, there := l.apply("claude", outside)
	_, missing := l.apply("claude", outside+"x")
	if strings.ReplaceAll(missing.Error(), outside+"x", outside) != there.Error() {
		t.Errorf("it shows what is there: %v; %v", there, missing)
	}
	if _, err := l.apply("claude", dir+"/alias/missing"); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("a missing folder within: %v", err)
	}
	var field *FieldError
	if _, err := l.apply("gemini", root); !errors.As(err, &field) || field.Field != render.FieldHarness || !strings.Contains(err.Error(), "create.harnesses allows claude, codex") {
		t.Errorf("another harness: %v", err)
	}
	if got, err := (Limits{}).apply("any", "/any"); got != "/any" || err != nil {
		t.Errorf("without limits: %q, %v", got, err)
	}
	if got := l.AllowedHarnesses([]string{"codex", "gemini"}); len(got) != 1 || got[0] != "codex" {
		t.Errorf("to choose from: %v", got)
	}
}

func TestWordsAreReadAsTheyWereMeant(t *testing.T) {
	t.Parallel()
	takes := map[string]bool{"cwd": true, "share": false}
	w, err := parseArgs("name —cwd “/two words” –share — say “hello” — now", takes)
	if err != nil || len(w.positional) != 1 || w.positional[0] != "name" || w.flags["cwd"] != "/two words" || !w.hasFlag("share") || w.brief != "say “hello” — now" {
		t.Errorf("read %+v, %v", w, err)
	}
	if w, err := parseArgs("--cwd=/x a b --", takes); err != nil || len(w.positional) != 2 || w.flags["cwd"] != "/x" || w.brief != "" {
		t.Errorf("read %+v, %v", w, err)
	}
	for _, text := range []string{"--cwd", "--share=yes", "--harness-arg x", "--prompt-file /etc/passwd"} {
		if _, err := parseArgs(text, takes); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
