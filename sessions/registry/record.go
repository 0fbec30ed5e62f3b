package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/statefile"
)

// extension is that of records.
const extension = ".json"

// recordFormat is how a record is stored.
var recordFormat = statefile.Format[sessions.Record]{Version: sessions.RecordVersion, Migrations: map[int]statefile.Migration{1: renameSlack}}

// renameSlack leads from version 1 to 2: definition.slack is definition.chat.
func renameSlack(doc map[string]any) error {
	definition, ok := doc["definition"].(map[string]any)
	if !ok {
		return errors.New("it has no definition")
	}
	if chat, ok := definition["slack"]; ok {
		definition["chat"] = chat
		delete(definition, "slack")
	}
	return nil
}

// idPattern is what an id may look like: it becomes part of file names and the mark of a pane.
var idPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`) }) // slow to compile

// Load returns the record of ref; see [sessions.Records].
func (r *Registry) Load(ctx context.Context, ref sessions.Ref) (sessions.Record, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Record{}, err
	}
	path, err := r.recordPath(ref)
	if err != nil {
		return sessions.Record{}, err
	}
	return loadRecord(path, ref)
}

// List returns the records of both kinds by ref, and the files beside them that cannot be used; see [sessions.Records]. Files
// whose names do not end in .json are not ours.
func (r *Registry) List(ctx context.Context) ([]sessions.Record, []*sessions.UnreadableError, error) {
	var records []sessions.Record
	var unreadable []*sessions.UnreadableError
	for dir, loadNamed := range map[string]func(dir, name string) (sessions.Record, error){r.standingDir(): loadStanding, r.workItemsDir(): loadWorkItem} {
		some, bad, err := listFolder(ctx, dir, loadNamed)
		if err != nil {
			return nil, nil, fmt.Errorf("list the records: %w", err)
		}
		records, unreadable = append(records, some...), append(unreadable, bad...)
	}
	slices.SortFunc(records, func(a, b sessions.Record) int { return cmp.Compare(a.Ref, b.Ref) })
	slices.SortFunc(unreadable, func(a, b *sessions.UnreadableError) int { return cmp.Compare(a.Path, b.Path) })
	return records, unreadable, nil
}

// listFolder loads the records of one folder.
func listFolder(ctx context.Context, dir string, loadNamed func(dir, name string) (sessions.Record, error)) (records []sessions.Record, unreadable []*sessions.UnreadableError, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		name, isRecord := strings.CutSuffix(entry.Name(), extension)
		if !isRecord || strings.HasPrefix(name, ".") {
			continue
		}
		rec, err := loadNamed(dir, name)
		var bad *sessions.UnreadableError
		switch {
		case errors.As(err, &bad):
			unreadable = append(unreadable, bad)
		case err == nil:
			records = append(records, rec)
		case !errors.Is(err, sessions.ErrNotRecorded): // removed since the folder was read
			return nil, nil, err
		}
	}
	return records, unreadable, nil
}

// loadStanding loads a file that was found in the folder, whatever it is called.
func loadStanding(dir, name string) (sessions.Record, error) {
	path := filepath.Join(dir, name+extension)
	if !sessions.ValidName(name) {
		return sessions.Record{}, &sessions.UnreadableError{Path: path, Err: errors.New("its name is not one of a session")}
	}
	return loadRecord(path, sessions.StandingRef(name))
}

// loadWorkItem loads the record of a work item from a file that was found. Which one it is only the record tells.
func loadWorkItem(dir, slug string) (sessions.Record, error) {
	path := filepath.Join(dir, slug+extension)
	rec, err := recordFormat.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sessions.Record{}, fmt.Errorf("%s: %w", slug, sessions.ErrNotRecorded)
	case err == nil && rec.Ref.Slug() != slug:
		err = fmt.Errorf("it is the record of %q", rec.Ref)
	case err == nil:
		err = validateRecord(rec, rec.Ref)
	}
	if err != nil {
		return sessions.Record{}, &sessions.UnreadableError{Path: path, Slug: slug, Err: withoutPath(err)}
	}
	return rec, nil
}

// Save writes the record. A record that could not be loaded again is an error, and so is one whose present file cannot
// be read: that is left as it is. See [sessions.Records].
func (r *Registry) Save(ctx context.Context, rec sessions.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := r.recordPath(rec.Ref)
	if err != nil {
		return err
	}
	if err := validateRecord(rec, rec.Ref); err != nil {
		return fmt.Errorf("save the record of %s: %w", rec.Ref, err)
	}
	r.sweep.Do(func() {
		for _, dir := range []string{r.standingDir(), r.workItemsDir(), r.ledgersDir()} {
			statefile.Sweep(dir, time.Now().Add(-statefile.StaleTempAge))
		}
	})
	switch there, err := loadRecord(path, rec.Ref); {
	case err == nil && there.Ref != rec.Ref:
		return sessions.Collision(rec.Ref, there.Ref)
	case err != nil && !errors.Is(err, sessions.ErrNotRecorded):
		return err
	}
	if err := recordFormat.Save(path, rec); err != nil {
		return fmt.Errorf("save the record of %s: %w", rec.Ref, err)
	}
	return nil
}

// Remove deletes the record of ref. A file that cannot be read is left, with a [*sessions.UnreadableError]; no file is
// no error.
func (r *Registry) Remove(ctx context.Context, ref sessions.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := r.recordPath(ref)
	if err != nil {
		return err
	}
	_, err = loadRecord(path, ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded):
		return nil
	case err != nil:
		return err
	}
	if err := statefile.Remove(path); err != nil {
		return fmt.Errorf("remove the record of %s: %w", ref, err)
	}
	return nil
}

// recordPath is the file of ref. It refuses what is not a ref, so that no ref leads out of the folder.
func (r *Registry) recordPath(ref sessions.Ref) (string, error) {
	if _, err := sessions.ParseRef(string(ref)); err != nil {
		return "", err
	}
	if ref.Kind() == sessions.KindWorkItem {
		return filepath.Join(r.workItemsDir(), ref.Slug()+extension), nil
	}
	return filepath.Join(r.standingDir(), ref.Name()+extension), nil
}

// loadRecord reads and checks one record, whose ref may be spelt another way. Errors: [sessions.ErrNotRecorded], [*sessions.UnreadableError], a
// [sessions.Collision].
func loadRecord(path string, ref sessions.Ref) (sessions.Record, error) {
	rec, err := recordFormat.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sessions.Record{}, fmt.Errorf("%s: %w", ref, sessions.ErrNotRecorded)
	case err == nil && rec.Ref != ref && rec.Ref.Slug() == ref.Slug() && validateRecord(rec, rec.Ref) == nil:
		if rec.Ref.Same(ref) {
			return rec, nil
		}
		return sessions.Record{}, sessions.Collision(ref, rec.Ref)
	case err == nil:
		err = validateRecord(rec, ref)
	}
	if err != nil {
		return sessions.Record{}, &sessions.UnreadableError{Path: path, Ref: ref, Err: withoutPath(err)}
	}
	return rec, nil
}

// withoutPath drops the path from an error about a file: a [sessions.UnreadableError] names it already.
func withoutPath(err error) error {
	var unreadable *statefile.UnreadableError
	var withPath *fs.PathError
	switch {
	case errors.As(err, &unreadable):
		return unreadable.Err
	case errors.As(err, &withPath):
		return withPath.Err
	}
	return err
}

// validateRecord says what makes rec unfit to be the record of ref.
func validateRecord(rec sessions.Record, ref sessions.Ref) error {
	if _, err := sessions.ParseRef(string(ref)); err != nil {
		return err
	}
	switch {
	case rec.Version != sessions.RecordVersion:
		return fmt.Errorf("it has version %d, this the-loop knows %d", rec.Version, sessions.RecordVersion)
	case rec.Ref != ref:
		return fmt.Errorf("it is the record of %q", rec.Ref)
	case rec.Definition.Ref() != ref:
		return fmt.Errorf("its definition is that of %q", rec.Definition.Ref())
	case !idPattern().MatchString(rec.ID):
		return fmt.Errorf("its id %q is not one", rec.ID)
	}
	switch rec.Status {
	case sessions.StatusStarting, sessions.StatusRunning, sessions.StatusStopped, sessions.StatusNew:
		return nil
	}
	return fmt.Errorf("its status %q is not one", rec.Status)
}
