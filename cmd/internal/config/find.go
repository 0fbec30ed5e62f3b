package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// Found is the configuration to be used.
type Found struct {
	Path   string // absolute
	Origin Origin
}

// Loader is a loader for what was found: the current folder's file stays under suspicion at each reading.
func (f Found) Loader(workdir, home string) Loader {
	return Loader{Workdir: workdir, Home: home, OwnedOnly: f.Origin == OriginFolder}
}

var (
	// ErrNotFound is that there is no configuration in any of the places.
	ErrNotFound = errors.New("no configuration found")
	// ErrNotOurs is a file that somebody else owns, can write or can replace.
	ErrNotOurs = errors.New("this configuration is not safe to use")
	// ErrUntrusted is a file of the current folder whose path was never accepted.
	ErrUntrusted = errors.New("this configuration has not been accepted")
)

// Find gives the first configuration of: explicit, the file that the environment names, the current folder's, the home
// folder's. What it finds first it gives or refuses, it never goes on to the next: the operator would see one file and run
// another. The current folder's must be ours alone ([ErrNotOurs]) and accepted ([ErrUntrusted]), because it may have come
// with somebody's repository. Whether a named file exists is the business of [Load].
func Find(explicit string, env func(string) string, workdir, home string) (Found, error) {
	if explicit != "" {
		return Found{absolute(explicit, workdir, home), OriginFlag}, nil
	}
	if named := env(PathVariable); named != "" {
		return Found{absolute(named, workdir, home), OriginEnvironment}, nil
	}
	inFolder, atHome := "", ""
	if workdir != "" { // it may have been removed
		inFolder = FolderPath(workdir)
	}
	if home != "" {
		atHome = HomePath(home)
	}
	if there, err := exists(inFolder); err != nil {
		return Found{}, err
	} else if there && !sameFile(inFolder, atHome) {
		return findInFolder(inFolder, home)
	}
	if there, err := exists(atHome); err != nil {
		return Found{}, err
	} else if there {
		return Found{atHome, OriginHome}, nil
	}
	return Found{}, fmt.Errorf("%w: neither --config nor $%s is set, and there is no %s and no %s — run `the-loop config init`",
		ErrNotFound, PathVariable, FolderPath(workdir), HomePath(home))
}

// FolderPath is where a folder has its configuration.
func FolderPath(workdir string) string { return filepath.Join(workdir, ".the-loop", "cli-config.yaml") }

// HomePath is where a home has its configuration.
func HomePath(home string) string { return filepath.Join(home, ".the-loop", "cli-config.yaml") }

func findInFolder(path, home string) (Found, error) {
	if err := checkOwned(path); err != nil {
		return Found{}, err
	}
	path, err := canonical(path)
	if err != nil {
		return Found{}, err
	}
	switch trusted, err := Trusted(home, path); {
	case err != nil:
		return Found{}, err
	case !trusted:
		return Found{}, fmt.Errorf("%w: %s may have come with this folder, and it names programs to run — read it, then run `the-loop config trust %s`",
			ErrUntrusted, path, shellWord(path))
	}
	return Found{path, OriginFolder}, nil
}

func absolute(path, workdir, home string) string {
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
	return false, fmt.Errorf("looking for a configuration: %w", err)
}

// sameFile reports whether two paths lead to one file, as they do for somebody who works in their home folder.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// shellWord makes a path one word for a shell.
func shellWord(path string) string {
	if path != "" && strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+,:@%=-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
