package registry

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

	// maxFile is the size in bytes above which a state file is not read.
	maxFile = 16 << 20

	// staleTempAge is the age at which a temporary file has lost its writer for certain.
	staleTempAge = time.Hour
)

// errNotRegular says that something other than a file stands where a state file should.
var errNotRegular = errors.New("not a regular file")

// readFile reads a regular file. It follows no link and does not wait at a pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a link, a socket
		return nil, errNotRegular
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	return data, err
}

// writeJSON replaces the file at path with v: whole, and on the disk when it returns without an error.
func writeJSON(path string, v any) error {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return err
	}
	// WithTempDir: the system's folder for temporary files may be another disk, and is open to others.
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(fileMode))
	if err != nil {
		return err
	}
	defer func() { _ = file.Cleanup() }()
	if _, err := file.Write(data.Bytes()); err != nil {
		return err
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncDir(dir)
}

// makeDir makes a folder and those above it, each on the disk before the next.
func makeDir(dir string) error {
	err := os.Mkdir(dir, dirMode)
	parent := filepath.Dir(dir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && parent != dir:
		if err := makeDir(parent); err != nil {
			return err
		}
		return makeDir(dir)
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
	defer func() { _ = f.Close() }()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// tempName is the shape of the names that renameio gives to temporary files.
var tempName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\..+\.json[0-9]+$`) })

// sweepTemps removes the temporary files that writers left in dir when they died. It fails silently: they only take
// room.
func sweepTemps(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !tempName().MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > staleTempAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
