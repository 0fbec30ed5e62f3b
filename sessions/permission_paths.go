package sessions

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// located is the ask with what its paths lead to, as the file system is now: links are followed, also dangling ones, and
// those of paths that do not exist yet.
func (a Ask) located() Ask {
	var folder, file error
	if a.Cwd != "" {
		a.CwdAt, folder = locate(a.Cwd, "")
	}
	if a.File != "" {
		a.FileAt, file = locate(a.File, a.Cwd)
	}
	a.Unplaced = folder != nil || file != nil
	return a
}

// locate is where a path leads to, when it is another place than the path names. There are two places where it depends on
// whether ".." is taken before or after links are followed: programs do either.
func locate(path, folder string) (places []string, err error) {
	full, err := absolute(path, folder)
	if err != nil {
		return nil, err
	}
	for _, way := range []string{filepath.Clean(full), full} {
		place, err := securejoin.SecureJoinVFS("/", way, ownFiles{})
		if err != nil {
			return nil, err
		}
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if len(places) == 1 && places[0] == path {
		return nil, nil
	}
	return places, nil
}

// absolute is a path from the root on. Nothing but its beginning is changed.
func absolute(path, folder string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		return home + path[1:], nil
	}
	if filepath.IsAbs(path) {
		return path, nil
	}
	if !filepath.IsAbs(folder) {
		return "", errors.New("the path starts at a folder that is not known")
	}
	return folder + "/" + path, nil
}

// ownFiles reads the file system as it is for every process: what lies under /proc is another thing for each.
type ownFiles struct{}

var errPerProcess = errors.New("the path leads to another place in each process")

func perProcess(path string) bool { return strings.HasPrefix(filepath.Clean(path)+"/", "/proc/") }

func (ownFiles) Lstat(path string) (fs.FileInfo, error) {
	if perProcess(path) {
		return nil, errPerProcess
	}
	return os.Lstat(path)
}

func (ownFiles) Readlink(path string) (string, error) { return os.Readlink(path) }
