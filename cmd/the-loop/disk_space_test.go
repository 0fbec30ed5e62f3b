package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAFullDiskIsDistinguishedFromOtherErrors(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := checkDiskSpace(root); err != nil {
		t.Errorf("a root that is not there yet: %v", err)
	}
	run := filepath.Join(root, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkDiskSpace(root); err != nil {
		t.Errorf("a disk with room: %v", err)
	}
	if left, err := os.ReadDir(run); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for err, want := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EACCES: false, fs.ErrNotExist: false} {
		if got := isDiskFull(errors.Join(&fs.PathError{Op: "write", Path: "x", Err: err})); got != want {
			t.Errorf("%v is a full disk: %v", err, got)
		}
	}
	full := &fs.PathError{Op: "write", Path: "/dev/full", Err: syscall.ENOSPC}
	if _, err := os.Stat("/dev/full"); err == nil {
		if err := os.WriteFile("/dev/full", []byte("x"), 0o600); !isDiskFull(err) {
			t.Errorf("the device that is always full: %v", err)
		}
	}
	if got := diskFullText(root, full); !strings.Contains(got, root) || !strings.Contains(got, "no space left on device") || strings.Contains(got, "/dev/full") {
		t.Errorf("said as %q", got)
	}
}
