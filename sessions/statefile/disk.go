package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

const (
	fileMode = 0o600
	dirMode  = 0o700

	// MaxSize is the size in bytes above which a file is not read.
	MaxSize = 16 << 20

	// StaleTempAge is the age at which a temporary file has lost its writer for certain.
	StaleTempAge = time.Hour
)

// errNotRegular says that something other than a file stands where a state file should.
var errNotRegular = errors.New("not a regular file")

// Read reads a regular file. It follows no link and does not wait at a pipe.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a link, a socket
		return nil, errNotRegular
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("larger than %d bytes", MaxSize)
	}
	return data, err
}

// write replaces the file at path with a document: whole, and on the disk when it returns without an error.
func write(path string, doc json.RawMessage) error {
	var text bytes.Buffer
	if err := json.Indent(&text, doc, "", "  "); err != nil {
		return err
	}
	text.WriteByte('\n')
	dir := filepath.Dir(path)
	if err := MkdirAll(dir); err != nil {
		return err
	}
	// WithTempDir: the system's folder for temporary files may be another disk, and is open to others.
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(fileMode))
	if err != nil {
		return err
	}
	defer func() { _ = file.Cleanup() }() // what stays is swept later
	if _, err := file.Write(text.Bytes()); err != nil {
		return err
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncDir(dir)
}

// Remove deletes a file; none is no error. It is gone from the disk when Remove returns without an error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := syncDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// MkdirAll makes a folder and those above it, 0700, each on the disk before the next.
func MkdirAll(dir string) error {
	err := os.Mkdir(dir, dirMode)
	parent := filepath.Dir(dir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && parent != dir:
		if err := MkdirAll(parent); err != nil {
			return err
		}
		return MkdirAll(dir)
	case err != nil:
		return err
	}
	if err := syncDir(parent); !errors.Is(err, fs.ErrPermission) { // a folder may let us in and not be readable
		return err
	}
	return nil
}

// syncDir puts the names in a folder on the disk. Some network file systems cannot, and say so.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only synced
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// tempName is the shape of the names that renameio gives to temporary files.
var tempName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\..+\.json[0-9]+$`) })

// Sweep removes the temporary files, changed before a moment, that writers left in a folder when they died: of a folder that one process
// alone writes to all from before its start, of others those older than [StaleTempAge]. It fails silently: they only take room.
func Sweep(dir string, before time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !tempName().MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
