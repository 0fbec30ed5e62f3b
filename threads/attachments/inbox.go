package attachments

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"the-loop/threads/chat"
)

// inboxName is the folder for the files of replies, in the folder that a session works in.
const inboxName = ".the-loop-inbox"

// inbox is the place for the files of one reply. What lies in the session's folder is the agent's to change, and may have
// come with a repository, so nothing is written through a link: not out of the folder, and not into another part of it.
type inbox struct {
	dir string // the session's folder
	ts  string // of the reply
}

// store fills a file of the reply, unless it is there whole. A file that is only half written never has its final name. size is the
// announced one; 0: not known.
func (in inbox) store(name string, size int64, fill func(io.Writer) error) error {
	box, err := in.open()
	if err != nil {
		return in.diskError(err)
	}
	defer func() { _ = box.Close() }()
	if info, err := box.Lstat(name); err == nil && info.Mode().IsRegular() && (size == 0 || info.Size() == size) {
		return nil
	}
	partial := "." + name + ".part"
	if err := box.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return in.diskError(err)
	}
	f, err := box.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return in.diskError(err)
	}
	defer func() { _ = box.Remove(partial) }() // it is gone when all went well
	err = fill(f)
	if disk := errors.Join(f.Sync(), f.Close()); err == nil && disk != nil {
		err = in.diskError(disk)
	}
	if err != nil {
		return err
	}
	if err := box.Rename(partial, name); err != nil {
		return in.diskError(err)
	}
	return nil
}

// diskError is a failure of this machine's disk: only that of a full disk may pass.
func (in inbox) diskError(err error) error {
	var known *chat.FileError
	if errors.As(err, &known) || isDiskFull(err) {
		return err
	}
	return &chat.FileError{Why: fmt.Sprintf("it could not be written into %s: %v", filepath.Join(in.dir, inboxName), err)}
}

// path is where a file of the reply lies.
func (in inbox) path(name string) string { return filepath.Join(in.dir, inboxName, in.ts, name) }

// open opens the folder of the reply, and makes it when it is not there.
func (in inbox) open() (*os.Root, error) {
	cwd, err := os.OpenRoot(in.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cwd.Close() }()
	all, err := openPrivateFolder(cwd, inboxName, in.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Close() }()
	if err := writeGitignore(all); err != nil {
		return nil, err
	}
	removeOldFiles(all, in.ts)
	return openPrivateFolder(all, in.ts, filepath.Join(in.dir, inboxName))
}

// inboxAge is how long the files of a reply stay after it, at the least.
const inboxAge = 30 * 24 * time.Hour

// replyFolder is the name of the folder of a reply: its ts.
var replyFolder = regexp.MustCompile(`^[0-9]{10}\.[0-9]{6}$`)

// removeOldFiles removes the files of replies that are older than the one at ts by more than inboxAge, by Slack's clock: this
// machine's may be wrong. It removes only folders that have the name of a reply.
func removeOldFiles(box *os.Root, ts string) {
	dir, err := box.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	now := chat.TSTime(ts)
	for _, name := range names {
		if replyFolder.MatchString(name) && now.Sub(chat.TSTime(name)) > inboxAge {
			_ = box.RemoveAll(name) // what stays only takes room
		}
	}
}

// openPrivateFolder opens a folder for us alone, and makes it when it is not there. within is the path of its parent, for messages.
func openPrivateFolder(parent *os.Root, name, within string) (*os.Root, error) {
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &chat.FileError{Why: filepath.Join(within, name) + " is a link or a file, and nothing is written through it; remove it"}
	}
	child, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := child.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s was replaced", name)
	}
	if err == nil && opened.Mode().Perm()&0o077 != 0 {
		err = child.Chmod(".", 0o700)
	}
	if err != nil {
		_ = child.Close()
		return nil, err
	}
	return child, nil
}

// writeGitignore keeps what lies in the inbox out of a repository around it.
func writeGitignore(box *os.Root) error {
	const name, partial, all = ".gitignore", ".gitignore.part", "*\n"
	if info, err := box.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(all)) {
		return nil
	}
	if err := box.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := box.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(all)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return box.Rename(partial, name)
}
