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

// ResolvePaths is the ask with what its paths lead to, as the file system is now: links are followed, also dangling ones, and
// those of paths that do not exist yet.
func (a PermissionRequest) ResolvePaths() PermissionRequest {
	var folder, file error
	if a.Cwd != "" {
		a.CwdTargets, folder = resolvePath(a.Cwd, "")
	}
	if a.File != "" {
		a.FileTargets, file = resolvePath(a.File, a.Cwd)
	}
	a.Unresolved = folder != nil || file != nil
	return a
}

// resolvePath is where a path leads to, when it is another place than the path names. There are two places where it depends on
// whether ".." is taken before or after links are followed: programs do either.
func resolvePath(path, folder string) (places []string, err error) {
	full, err := absolutePath(path, folder)
	if err != nil {
		return nil, err
	}
	for _, way := range []string{filepath.Clean(full), full} {
		place, err := securejoin.SecureJoinVFS("/", way, hostFiles{})
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

// absolutePath is a path from the root on. Nothing but its beginning is changed.
func absolutePath(path, folder string) (string, error) {
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

// hostFiles reads the file system as it is for every process: what lies under /proc is another thing for each.
type hostFiles struct{}

var errPerProcess = errors.New("the path leads to another place in each process")

func isPerProcess(path string) bool { return strings.HasPrefix(filepath.Clean(path)+"/", "/proc/") }

func (hostFiles) Lstat(path string) (fs.FileInfo, error) {
	if isPerProcess(path) {
		return nil, errPerProcess
	}
	return os.Lstat(path)
}

func (hostFiles) Readlink(path string) (string, error) { return os.Readlink(path) }
