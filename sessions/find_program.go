package sessions

import (
	"fmt"
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

// CheckProgram refuses the argv of a harness whose program is not there. path and folder are those of the session; an empty path is
// this process's own, which our tmux server has too.
func CheckProgram(harness string, argv []string, path, folder string) error {
	if len(argv) == 0 {
		return fmt.Errorf("the harness %s names no program", harness)
	}
	if path == "" {
		path = os.Getenv("PATH")
	}
	refusal := &Refusal{Cause: ErrRefused, Remedy: fmt.Sprintf("install it, or say under harnesses.%s.binary where it is", harness)}
	switch program, found := FindProgram(argv[0], path, folder); {
	case found:
		return nil
	case program != "":
		refusal.What = program + " is not a program that can be run"
	default:
		refusal.What = fmt.Sprintf("there is no program %s on the session's PATH (%s)", argv[0], path)
	}
	return refusal
}
