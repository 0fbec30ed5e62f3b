package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Loader reads configurations. The zero value uses the folder and the home of this process.
type Loader struct {
	Workdir string // where routing.spawnWorkdir starts when it is relative
	Home    string // what ~/ stands for

	// RequireOwnership asks at each reading that the file and its folder belong to us and that nobody else can write them.
	RequireOwnership bool
	// Check holds a configuration against what only its user knows, such as built-in harnesses or recorded names. What it
	// returns refuses the configuration; see [Config.ProblemAt].
	Check func(*Config) error
}

// Load reads the file at path with the zero [Loader].
func Load(path string) (*Config, error) { return Loader{}.Load(path) }

// Load reads the file at path. A file that is not valid gives an [*Error] and no configuration; one whose owner or mode is
// not as RequireOwnership asks gives [ErrUnsafeFile].
func (l Loader) Load(path string) (*Config, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of %s: %w", path, err)
	}
	if l.RequireOwnership {
		if err := checkOwnership(path); err != nil {
			return nil, err
		}
	}
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return l.parse(path, data)
}

// parse makes a configuration of a file's bytes.
func (l Loader) parse(path string, data []byte) (*Config, error) {
	l.applyDefaults()
	d, raw, err := parseAndValidate(path, data)
	if err != nil {
		return nil, err
	}
	c := l.resolve(d, raw)
	c.sum = sha256.Sum256(data)
	checkConstraints(d, raw, c)
	if err := joinProblems(d.problems); err != nil {
		return nil, err
	}
	if l.Check != nil {
		if err := l.Check(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// applyDefaults fills in what the process knows.
func (l *Loader) applyDefaults() {
	if l.Workdir == "" {
		l.Workdir, _ = os.Getwd() // it may have been removed: what starts there is refused where it is used
	}
	if l.Home == "" {
		l.Home, _ = os.UserHomeDir() // without one, a path from ~/ is refused where it stands
	}
}

// parseAndValidate parses and validates.
func parseAndValidate(path string, data []byte) (*document, fileRoot, error) {
	raw := defaults()
	s, err := loadSchema()
	if err != nil {
		return nil, raw, err
	}
	d, err := parseDocument(path, data)
	if err != nil {
		return nil, raw, err
	}
	if err := s.validateVersion(d); err != nil {
		return nil, raw, err
	}
	if err := s.validate(d); err != nil {
		return nil, raw, err
	}
	if err := joinProblems(d.problems); err != nil {
		return nil, raw, err
	}
	plain, err := json.Marshal(d.root)
	if err != nil {
		return nil, raw, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.NewDecoder(bytes.NewReader(plain)).Decode(&raw); err != nil {
		return nil, raw, fmt.Errorf("reading %s: %w", path, err)
	}
	return d, raw, nil
}

// validateVersion refuses another version for that alone: its keys are not ours to judge.
func (s *schema) validateVersion(d *document) error {
	root, ok := d.root.(map[string]any)
	if v, there := root["version"]; !ok || !there || v == int64(1) {
		return nil
	}
	only := &document{file: d.file, root: map[string]any{"version": root["version"]}, locations: d.locations}
	if err := s.validate(only); err != nil {
		return err
	}
	return joinProblems(only.problems)
}

// readFile reads a regular file of at most maxSize bytes. It does not wait for a pipe's other end.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Problems: []Problem{{File: path, Message: "does not exist — check the path, or let `the-loop config init` write it"}}}
	case err != nil:
		return nil, newFileError(path, "cannot be opened (%v) — check its owner and mode", errors.Unwrap(err))
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, newFileError(path, "cannot be read (%v) — check its owner and mode", err)
	case !info.Mode().IsRegular():
		return nil, newFileError(path, "is not a regular file — name the YAML file itself")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, newFileError(path, "cannot be read (%v) — check the disk", err)
	}
	return data, nil
}
