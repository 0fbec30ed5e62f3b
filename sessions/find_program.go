package sessions

import (
	"os"
	"path/filepath"
	"strings"
)

// FindProgram returns the path of a program as a process that runs in a folder would find it: below the folder for a name with a
// slash, else in the first absolute folder of a PATH that has it. False: it is not there, or
// cannot be run; where it should be is returned all the same for a name with a slash.
func FindProgram(name, path, folder string) (string, bool) {
	if name == "" {
		return "", false
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		return name, isExecutable(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if candidate := filepath.Join(dir, name); filepath.IsAbs(dir) && isExecutable(candidate) {
			return candidate, true
		}
	}
	return "", false
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
