package envstate

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseReadsALine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`A=value`:                     "value",
		`export A=value`:              "value",
		"export\tA=value":             "value",
		`  A = two words  `:           "two words",
		`A=`:                          "",
		`A=""`:                        "",
		`A=''`:                        "",
		`A=x # comment`:               "x",
		`A= # comment`:                "",
		`A=#kept`:                     "#kept",
		`A=x#kept`:                    "x#kept",
		`A="x # kept" # gone`:         "x # kept",
		`A='x' # gone`:                "x",
		`A=k=v==`:                     "k=v==",
		`A="a\"b\\c\$d\` + "`" + `e"`: "a\"b\\c$d`e",
		`A="a\nb\rc\td"`:              "a\nb\rc\td",
		`A="C:\dir\u"`:                `C:\dir\u`,
		`A='$HOME \n "x"'`:            `$HOME \n "x"`,
		`A=$HOME`:                     "$HOME",
		`A=back\slash`:                `back\slash`,
		`A={"k": "v"}`:                `{"k": "v"}`,
		`A=it's`:                      "it's",
		`A="  blanks  "`:              "  blanks  ",
		"A=x\r":                       "x",
		"A=\"x\"\r":                   "x",
		"\ufeffA=x":                   "x",
		"A=ü\xff":                     "ü\xff",
	} {
		file, err := Parse(strings.NewReader(line))
		if err != nil || len(file.Malformed) > 0 {
			t.Errorf("%q: malformed %v, error %v", line, file.Malformed, err)
			continue
		}
		if diff := cmp.Diff(map[string]string{"A": want}, map[string]string(file.Values())); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestParseNamesMalformedLinesByNumber(t *testing.T) {
	t.Parallel()
	lines := []string{
		"A=1",
		"no equals sign",
		"# comment",
		"",
		"   # comment after blanks",
		"=value",
		"1A=x",
		"A-B=x",
		"A B=x",
		"export",
		"export A",
		`Q="a"b`,
		`Q="a"#b`,
		`Q='a''b'`,
		strings.Repeat("n", maxName+1) + "=x",
		"N=a\x00b",
		"export=fine",
		"Z=last",
	}
	file, err := Parse(strings.NewReader(strings.Join(lines, "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}; !slices.Equal(file.Malformed, want) {
		t.Errorf("malformed lines %v, want %v", file.Malformed, want)
	}
	if want := []string{"A", "export", "Z"}; !slices.Equal(file.Names, want) {
		t.Errorf("names %v, want %v", file.Names, want)
	}
}

// A key of several lines is one value, whichever way it is quoted and its lines end, and none of its lines is a name.
func TestQuotedValuesGoOnOverLines(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\nMIIEvQ==\nkSecretTail9Zg==\n# no comment\nB=\n-----END KEY-----"
	for written, want := range map[string]string{
		`"` + key + `"`:                                 key,
		`'` + key + "\n'":                               key + "\n",
		"  \"" + key + `" # comment`:                    key,
		`"` + strings.ReplaceAll(key, "=", `=\"`) + `"`: strings.ReplaceAll(key, "=", `="`),
		"\"\\\nx\"":                                     "\\\nx",
		"'it\n\"is'":                                    "it\n\"is",
	} {
		for _, end := range []string{"\n", "\r\n"} {
			text := strings.ReplaceAll("A=1\nexport KEY="+written+"\nnone\nZ=2\n", "\n", end)
			file, err := Parse(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"A": "1", "KEY": want, "Z": "2"}, map[string]string(file.Values())); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
			if line := strings.Count(written, "\n") + 3; !slices.Equal(file.Malformed, []int{line}) {
				t.Errorf("%q: malformed lines %v, want %d", text, file.Malformed, line)
			}
		}
	}
}

// Where nobody can tell any more what is a name, nothing is taken for one.
func TestNothingAfterAnOpenQuoteIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"A=1\nQ=\"open\nsecretTail=\n":          {2, 3},
		"A=1\r\nQ='open\r\nsecretTail=x":        {2, 3},
		"A=1\nQ=\"a\\\"\n\n# c\nsecretTail=":    {2, 3, 4, 5},
		"A=1\nQ=\"one\nB=\"two\nsecretTail=\nx": {2, 3, 4, 5}, // the first was never closed
		"A=1\nQ=\"x\" \"y\nsecretTail=\n\"":     {2, 3, 4},
		"A=1\n2Q=\"x\nsecretTail=":              {2, 3},
		"A=1\nQ=`x\nsecretTail=\n`":             {2, 3, 4},
	} {
		file, err := Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(file.Names, []string{"A"}) || !slices.Equal(file.Malformed, want) {
			t.Errorf("%q: names %v, malformed lines %v; want A and %v", text, file.Names, file.Malformed, want)
		}
	}
	// A name that is none may have a value of several lines.
	file, err := Parse(strings.NewReader("2Q=\"x\nsecretTail=\n\"\nA=1"))
	if err != nil || !slices.Equal(file.Names, []string{"A"}) || !slices.Equal(file.Malformed, []int{1, 2, 3}) {
		t.Errorf("names %v, malformed lines %v, error %v", file.Names, file.Malformed, err)
	}
}

