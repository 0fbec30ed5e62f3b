package sessions

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// FolderRequest asks where a session works.
type FolderRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// Folder is the folder that a running session was started in, absolute. A [*Refusal] when it does not run, another session has
// its name, or another folder stands in the place of its own.
func (c *Core) Folder(ctx context.Context, q FolderRequest) (string, error) {
	rec, err := c.requireRunning(ctx, q.Ref, q.ID)
	if err != nil {
		return "", err
	}
	dir := rec.Definition.Cwd
	if info, err := os.Stat(dir); err == nil && rec.FolderID.Differs(info) {
		return "", &Refusal{Cause: ErrRefused, What: fmt.Sprintf("another folder than the one that %s was started in stands at %s", rec.Ref, dir),
			Remedy: "look at it, and restart the session"}
	}
	return dir, nil
}

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

// folderID is that of the folder at a path, if it can be looked at.
func folderID(path string) FolderID {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return FolderIDOf(info)
}
