package attachments

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"the-loop/threads/chat"
)

func TestNamesOfFilesMeanNothingToADiskAShellOrAnAgent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 200)
	for name, want := range map[string]string{
		"plan.txt":                 "plan.txt",
		"../../etc/passwd":         "passwd",
		`C:\Users\ann\report.docx`: "report.docx",
		"..":                       "file",
		"":                         "file",
		".bashrc":                  "bashrc",
		"-rf":                      "rf",
		"a b\nc\x1b[31m.png":       "a_b_c_31m.png",
		"x\u202egnp.exe":           "xgnp.exe",
		"$(rm -rf ~);`id`.sh":      "rm_-rf_____id_.sh",
		"Überblick 2026.pdf":       "Überblick_2026.pdf",
		"报告.md":                    "报告.md",
		"nul":                      "file-nul",
		"COM1.txt":                 "file-COM1.txt",
		"aux.tar.gz":               "file-aux.tar.gz",
		"Claude.md":                "file-Claude.md",
		"AGENTS.md":                "file-AGENTS.md",
		"dots...":                  "dots",
		"a.tar.gz":                 "a.tar.gz",
		long + ".txt":              strings.Repeat("é", 50) + ".txt",
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q becomes %q; want %q", name, got, want)
		}
	}
}

func FuzzSafeNames(f *testing.F) {
	f.Add("a.txt", "A.TXT")
	f.Add("../x", "\x00")
	f.Fuzz(func(t *testing.T, one, two string) {
		names := safeNames([]chat.File{{Name: one}, {Name: two}, {Name: one}})
		seen := map[string]bool{}
		for _, n := range names {
			if seen[strings.ToLower(n)] || n == "" || len(n) > 150 || !utf8.ValidString(n) || strings.ContainsAny(n, "/\\\x00\n ") || strings.ContainsAny(n[:1], ".-") {
				t.Errorf("%q and %q become %q", one, two, names)
			}
			seen[strings.ToLower(n)] = true
		}
	})
}

func TestDuplicatesAreNumbered(t *testing.T) {
	t.Parallel()
	got := safeNames([]chat.File{{Name: "a.png"}, {Name: "A.png"}, {Name: "a-2.png"}, {Name: "x/a.png"}})
	if diff := cmp.Diff([]string{"a.png", "A-2.png", "a-2-2.png", "a-3.png"}, got); diff != "" {
		t.Error(diff)
	}
}