func TestLaterDuplicateCounts(t *testing.T) {
	t.Parallel()
	file, err := Parse(strings.NewReader("A=1\nB=2\nA=3\nA=\"malformed"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"A": "3", "B": "2"}, map[string]string(file.Values())); diff != "" {
		t.Error(diff)
	}
	if want := []string{"A", "B"}; !slices.Equal(file.Names, want) {
		t.Errorf("names %v, want %v", file.Names, want)
	}
}

func TestParseReportsTheReaderAndTheSize(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := Parse(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
	if _, err := Parse(strings.NewReader(strings.Repeat("#", maxFile+1))); err == nil {
		t.Error("a file beyond the size was taken")
	}
}

// A value goes through each way of writing it unchanged.
func TestQuotingRoundTrip(t *testing.T) {
	t.Parallel()
	double := strings.NewReplacer(`"`, `\"`, `\`, `\\`, `$`, `\$`, "`", "\\`", "\n", `\n`, "\r", `\r`, "\t", `\t`)
	rapid.Check(t, func(t *rapid.T) {
		value := strings.ReplaceAll(rapid.String().Draw(t, "value"), "\x00", "")
		single := strings.ReplaceAll(strings.ReplaceAll(value, "'", ""), "\r\n", "\n")
		name := rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,20}`).Draw(t, "name")
		before := rapid.SampledFrom([]string{"", "\n", "X=1\n", "# c\r\n", "\"\n"}).Draw(t, "before")
		tail := rapid.SampledFrom([]string{"", "\n", "\r\n", " # it's \"c\"\n", "\t#\r\n"}).Draw(t, "tail")
		for written, want := range map[string]string{
			`"` + double.Replace(value) + `"`: value,
			`'` + single + `'`:                single,
		} {
			file, err := Parse(strings.NewReader(before + "export " + name + "=" + written + tail))
			if got, ok := file.Values()[name]; err != nil || !ok || got != want {
				t.Fatalf("%s: got %q (%v, %v), want %q", written, got, ok, err, want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "A=1", "export B='x'\r\n", "\ufeff#\nC=\"\\", "=\n==\n\x00", "A=1 #\nA=\"\\n\"", "A='\nB=\r\n'\nC=\"", "1='\n'x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse(strings.NewReader(text))
		if err != nil {
			t.Skip()
		}
		values := file.Values()
		if len(values) != len(file.Names) {
			t.Fatalf("%d values and %d names", len(values), len(file.Names))
		}
		lines := strings.Count(text, "\n") + 1
		for _, name := range file.Names {
			if !validName(name) || strings.ContainsRune(values[name], 0) {
				t.Fatalf("%q=%q cannot be a variable", name, values[name])
			}
		}
		if !slices.IsSorted(file.Malformed) || len(file.Malformed)+len(file.Names) > lines {
			t.Fatalf("malformed lines %v of %d", file.Malformed, lines)
		}
	})
}

func TestNotConfiguredIsNotADeclarationOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := ReadFile(""); !errors.Is(err, ErrNotConfigured) {
		t.Errorf("no path: %v, want ErrNotConfigured", err)
	}
	empty := writeFile(t, "", 0o600)
	file, err := ReadFile(empty)
	if err != nil || len(file.Values()) != 0 || file.Warning != "" {
		t.Errorf("empty file: %v values, warning %q, error %v", len(file.Values()), file.Warning, err)
	}
}

func TestDeclaredNamesAPathThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	big := writeFile(t, strings.Repeat("A=secretvalue\n", maxFile/10), 0o600)
	for _, path := range []string{filepath.Join(dir, "gone"), dir, pipe, big} {
		_, err := ReadFile(path)
		if err == nil || errors.Is(err, ErrNotConfigured) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want one that names %s", err, path)
		}
	}
}

func TestDeclaredIsAFreshRead(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "A=old", 0o600)
	for _, want := range []string{"old", "new"} {
		if err := os.WriteFile(path, []byte("A="+want), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := ReadFile(path)
		if err != nil || file.Values()["A"] != want {
			t.Errorf("got %q, %v, want %q", file.Values()["A"], err, want)
		}
	}
}

func TestFileThatOthersCanReadIsWarnedAbout(t *testing.T) {
	t.Parallel()
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o644: true, 0o602: true} {
		path := writeFile(t, "A=1", mode)
		file, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := file.Warning != ""; got != warned || warned && !strings.Contains(file.Warning, path) {
			t.Errorf("mode %o: warning %q", mode, file.Warning)
		}
	}
}

func TestSplitRefusesNamesOfTmuxAndReservedOnes(t *testing.T) {
	t.Parallel()
	values := map[string]string{"KEY": "1", "TERM": "2", "PWD": "3", "TMUX": "4", "TMUX_PANE": "5", "PATH": "6", "MY_TOKEN": "7"}
	pass, refused := Split(values, "MY_TOKEN", "NOT_THERE")
	if diff := cmp.Diff(map[string]string{"KEY": "1", "PATH": "6"}, map[string]string(pass)); diff != "" {
		t.Error(diff)
	}
	if want := []string{"MY_TOKEN", "PWD", "TERM", "TMUX", "TMUX_PANE"}; !slices.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	if len(values) != 7 {
		t.Error("the argument was changed")
	}
}

func writeFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "env-"+strconv.FormatUint(uint64(mode), 8))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}
