package statefile_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions/statefile"
)

// content is what a file of these tests holds.
type content struct {
	Name    string            `json:"name"`
	Note    string            `json:"note,omitempty"`
	Place   place             `json:"place,omitzero"`
	ByID    map[string]place  `json:"byId,omitempty"`
	List    []place           `json:"list"`
	Args    []string          `json:"args"`
	Strings map[string]string `json:"strings,omitempty"`
}

type place struct {
	X int    `json:"x,omitempty"`
	T string `json:"t,omitempty"`
}

var format = statefile.Format[content]{Version: 3, Migrations: map[int]statefile.Migration{
	1: func(doc map[string]any) error {
		doc["name"] = doc["title"]
		delete(doc, "title")
		return nil
	},
	2: statefile.NoChange,
}}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decoded is a file's document.
func decoded(t *testing.T, text string) (doc map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return doc
}

func TestWhatIsSavedIsLoaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "not", "yet", "there", "a.json")
	if _, err := format.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load: %v, want that there is none", err)
	}
	for _, want := range []content{{Name: "<é>&\u2028", Args: []string{}, Place: place{X: 1}}, {Note: "n", ByID: map[string]place{"": {}}}} {
		if err := format.Save(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := format.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for name, mode := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700 | fs.ModeDir, filepath.Dir(filepath.Dir(path)): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode(), mode, err)
		}
	}
	if err := errors.Join(statefile.Remove(path), statefile.Remove(path), statefile.Remove(filepath.Join(path, "x"))); err != nil {
		t.Error(err)
	}
	if _, err := format.Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
}