func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func fileMode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestTheInboxIsForUsAloneAndCommittedNowhere(t *testing.T) {
	t.Parallel()
	in := inbox{dir: t.TempDir(), ts: "1.2"}
	if err := os.Mkdir(filepath.Join(in.dir, inboxName), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := in.store("a.txt", 0, writeText("one")); err != nil {
		t.Fatal(err)
	}
	if err := in.store("a.txt", 3, func(io.Writer) error { return errors.New("fetched twice") }); err != nil {
		t.Error(err)
	}
	if err := in.store("a.txt", 5, writeText("whole")); err != nil { // what is there is not what was announced
		t.Error(err)
	}
	if data, err := os.ReadFile(in.path("a.txt")); string(data) != "whole" {
		t.Errorf("%q, %v", data, err)
	}
	if ignore, err := os.ReadFile(filepath.Join(in.dir, inboxName, ".gitignore")); string(ignore) != "*\n" {
		t.Errorf("%q, %v", ignore, err)
	}
	for path, want := range map[string]os.FileMode{inboxName: os.ModeDir | 0o700, inboxName + "/1.2": os.ModeDir | 0o700, inboxName + "/1.2/a.txt": 0o600} {
		if got := fileMode(t, filepath.Join(in.dir, path)); got != want {
			t.Errorf("%s has mode %s; want %s", path, got, want)
		}
	}
}

func TestWhatCouldNotBeFetchedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	in := inbox{dir: t.TempDir(), ts: "1.2"}
	lost := errors.New("the connection broke")
	err := in.store("a.txt", 0, func(w io.Writer) error {
		_, err := io.WriteString(w, "hal")
		return errors.Join(err, lost)
	})
	if !errors.Is(err, lost) {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(in.path("a.txt")))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// The agent, or a repository, may have placed links where the files of replies go.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(dir, outside string) error{
		"the inbox": func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, inboxName)) },
		"the inbox, within the folder": func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "src"), 0o700), os.Symlink("src", filepath.Join(dir, inboxName)))
		},
		"the reply's folder": func(dir, outside string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, inboxName), 0o700), os.Symlink(outside, filepath.Join(dir, inboxName, "1.2")))
		},
		"a file in place of the inbox": func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, inboxName), nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, outside := inbox{dir: t.TempDir(), ts: "1.2"}, t.TempDir()
			if err := place(in.dir, outside); err != nil {
				t.Fatal(err)
			}
			var final *chat.FileError
			if err := in.store("a.txt", 0, writeText("x")); !errors.As(err, &final) || !strings.Contains(final.Why, "remove it") {
				t.Errorf("%v", err)
			}
			for _, dir := range []string{outside, filepath.Join(in.dir, "src")} {
				if left, _ := os.ReadDir(dir); len(left) != 0 {
					t.Errorf("%v was written", left)
				}
			}
		})
	}
	in, outside := inbox{dir: t.TempDir(), ts: "1.2"}, filepath.Join(t.TempDir(), "victim")
	folder := filepath.Dir(in.path("a.txt"))
	for _, err := range []error{os.MkdirAll(folder, 0o700), os.WriteFile(outside, []byte("kept"), 0o600),
		os.Symlink(outside, in.path("a.txt")), os.Symlink(outside, filepath.Join(folder, ".a.txt.part")),
		os.Symlink(outside, filepath.Join(in.dir, inboxName, ".gitignore")), os.Symlink(outside, filepath.Join(in.dir, inboxName, ".gitignore.part"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := in.store("a.txt", 0, writeText("new")); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(outside); string(data) != "kept" {
		t.Errorf("a file outside was written: %q", data)
	}
	if m := fileMode(t, in.path("a.txt")); !m.IsRegular() {
		t.Errorf("the file is %s", m)
	}
}

// What replies brought goes a month later, when another one brings something. What else lies there stays.
func TestTheInboxForgetsTheFilesOfAMonthAgo(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	for _, ts := range []string{"1700000000.000001", "1702500000.000001"} {
		if err := (inbox{dir: dir, ts: ts}).store("a.txt", 0, writeText("one")); err != nil {
			t.Fatal(err)
		}
	}
	box := filepath.Join(dir, inboxName)
	if err := errors.Join(os.Mkdir(filepath.Join(box, "2024"), 0o700), os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600),
		os.Symlink(outside, filepath.Join(box, "1600000000.000001"))); err != nil {
		t.Fatal(err)
	}
	if err := (inbox{dir: dir, ts: "1702600000.000001"}).store("a.txt", 0, writeText("one")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(box)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != ".gitignore 1702500000.000001 1702600000.000001 2024" {
		t.Errorf("there are %s", got)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

// A file of a reply for which there is no room in the session's folder is not given up.
func TestAFileWaitsForRoom(t *testing.T) {
	in := inbox{dir: t.TempDir(), ts: "1.000000"}
	err := in.store("a.txt", 0, func(io.Writer) error { return fmt.Errorf("write: %w", syscall.ENOSPC) })
	var final *chat.FileError
	if errors.As(err, &final) || !isDiskFull(err) {
		t.Errorf("keep: %v", err)
	}
	if err := in.diskError(syscall.EACCES); !errors.As(err, &final) {
		t.Errorf("another failure of the disk: %v", err)
	}
	if err := in.diskError(syscall.ENOSPC); errors.As(err, &final) || !isDiskFull(err) {
		t.Errorf("a full disk: %v", err)
	}
}
