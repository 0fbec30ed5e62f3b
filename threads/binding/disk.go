package binding

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"

	"the-loop/sessions/loop"
)

// Disk writes the files of a manager, and knows which of them could not be written. What is in memory stays true meanwhile, and
// sending needs no disk. See [NewDisk].
type Disk struct {
	// Check, if it is set, is called before each write; an error fails the write. It must not change while the disk is used.
	Check func(path string) error
	// Failed gets a value when a write failed, unless it has one.
	Failed chan struct{}

	log *slog.Logger

	mu     sync.Mutex // guards the field that follows
	behind map[string]error
}

// NewDisk makes a disk without any failed write.
func NewDisk(log *slog.Logger) *Disk {
	return &Disk{Failed: make(chan struct{}, 1), log: log, behind: map[string]error{}}
}

// Save calls write, which writes the file at path. A failure is logged once, until the file is written again.
func (d *Disk) Save(path string, write func() error) error {
	if d == nil {
		return write()
	}
	err := d.try(path, write)
	d.mu.Lock()
	defer d.mu.Unlock()
	_, was := d.behind[path]
	switch {
	case err == nil && was:
		delete(d.behind, path)
		d.log.Info("a file is stored again", "path", path)
	case err != nil:
		if d.behind[path] = err; !was {
			d.log.Error("a file could not be stored; it is tried again", "path", path, "err", err)
		}
		loop.Wake(d.Failed)
	}
	return err
}

func (d *Disk) try(path string, write func() error) error {
	if d.Check != nil {
		if err := d.Check(path); err != nil {
			return err
		}
	}
	return write()
}

// Forget says that a file is not needed any more.
func (d *Disk) Forget(path string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.behind, path)
}

// IsBehind reports whether a file could not be written.
func (d *Disk) IsBehind(path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.behind[path] != nil
}

// Problem is why files could not be written, in a few words; empty: all were.
func (d *Disk) Problem() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, err := range d.behind {
		return Cause(err)
	}
	return ""
}

// Cause is the system's word for an error, without the path of a file.
func Cause(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	var named *fs.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return err.Error()
}

// IsDiskFull reports whether a full disk is what failed: it passes when somebody makes room.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
