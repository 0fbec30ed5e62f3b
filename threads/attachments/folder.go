package attachments

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// CheckPostable says why a file of a folder cannot be posted; limit is the largest size in bytes. It may change afterwards: what is
// posted is what [Open] reads.
func CheckPostable(dir Folder, path string, limit int64) error {
	file, err := openWithin(dir, path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if limit <= 0 {
		return errPostingDisabled
	}
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		return tooLargeError(limit)
	}
	return nil
}

// Open opens a file of a folder that may be posted. Reading more than limit bytes fails. The error is a [*chat.FileError] when the
// file may not be posted.
func Open(dir Folder, path string, limit int64) (io.ReadCloser, error) {
	if limit <= 0 {
		return nil, errPostingDisabled
	}
	file, err := openWithin(dir, path)
	if err != nil {
		return nil, err
	}
	return &limitedReader{file: file, left: limit, limit: limit}, nil
}

// PostedName is the name that a file is posted under.
func PostedName(path string) string {
	return strings.ReplaceAll(Label(filepath.Base(path)), "/", "_")
}

var errPostingDisabled = &chat.FileError{Why: "files are not posted here: channels.slack.files.maxMB is 0"}

// Folder is a folder that files may be posted from.
type Folder struct {
	Path string
	ID   sessions.FolderID // empty: not checked
}

// openWithin opens a regular file of a folder. It follows no link that leads out of the folder, and waits for no pipe. A file with
// more than one name is refused: it may belong to another folder.
func openWithin(dir Folder, path string) (*os.File, error) {
	if !filepath.IsLocal(path) {
		return nil, &chat.FileError{Why: "it lies outside of the session's folder"}
	}
	root, err := os.OpenRoot(dir.Path)
	if err != nil {
		return nil, &chat.FileError{Why: "the session's folder cannot be opened: " + withoutPath(err)}
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Stat("."); err != nil || dir.ID.Differs(info) {
		return nil, &chat.FileError{Why: "another folder than the one that the agent was started in stands in its place"}
	}
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &chat.FileError{Why: "it cannot be opened: " + withoutPath(err)}
	}
	if err := checkPostableFile(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// checkPostableFile says why an open file may not be posted.
func checkPostableFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return &chat.FileError{Why: "it is no file but a folder, a pipe or a device"}
	case info.Size() == 0:
		return &chat.FileError{Why: "it is empty"}
	case known && stat.Nlink > 1:
		return &chat.FileError{Why: fmt.Sprintf("it has %d names (hard links), and may be a file of another folder: post a copy", stat.Nlink)}
	}
	return nil
}

// withoutPath is an error's text without the path: the sentence around it has it already.
func withoutPath(err error) string {
	var named *os.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return err.Error()
}

// limitedReader fails when there is more to read than limit bytes.
type limitedReader struct {
	file        *os.File // not embedded: its WriteTo has no limit
	left, limit int64
}

func (r *limitedReader) Close() error { return r.file.Close() }

func (r *limitedReader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, tooLargeError(r.limit)
	}
	return n, err
}
