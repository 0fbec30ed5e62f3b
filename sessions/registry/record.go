package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"the-loop/sessions"
)

// extension is that of records.
const extension = ".json"

// idPattern is what an id may look like: it becomes part of file names and the mark of a pane.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

// Load returns the record of ref; see [sessions.Records].
func (r *Registry) Load(ctx context.Context, ref sessions.Ref) (sessions.Record, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Record{}, err
	}
	path, err := r.recordPath(ref)
	if err != nil {
		return sessions.Record{}, err
	}
	return load(path, ref)
}

// List returns the records by ref, and the files beside them that cannot be used; see [sessions.Records]. Files whose
// names do not end in .json are not ours.
func (r *Registry) List(ctx context.Context) ([]sessions.Record, []*sessions.UnreadableError, error) {
	entries, err := os.ReadDir(r.standingDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("list the records: %w", err)
	}
	var records []sessions.Record
	var unreadable []*sessions.UnreadableError
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		name, isRecord := strings.CutSuffix(entry.Name(), extension)
		if !isRecord || strings.HasPrefix(name, ".") {
			continue
		}
		rec, err := r.loadNamed(name)
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
	slices.SortFunc(records, func(a, b sessions.Record) int { return cmp.Compare(a.Ref, b.Ref) })
	return records, unreadable, nil
}

// loadNamed loads a file that was found in the folder, whatever it is called.
func (r *Registry) loadNamed(name string) (sessions.Record, error) {
	path := filepath.Join(r.standingDir(), name+extension)
	if !sessions.ValidName(name) {
		return sessions.Record{}, &sessions.UnreadableError{Path: path, Err: errors.New("its name is not one of a session")}
	}
	return load(path, sessions.StandingRef(name))
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
	if err := check(rec, rec.Ref); err != nil {
		return fmt.Errorf("save the record of %s: %w", rec.Ref, err)
	}
	r.sweep.Do(func() { sweepTemps(r.standingDir(), time.Now()) })
	if _, err := load(path, rec.Ref); err != nil && !errors.Is(err, sessions.ErrNotRecorded) {
		return err
	}
	if err := writeJSON(path, rec); err != nil {
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
	_, err = load(path, ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded):
		return nil
	case err != nil:
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of %s: %w", ref, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("remove the record of %s: %w", ref, err)
	}
	return nil
}

// recordPath is the file of ref. It refuses what is not a ref, so that no ref leads out of the folder.
func (r *Registry) recordPath(ref sessions.Ref) (string, error) {
	if _, err := sessions.ParseRef(string(ref)); err != nil {
		return "", err
	}
	return filepath.Join(r.standingDir(), ref.Name()+extension), nil
}

// load reads and checks one record. Errors: [sessions.ErrNotRecorded], [*sessions.UnreadableError].
func load(path string, ref sessions.Ref) (sessions.Record, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sessions.Record{}, fmt.Errorf("%s: %w", ref, sessions.ErrNotRecorded)
	}
	var rec sessions.Record
	if err == nil {
		rec, err = decode(data, ref)
	}
	if err != nil {
		return sessions.Record{}, &sessions.UnreadableError{Path: path, Ref: ref, Err: reason(err)}
	}
	return rec, nil
}

// reason drops the path from an error of package os: an UnreadableError names it already.
func reason(err error) error {
	var withPath *fs.PathError
	if errors.As(err, &withPath) {
		return withPath.Err
	}
	return err
}

// decode reads the version first: nothing else of a record that another version wrote means what we think.
func decode(data []byte, ref sessions.Ref) (sessions.Record, error) {
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return sessions.Record{}, fmt.Errorf("not a record: %w", err)
	}
	if err := checkVersion(head.Version); err != nil {
		return sessions.Record{}, err
	}
	var rec sessions.Record
	if err := json.Unmarshal(data, &rec); err != nil {
		return sessions.Record{}, fmt.Errorf("not a record: %w", err)
	}
	return rec, check(rec, ref)
}

func checkVersion(v int) error {
	if v > sessions.RecordVersion {
		return fmt.Errorf("it has version %d, from a newer the-loop; this one knows %d", v, sessions.RecordVersion)
	}
	if v != sessions.RecordVersion {
		return fmt.Errorf("it has version %d, this the-loop knows %d", v, sessions.RecordVersion)
	}
	return nil
}

// check says what makes rec unfit to be the record of ref.
func check(rec sessions.Record, ref sessions.Ref) error {
	if err := checkVersion(rec.Version); err != nil {
		return err
	}
	switch {
	case rec.Ref != ref:
		return fmt.Errorf("it is the record of %q", rec.Ref)
	case rec.Definition.Name != ref.Name():
		return fmt.Errorf("its definition is that of %q", rec.Definition.Name)
	case !idPattern.MatchString(rec.ID):
		return fmt.Errorf("its id %q is not one", rec.ID)
	}
	switch rec.Status {
	case sessions.StatusStarting, sessions.StatusRunning, sessions.StatusStopped:
		return nil
	}
	return fmt.Errorf("its status %q is not one", rec.Status)
}