func TestAFileIsReadable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	if err := format.Save(path, content{Name: "<a>", Args: []string{"b"}}); err != nil {
		t.Fatal(err)
	}
	want := `{
  "version": 3,
  "name": "<a>",
  "list": null,
  "args": [
    "b"
  ]
}
`
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestOlderVersionsAreMigrated(t *testing.T) {
	t.Parallel()
	path := file(t, `{"version": 1, "title": "t", "place": {"x": 12345678}, "later": 12345678901234567890}`)
	before := read(t, path)
	got, err := format.Load(path)
	if err != nil || got.Name != "t" || got.Place.X != 12345678 {
		t.Fatalf("%+v, %v", got, err)
	}
	if read(t, path) != before {
		t.Error("reading changed the file")
	}
	if err := format.Save(path, got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"version": 3., "name": "t", "place": map[string]any{"x": 12345678.}, "list": nil, "args": nil, "later": 12345678901234567890.}
	if diff := cmp.Diff(want, decoded(t, read(t, path))); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(read(t, path), "12345678901234567890") {
		t.Error("a number lost digits")
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file   string
		change func(*content)
		want   string
	}{
		"of the file": {`{"version":3,"name":"a","new":{"deep":[1,{"x":null}]},"list":null,"args":null}`,
			func(c *content) { c.Name = "b" }, `{"version":3,"name":"b","list":null,"args":null,"new":{"deep":[1,{"x":null}]}}`},
		"of an object in it": {`{"version":3,"name":"","place":{"x":1,"new":1},"list":null,"args":null}`,
			func(c *content) { c.Place.X = 2 }, `{"version":3,"name":"","place":{"x":2,"new":1},"list":null,"args":null}`},
		"of an object that is empty to us": {`{"version":3,"name":"","place":{"new":1},"list":null,"args":null}`,
			func(*content) {}, `{"version":3,"name":"","place":{"new":1},"list":null,"args":null}`},
		"of an object that was empty to us": {`{"version":3,"name":"","place":{"new":1},"list":null,"args":null}`,
			func(c *content) { c.Place.X = 2 }, `{"version":3,"name":"","place":{"x":2,"new":1},"list":null,"args":null}`},
		"of entries by key that stay": {`{"version":3,"name":"","byId":{"a":{"x":1,"new":1},"b":{"x":1,"new":2}},"list":null,"args":null}`,
			func(c *content) { delete(c.ByID, "b"); c.ByID["c"] = place{X: 3} },
			`{"version":3,"name":"","byId":{"a":{"x":1,"new":1},"c":{"x":3}},"list":null,"args":null}`},
		"of elements that are the same": {`{"version":3,"name":"","list":[{"x":1,"new":1},{"x":2,"new":2},{"x":2,"new":3}],"args":null}`,
			func(c *content) { c.List = append(c.List[1:], place{X: 1}, place{X: 9}, place{X: 2}) },
			`{"version":3,"name":"","list":[{"x":2,"new":2},{"x":2,"new":3},{"x":1,"new":1},{"x":9},{"x":2}],"args":null}`},
		"but not those of an object that is gone": {`{"version":3,"name":"","place":{"x":1,"new":1},"byId":{"a":{"new":1}},"list":null,"args":null}`,
			func(c *content) { c.Place, c.ByID = place{}, nil }, `{"version":3,"name":"","list":null,"args":null}`},
		"but not what was emptied": {`{"version":3,"name":"a","note":"n","place":{"x":1},"strings":{"a":"b"},"list":[{"x":1}],"args":["a"]}`,
			func(c *content) { *c = content{} }, `{"version":3,"name":"","list":null,"args":null}`},
		"but not another spelling of a field": {`{"Version":3,"NAME":"a","list":null,"args":null}`,
			func(c *content) { c.Name = "b" }, `{"version":3,"name":"b","list":null,"args":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, c.file)
			content, err := format.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			c.change(&content)
			if err := format.Save(path, content); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, c.want), decoded(t, read(t, path))); diff != "" {
				t.Error(diff)
			}
			again, err := format.Load(path)
			if diff := cmp.Diff(content, again); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

// A program that has a field more, then this one, then that program again: nothing is lost.
func TestADowngradeLosesNothing(t *testing.T) {
	t.Parallel()
	type laterPlace struct {
		place
		Y int `json:"y"`
	}
	type later struct {
		Name  string           `json:"name"`
		ByID  map[string]place `json:"byId"`
		Place laterPlace       `json:"place"`
		List  []laterPlace     `json:"list"`
		Extra []string         `json:"extra"`
	}
	newer := statefile.Format[later]{Version: 3}
	path := filepath.Join(t.TempDir(), "a.json")
	want := later{Name: "a", ByID: map[string]place{"b": {X: 1}}, Place: laterPlace{place{X: 1}, 2}, List: []laterPlace{{place{X: 3}, 4}}, Extra: []string{"e"}}
	if err := newer.Save(path, want); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		c, err := format.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		c.Name, c.Place.X = "changed", i+5
		if err := format.Save(path, c); err != nil {
			t.Fatal(err)
		}
	}
	want.Name, want.Place.X = "changed", 6
	got, err := newer.Load(path)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(laterPlace{})); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestAFileThatCannotBeReadIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"empty":                       {"", "not a state file"},
		"torn":                        {`{"version": 3, "name": "x`, "not a state file"},
		"a list":                      {"[]", "not a state file"},
		"null":                        {"null", "not a state file"},
		"two values":                  {`{"version": 3} {}`, "not a state file"},
		"a field of another type":     {`{"version": 3, "name": 1}`, "name"},
		"a newer version":             {`{"version": 4, "name": 1}`, "version 4, from a newer the-loop; this one knows 3"},
		"a version that is no number": {`{"version": "3"}`, "version"},
		"too old":                     {`{"name": "x"}`, "version 0, which this the-loop does not know"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := file(t, c.text)
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			_, loadErr := format.Load(path)
			for verb, err := range map[string]error{"load": loadErr, "save": format.Save(path, content{})} {
				var bad *statefile.UnreadableError
				if !errors.As(err, &bad) || bad.Path != path || strings.Count(err.Error(), path) != 1 || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v, want an UnreadableError with %q", verb, err, c.says)
				}
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || read(t, path) != c.text {
				t.Errorf("the file was touched (%v)", err)
			}
			if err := format.Replace(path, content{Name: "new"}); err != nil {
				t.Error(err)
			}
			if got, err := format.Load(path); err != nil || got.Name != "new" {
				t.Errorf("replaced: %+v, %v", got, err)
			}
		})
	}
}

func TestAMigrationThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("no title")
	f := statefile.Format[content]{Version: 2, Migrations: map[int]statefile.Migration{1: func(map[string]any) error { return broken }}}
	if _, err := f.Load(file(t, `{"version": 1}`)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestOnlyAnObjectIsAStateFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	if err := (statefile.Format[[]int]{Version: 1}).Save(path, []int{1}); err == nil {
		t.Error("a list was saved")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file was made")
	}
}

func TestOnlyAbandonedTemporaryFilesAreSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{".a.json41": 2 * time.Hour, ".a.json42": time.Minute, "a.json7": 2 * time.Hour, ".notes": 2 * time.Hour} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	statefile.Sweep(dir, now.Add(-statefile.StaleTempAge))
	statefile.Sweep(filepath.Join(dir, "none"), now)
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{".a.json42", ".notes", "a.json7"}, left); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
