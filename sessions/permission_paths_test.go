package sessions

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPathIsFollowedToWhereItLeads(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(root, path) }
	for _, dir := range []string{"src", "etc/deep"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"src/link": "../etc/deep", "src/dangling": at("etc/new"), "src/loop": "loop", "src/self": "/proc/self/cwd"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, folder string
		want         []string
	}{
		{at("src/x"), "", nil},
		{at("src/not/there"), "", nil},
		{"x", at("src"), []string{at("src/x")}},
		{at("src/link/x"), "", []string{at("etc/deep/x")}},
		{at("src/link"), "", []string{at("etc/deep")}},
		{at("src/dangling"), "", []string{at("etc/new")}},
		{at("src/dangling/x/y"), "", []string{at("etc/new/x/y")}},
		{at("src") + "/../etc/./x", "", []string{at("etc/x")}},
		{at("src/link") + "/../x", "", []string{at("src/x"), at("etc/x")}},
		{"link/../x", at("src"), []string{at("src/x"), at("etc/x")}},
		{at("src") + "//x", "", []string{at("src/x")}},
		{"~/no-such-folder-of-a-test/x", at("src"), []string{filepath.Join(home, "no-such-folder-of-a-test/x")}},
		{"~other/x", at("src"), []string{at("src/~other/x")}},
	} {
		got, err := resolvePath(c.path, c.folder)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s in %s: %v\n%s", c.path, c.folder, err, diff)
		}
	}
	for _, path := range []string{at("src/loop/x"), at("src/self/x"), "/proc/self/root/etc/passwd", "relative", "/a\x00b"} {
		if got, err := resolvePath(path, ""); err == nil {
			t.Errorf("%q leads to %q", path, got)
		}
	}
	ask := PermissionRequest{Cwd: at("src/link"), File: "x"}.ResolvePaths()
	if diff := cmp.Diff(PermissionRequest{Cwd: at("src/link"), File: "x", CwdTargets: []string{at("etc/deep")}, FileTargets: []string{at("etc/deep/x")}}, ask); diff != "" {
		t.Error(diff)
	}
	if ask := (PermissionRequest{Cwd: "/", File: at("src/loop")}).ResolvePaths(); !ask.Unresolved {
		t.Error("a loop leads somewhere")
	}
}
