package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// diskProbeBytes is how much must fit on the disk for the state to be written.
const diskProbeBytes = 8 << 10

// checkDiskSpace fails when the disk of a state root takes nothing more. The bot cannot say so by itself then: it says how it is in a
// file. A root that is not there yet has all the room it needs.
func checkDiskSpace(root string) error {
	probe, err := os.CreateTemp(filepath.Join(root, "run"), ".room-*")
	if err == nil {
		defer func() { _ = os.Remove(probe.Name()) }()
		_, err = probe.Write(make([]byte, diskProbeBytes))
		err = errors.Join(err, probe.Close())
	}
	if isDiskFull(err) {
		return err
	}
	return nil
}

// isDiskFull reports whether a full disk is what failed. What else there is to be said of the folder, others say.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// diskFullText says that the disk of a state root is full, and what to do.
func diskFullText(root string, err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Sprintf("the disk of %s is full (%v), so replies wait: free some space, and the bot continues by itself", root, err)
}
