package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// probeSize is how much must fit on the disk for the state to be written.
const probeSize = 8 << 10

// roomIn fails when the disk of a state root takes nothing more. The bot cannot say so by itself then: it says how it is in a
// file. A root that is not there yet has all the room it needs.
func roomIn(root string) error {
	probe, err := os.CreateTemp(filepath.Join(root, "run"), ".room-*")
	if err == nil {
		defer func() { _ = os.Remove(probe.Name()) }()
		_, err = probe.Write(make([]byte, probeSize))
		err = errors.Join(err, probe.Close())
	}
	if noRoom(err) {
		return err
	}
	return nil
}

// noRoom reports whether a full disk is what failed. What else there is to be said of the folder, others say.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// fullWords says that the disk of a state root is full, and what to do.
func fullWords(root string, err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Sprintf("the disk of %s is full (%v), so replies wait: make room on it, and everything goes on by itself", root, err)
}
