package registry

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
	"the-loop/sessions/statefile"
)

func TestRecordComesBackAsItWasSaved(t *testing.T) {
	t.Parallel()
	r := New(filepath.Join(t.TempDir(), "not", "yet", "there"))
	want := validRecord("one")
	save(t, r, want)
	for _, r := range []*Registry{r, New(r.root)} {
		got, err := r.Load(t.Context(), want.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	// Omitted and empty arguments differ.
	for _, args := range [][]string{nil, {}} {
		want.Definition.HarnessArgs = args
		save(t, r, want)
		got, err := r.Load(t.Context(), want.Ref)
		if err != nil || (got.Definition.HarnessArgs == nil) != (args == nil) {
			t.Errorf("arguments %#v came back as %#v (%v)", args, got.Definition.HarnessArgs, err)
		}
	}
}

func TestNothingIsMadeBeforeItIsNeeded(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	r := New(root)
	_, err := r.Load(t.Context(), "standing:one")
	if !errors.Is(err, sessions.ErrNotRecorded) {
		t.Errorf("load: %v, want ErrNotRecorded", err)
	}
	records, broken, err := r.List(t.Context())
	if err != nil || len(records)+len(broken) > 0 {
		t.Errorf("list: %v, %v, %v", records, broken, err)
	}
	if err := r.Remove(t.Context(), "standing:one"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, alive, err := r.BotRunning(); alive || err != nil {
		t.Errorf("bot: %v, %v", alive, err)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the root was made: %v", err)
	}
}

func TestOnlyTheOwnerCanReadState(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	r := New(root)
	save(t, r, validRecord("one"))
	release, err := r.Lock(t.Context(), "key", "start")
	if err != nil {
		t.Fatal(err)
	}
	release()
	bot, err := r.AcquireBot(t.Context(), BotInfo{})
	if err != nil {
		t.Fatal(err)
	}
	defer bot()
	if err := r.WriteBot(BotState{}); err != nil {
		t.Fatal(err)
	}
	err = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenPermissionsOfARecordAreClosedBySaving(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	save(t, r, validRecord("one"))
	path := r.standingPath("one")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	save(t, r, validRecord("one"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestListIsByRefWithUnreadableFilesBeside(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	for _, name := range []string{"b", "a-b", "a", "c"} {
		save(t, r, validRecord(name))
	}
	write(t, r.standingPath("c"), "{")
	write(t, r.standingPath("Big"), "{}")
	for _, other := range []string{"README", "a.json~", ".a.json123", ".hidden.json", "d.json.bak"} {
		write(t, filepath.Join(r.standingDir(), other), "not ours")
	}
	records, broken, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var refs []sessions.Ref
	for _, rec := range records {
		refs = append(refs, rec.Ref)
	}
	if want := []sessions.Ref{"standing:a", "standing:a-b", "standing:b"}; !slices.Equal(refs, want) {
		t.Errorf("records %v, want %v", refs, want)
	}
	if len(broken) != 2 || broken[0].Path != r.standingPath("Big") || broken[0].Ref != "" ||
		broken[1].Path != r.standingPath("c") || broken[1].Ref != "standing:c" {
		t.Errorf("unreadable: %v", broken)
	}
}

// corruption makes the record "one" unusable in one way. It returns what must be there afterwards, still.
type corruption func(t *testing.T, r *Registry)

func withFields(change func(map[string]any)) corruption {
	return func(t *testing.T, r *Registry) {
		data, err := json.Marshal(validRecord("one"))
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		change(fields)
		if data, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		write(t, r.standingPath("one"), string(data))
	}
}

func withContent(s string) corruption {
	return func(t *testing.T, r *Registry) { write(t, r.standingPath("one"), s) }
}

var corruptions = map[string]corruption{
	"empty":             withContent(""),
	"torn":              withContent(`{"version": 1, "id": "x`),
	"not an object":     withContent(`[1]`),
	"two values":        withContent(`{"version": 1} {}`),
	"NULs after a loss": withContent(strings.Repeat("\x00", 4096)),
	"a newer version": withFields(func(m map[string]any) {
		m["version"], m["definition"] = sessions.RecordVersion+1, "of another shape"
	}),
	"no version":              withFields(func(m map[string]any) { delete(m, "version") }),
	"no id":                   withFields(func(m map[string]any) { m["id"] = "" }),
	"an id that is a path":    withFields(func(m map[string]any) { m["id"] = "../x" }),
	"another ref":             withFields(func(m map[string]any) { m["ref"] = "standing:two" }),
	"another name":            withFields(func(m map[string]any) { m["definition"].(map[string]any)["name"] = "two" }),
	"an unknown status":       withFields(func(m map[string]any) { m["status"] = "flying" }),
	"a field of another type": withFields(func(m map[string]any) { m["pane"] = 3 }),
	"larger than anything sane": func(t *testing.T, r *Registry) {
		save(t, r, validRecord("one"))
		if err := os.Truncate(r.standingPath("one"), statefile.MaxSize+1); err != nil {
			t.Fatal(err)
		}
	},
	"a folder": func(t *testing.T, r *Registry) {
		mkdir(t, r.standingPath("one"))
	},
	"a link": func(t *testing.T, r *Registry) {
		save(t, r, validRecord("one"))
		elsewhere := filepath.Join(r.root, "elsewhere")
		if err := errors.Join(os.Rename(r.standingPath("one"), elsewhere), os.Symlink(elsewhere, r.standingPath("one"))); err != nil {
			t.Fatal(err)
		}
	},
	"a link to nowhere": func(t *testing.T, r *Registry) {
		if err := os.Symlink(filepath.Join(r.root, "nowhere"), r.standingPath("one")); err != nil {
			t.Fatal(err)
		}
	},
	"a pipe": func(t *testing.T, r *Registry) {
		if err := syscall.Mkfifo(r.standingPath("one"), 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"closed to us": func(t *testing.T, r *Registry) {
		if os.Geteuid() == 0 {
			t.Skip("root may read everything")
		}
		save(t, r, validRecord("one"))
		if err := os.Chmod(r.standingPath("one"), 0); err != nil {
			t.Fatal(err)
		}
	},
}

func TestWhatCannotBeReadIsNeitherAbsentNorOverwritten(t *testing.T) {
	t.Parallel()
	for name, spoil := range corruptions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(t.TempDir())
			mkdir(t, r.standingDir())
			spoil(t, r)
			save(t, r, validRecord("two"))
			before := lstat(t, r.standingPath("one"))

			_, loadErr := r.Load(t.Context(), "standing:one")
			for verb, err := range map[string]error{
				"load":   loadErr,
				"save":   r.Save(t.Context(), validRecord("one")),
				"remove": r.Remove(t.Context(), "standing:one"),
			} {
				var bad *sessions.UnreadableError
				if !errors.As(err, &bad) || bad.Path != r.standingPath("one") || bad.Ref != "standing:one" || bad.Err == nil {
					t.Errorf("%s: %v, want an UnreadableError", verb, err)
				} else if strings.Count(err.Error(), bad.Path) != 1 {
					t.Errorf("%s: %v does not name the file once", verb, err)
				}
				if errors.Is(err, sessions.ErrNotRecorded) {
					t.Errorf("%s: taken for absent", verb)
				}
			}
			records, broken, err := r.List(t.Context())
			if err != nil || len(records) != 1 || len(broken) != 1 || broken[0].Ref != "standing:one" {
				t.Errorf("list: %d records, %v, %v; want the other one and this one beside", len(records), broken, err)
			}
			if after := lstat(t, r.standingPath("one")); !os.SameFile(before, after) || before.Size() != after.Size() ||
				!before.ModTime().Equal(after.ModTime()) {
				t.Error("the file was touched")
			}
		})
	}
}

func TestARecordThatCouldNotBeLoadedIsNotSaved(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	for name, change := range map[string]func(*sessions.Record){
		"version": func(rec *sessions.Record) { rec.Version = 0 },
		"id":      func(rec *sessions.Record) { rec.ID = "" },
		"name":    func(rec *sessions.Record) { rec.Definition.Name = "two" },
		"status":  func(rec *sessions.Record) { rec.Status = "" },
		"ref":     func(rec *sessions.Record) { rec.Ref = "standing:../one" },
	} {
		rec := validRecord("one")
		change(&rec)
		if err := r.Save(t.Context(), rec); err == nil {
			t.Errorf("%s: saved", name)
		}
	}
	if records, broken, err := r.List(t.Context()); len(records)+len(broken) > 0 || err != nil {
		t.Errorf("%v, %v, %v were written", records, broken, err)
	}
}

func TestNoRefLeadsOutOfTheFolder(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	mkdir(t, r.standingDir())
	write(t, filepath.Join(r.root, "local", "out.json"), "{}")
	for _, ref := range []sessions.Ref{"standing:../out", "standing:", "out", "", "standing:a/b", "standing:a\x00"} {
		_, err := r.Load(t.Context(), ref)
		var notRef *sessions.RefError
		if !errors.As(err, &notRef) {
			t.Errorf("load %q: %v", ref, err)
		}
		if err := r.Remove(t.Context(), ref); !errors.As(err, &notRef) {
			t.Errorf("remove %q: %v", ref, err)
		}
	}
	lstat(t, filepath.Join(r.root, "local", "out.json"))
}

func TestRemovedRecordIsAbsent(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	save(t, r, validRecord("one"))
	for range 2 {
		if err := r.Remove(t.Context(), "standing:one"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Load(t.Context(), "standing:one"); !errors.Is(err, sessions.ErrNotRecorded) {
			t.Errorf("load: %v", err)
		}
	}
}

func TestEndedContextChangesNothing(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	save(t, r, validRecord("one"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, loadErr := r.Load(ctx, "standing:one")
	_, _, listErr := r.List(ctx)
	_, lockErr := r.Lock(ctx, "key", "start")
	_, botErr := r.AcquireBot(ctx, BotInfo{})
	for _, err := range []error{
		loadErr, listErr, lockErr, botErr, r.Save(ctx, validRecord("two")), r.Remove(ctx, "standing:one"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that the context ended", err)
		}
	}
	if records, _, err := r.List(t.Context()); len(records) != 1 || err != nil {
		t.Errorf("%v, %v", records, err)
	}
}

func TestOnlyStaleTemporaryFilesAreSwept(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	old := time.Now().Add(-2 * time.Hour)
	keep := []string{".one.json42", "one.json.7", ".notes"}
	for _, name := range append(keep, ".one.json41") {
		path := filepath.Join(r.standingDir(), name)
		mkdir(t, r.standingDir())
		write(t, path, "x")
		if name != ".one.json42" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	save(t, r, validRecord("one"))
	entries, err := os.ReadDir(r.standingDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := append(keep, "one.json")
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("left %v, want %v", names, want)
	}
}

// A writer that is killed leaves the record as it was before or after, never something between.
func TestKilledWriterLeavesTheOldRecordOrTheNew(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	save(t, r, bigRecord(0))
	for round := range 10 {
		writer := startChild(t, roleSave, r.root)
		// The round decides how far the writer gets: a number of changes that this process has seen.
		seen := ""
		for changes := 0; changes < 1+round%3; {
			rec, err := r.Load(t.Context(), "standing:crash")
			if err != nil {
				t.Fatalf("while it is written: %v", err)
			}
			if rec.Conversation != seen {
				seen = rec.Conversation
				changes++
			}
		}
		writer.kill()
		rec, err := r.Load(t.Context(), "standing:crash")
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		prompt := rec.Definition.Prompt
		if len(prompt) < 30_000 || strings.Trim(prompt, rec.Conversation) != "" {
			t.Fatalf("round %d: a mixture of two records", round)
		}
	}
	if records, broken, err := r.List(t.Context()); len(records) != 1 || len(broken) > 0 || err != nil {
		t.Errorf("%d records, %v, %v", len(records), broken, err)
	}
}

func TestManyGoroutinesUseOneRegistry(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "a", "b", "a", "b"} {
		wg.Go(func() {
			for range 20 {
				if err := r.Save(t.Context(), validRecord(name)); err != nil {
					t.Error(err)
				}
				if _, err := r.Load(t.Context(), sessions.StandingRef(name)); err != nil {
					t.Error(err)
				}
				if _, broken, err := r.List(t.Context()); len(broken) > 0 || err != nil {
					t.Error(broken, err)
				}
			}
		})
	}
	wg.Wait()
}

func (r *Registry) standingPath(name string) string {
	return filepath.Join(r.standingDir(), name+extension)
}

func save(t *testing.T, r *Registry, rec sessions.Record) {
	t.Helper()
	if err := r.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func lstat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
