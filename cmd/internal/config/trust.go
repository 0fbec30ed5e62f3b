package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// trustPath is the list of accepted configurations: one absolute path a line.
func trustPath(home string) string { return filepath.Join(home, ".the-loop", "trusted") }

// IsTrusted reports whether the path was accepted. The contents may have changed since: acceptance is of the place, whose
// owner is asked at each use.
func IsTrusted(home, path string) (bool, error) {
	path, err := canonicalPath(path)
	if err != nil {
		return false, err
	}
	list, err := readTrustList(home)
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(list) {
		if string(bytes.TrimRight(line, "\r\n")) == path {
			return true, nil
		}
	}
	return false, nil
}

// Trust accepts the configuration at path from now on. It must exist and be ours alone ([ErrUnsafeFile]).
func Trust(home, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("finding the folder of %s: %w", path, err)
	}
	if err := checkOwnership(abs); err != nil {
		return err
	}
	switch trusted, err := IsTrusted(home, abs); {
	case err != nil:
		return err
	case trusted:
		return nil
	}
	if abs, err = canonicalPath(abs); err != nil {
		return err
	}
	return appendTrust(home, abs)
}

// appendTrust adds a line in one write, so that two commands at once lose none.
func appendTrust(home, path string) error {
	if home == "" {
		return errors.New("there is no home folder for the list of trusted configurations — set HOME")
	}
	name := trustPath(home)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("trust the configuration: %w", err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("trust the configuration: %w", err)
	}
	line := path + "\n"
	if list, err := os.ReadFile(name); err == nil && len(list) > 0 && list[len(list)-1] != '\n' {
		line = "\n" + line // somebody edited the list by hand
	}
	_, err = f.WriteString(line)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("trust the configuration: %w", err)
	}
	return nil
}

// readTrustList reads the list, which must be ours alone too. No list is an empty one.
func readTrustList(home string) ([]byte, error) {
	if home == "" {
		return nil, nil
	}
	name, err := filepath.EvalSymlinks(trustPath(home))
	switch {
	case errors.Is(err, fs.ErrNotExist), isNotDir(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the list of trusted configurations: %w", err)
	}
	if err := checkOwnership(name); err != nil {
		return nil, err
	}
	return readFile(name)
}

// canonicalPath is the absolute path with every link resolved, so that a link that is moved later is another path.
func canonicalPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	if strings.ContainsAny(abs, "\r\n") {
		return "", fmt.Errorf("%w: its path %q has a line break — rename the folder", ErrUnsafeFile, abs)
	}
	return abs, nil
}

// checkOwnership asks that a file and its folder are what they seem, belong to us and can be written by nobody else.
func checkOwnership(path string) error {
	for _, p := range []string{filepath.Dir(path), path} {
		info, err := os.Lstat(p)
		if err != nil {
			return fmt.Errorf("check the owner of the configuration: %w", err)
		}
		if fault := ownershipFault(info, p == path); fault != "" {
			return fmt.Errorf("%w: %s %s", ErrUnsafeFile, p, fault)
		}
	}
	return nil
}

func ownershipFault(info fs.FileInfo, wantFile bool) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "is a symbolic link — replace it with the file, or give the file with --config"
	case wantFile && !info.Mode().IsRegular():
		return "is not a regular file — remove it"
	case !wantFile && !info.IsDir():
		return "is not a folder"
	case !ok || int(stat.Uid) != os.Geteuid():
		return "belongs to another user — copy it into a folder of your own"
	case info.Mode().Perm()&0o022 != 0:
		return "can be written by others — run chmod go-w on it"
	}
	return ""
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
