package binding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/statefile"
)

// format is the file of a [Binding]. Version 1 had no Traces; a program that does not know them would type those replies again.
var format = statefile.Format[Binding]{Version: 2, Migrations: map[int]statefile.Migration{1: statefile.NoChange}}

// Store keeps the bindings as files in a folder, one a session. It is the only one that writes them.
type Store struct {
	dir     string
	disk    *Disk
	unknown map[string]bool // sessions whose file had fields that we do not know; set by Load, and not changed afterwards
}

// NewStore makes a store; disk may be nil: then failed writes are only returned.
func NewStore(dir string, disk *Disk) Store { return Store{dir, disk, map[string]bool{}} }

// Path is the file of a session's binding.
func (s Store) Path(id string) string { return filepath.Join(s.dir, id+".json") }

// Load reads all bindings. A file that cannot be used is returned as an error of its own, and left alone.
func (s Store) Load() ([]Binding, []*sessions.UnreadableError, error) {
	statefile.Sweep(s.dir, time.Now()) // the bot alone writes here
	names, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the bindings: %w", err)
	}
	var all []Binding
	var broken []*sessions.UnreadableError
	for _, n := range names {
		id, ok := strings.CutSuffix(n.Name(), ".json")
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		b, err := s.Read(id)
		if err != nil {
			broken = append(broken, &sessions.UnreadableError{Path: s.Path(id), Err: err})
			continue
		}
		if all = append(all, b); hasUnknown(s.Path(id)) {
			s.unknown[id] = true
		}
	}
	return all, broken, nil
}

// Read reads the binding of a session.
func (s Store) Read(id string) (Binding, error) {
	b, err := format.Load(s.Path(id))
	var unreadable *statefile.UnreadableError
	switch {
	case errors.As(err, &unreadable):
		return Binding{}, unreadable.Err // the caller names the file
	case err != nil:
		return Binding{}, err
	case b.ID != id:
		return Binding{}, fmt.Errorf("it is about another session, %q", b.ID)
	}
	return b, nil
}

// Save writes a binding. It is called at every step of a reply, so the present file is read only where it has fields to be kept.
func (s Store) Save(b Binding) error {
	path, write := s.Path(b.ID), format.Replace
	if s.unknown[b.ID] {
		write = format.Save
	}
	return s.disk.Save(path, func() error { return write(path, b) })
}

// hasUnknown reports whether a file has fields that a binding has not.
func hasUnknown(path string) bool {
	data, err := statefile.Read(path)
	if err != nil {
		return false
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	return strict.Decode(&Binding{}) != nil
}

// Remove deletes the binding of a session; none is no error.
func (s Store) Remove(id string) error {
	s.disk.Forget(s.Path(id))
	return statefile.Remove(s.Path(id))
}
