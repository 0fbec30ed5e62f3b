package sessions

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// FolderID tells a folder from another one that stands in its place later, or that a link in its place leads to. Empty: it is
// not known.
type FolderID string

// FolderIDOf is that of the folder with the info of [os.Stat].
func FolderIDOf(info fs.FileInfo) FolderID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return FolderID(fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
}

// Differs reports that another folder has that info.
func (id FolderID) Differs(info fs.FileInfo) bool { return id != "" && FolderIDOf(info) != id }

// FolderIDAt returns the id of the folder at a path; empty when it cannot be read.
func FolderIDAt(path string) FolderID {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return FolderIDOf(info)
}
