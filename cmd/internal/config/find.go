package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

// Origin says how a configuration was found.
type Origin string

// The places that are searched, in this order.
const (
	OriginFlag        Origin = "--config"
	OriginEnvironment Origin = "$" + PathVariable
	OriginFolder      Origin = "the current folder"
	OriginHome        Origin = "the home folder"
)

// PathVariable is the environment variable that names a configuration.
const PathVariable = "THE_LOOP_CLI_CONFIG"

// FoundFile is the configuration to be used.
type FoundFile struct {
	Path   string // absolutePath
	Origin Origin
}

// Loader is a loader for what was found: the current folder's file stays under suspicion at each reading.
func (f FoundFile) Loader(workdir, home string) Loader {
	return Loader{Workdir: workdir, Home: home, RequireOwnership: f.Origin == OriginFolder}
}

var (
	// ErrNotFound is that there is no configuration in any of the places.
	ErrNotFound = errors.New("no configuration found")
	// ErrUnsafeFile is a file that somebody else owns, can write or can replace.
	ErrUnsafeFile = errors.New("this configuration is not safe to use")
	// ErrUntrusted is a file of the current folder whose path was never accepted.
	ErrUntrusted = errors.New("this configuration is not trusted")
)

// Find gives the first configuration of: explicit, the file that the environment names, the current folder's, the home
// folder's. What it finds first it gives or refuses, it never goes on to the next: the operator would see one file and run
// another. The current folder's must be ours alone ([ErrUnsafeFile]) and accepted ([ErrUntrusted]), because it may have come
// with somebody's repository. Whether a named file exists is the business of [Load].
func Find(explicit string, env func(string) string, workdir, home string) (FoundFile, error) {
	if explicit != "" {
		return FoundFile{absolutePath(explicit, workdir, home), OriginFlag}, nil
	}
	if named := env(PathVariable); named != "" {
		return FoundFile{absolutePath(named, workdir, home), OriginEnvironment}, nil
	}
	inFolder, atHome := "", ""
	if workdir != "" { // it may have been removed
		inFolder = FolderPath(workdir)
	}
	if home != "" {
		atHome = HomePath(home)
	}
	if there, err := exists(inFolder); err != nil {
		return FoundFile{}, err
	} else if there && !isSameFile(inFolder, atHome) {
		return findInFolder(inFolder, home)
	}
	if there, err := exists(atHome); err != nil {
		return FoundFile{}, err
	} else if there {
		return FoundFile{atHome, OriginHome}, nil
	}
	return FoundFile{}, fmt.Errorf("%w: neither --config nor $%s is set, and there is no %s and no %s — run `the-loop config init`",
		ErrNotFound, PathVariable, FolderPath(workdir), HomePath(home))
}

// FolderPath is where a folder has its configuration.
func FolderPath(workdir string) string { return filepath.Join(workdir, ".the-loop", "cli-config.yaml") }

// HomePath is where a home has its configuration.
func HomePath(home string) string { return filepath.Join(home, ".the-loop", "cli-config.yaml") }

func findInFolder(path, home string) (FoundFile, error) {
	if err := checkOwnership(path); err != nil {
		return FoundFile{}, err
	}
	path, err := canonicalPath(path)
	if err != nil {
		return FoundFile{}, err
	}
	switch trusted, err := IsTrusted(home, path); {
	case err != nil:
		return FoundFile{}, err
	case !trusted:
		return FoundFile{}, fmt.Errorf("%w: %s may come from somebody else, and it names programs to run — read it, then run `the-loop config trust %s`",
			ErrUntrusted, path, shellescape.Quote(path))
	}
	return FoundFile{path, OriginFolder}, nil
}

func absolutePath(path, workdir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(workdir, path)
	}
	return filepath.Clean(path)
}

// exists reports whether there is anything at path, a dangling link included. Not being allowed to look is an error.
func exists(path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist), isNotDir(err):
		return false, nil
	}
	return false, fmt.Errorf("find the configuration: %w", err)
}

// isSameFile reports whether two paths lead to one file, as they do for somebody who works in their home folder.
func isSameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
