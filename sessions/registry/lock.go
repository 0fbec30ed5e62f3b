package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"the-loop/sessions"
	"the-loop/sessions/loop"
	"the-loop/sessions/statefile"
)

// A lock that is held is asked for again after a pause that doubles from the one to the other.
const (
	lockPollMin = 5 * time.Millisecond
	lockPollMax = 50 * time.Millisecond
)

// lockNote is what the holder of a session's lock writes into the lock file. Whether it is held is the lock's word.
type lockNote struct {
	PID  int    `json:"pid"`
	Verb string `json:"verb"`
}

// Lock takes the lock named key; see [sessions.Locker]. The error is a [*sessions.LockedError] whose PID is 0 when the
// holder has not said who it is; when ctx ended it wraps that as well. The release may be called more than once.
func (r *Registry) Lock(ctx context.Context, key, verb string) (func(), error) {
	if key == "" {
		return nil, errors.New("lock: the key is empty")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", key, err)
	}
	path := filepath.Join(r.locksDir(), lockName(key))
	wait, cancel := context.WithTimeout(ctx, r.lockWait)
	defer cancel()
	release, err := acquire(wait, path, lockNote{PID: os.Getpid(), Verb: verb}, lockPollMax)
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", key, err)
	case release != nil:
		return release, nil
	}
	locked := &sessions.LockedError{Key: key}
	var h lockNote
	if readLockNote(path, &h) {
		locked.PID, locked.Verb = h.PID, h.Verb
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w (%w)", locked, ctx.Err())
	}
	return nil, locked
}

// acquire takes the lock at path and writes who into it. It pauses for longest at most between two tries. Without an
// error and without a release, ctx ended first.
func acquire(ctx context.Context, path string, who any, longest time.Duration) (release func(), err error) {
	note, err := json.Marshal(who)
	if err != nil {
		return nil, err
	}
	// Each flock.Flock opens the file anew, so that the lock holds between the goroutines of a process as well.
	file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
	got, err := poll(ctx, longest, func() (bool, error) { return tryLock(file) })
	if err != nil || !got {
		return nil, err
	}
	erase := writeLockNote(path, note)
	return sync.OnceFunc(func() {
		erase() // so that nobody takes us for the next holder
		_ = file.Unlock()
	}), nil
}

// lockNoteSize is the size in bytes of every lock file. The note is padded and written in place: ext4 flushes a file that
// was truncated before it was written, which costs milliseconds.
const lockNoteSize = 256

// writeLockNote writes what the holder says into the lock file and returns what blanks it again. It fails silently: on a
// full disk the lock holds without a name.
func writeLockNote(path string, note []byte) (erase func()) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil || len(note) >= lockNoteSize {
		return func() { _ = f.Close() }
	}
	blank := bytes.Repeat([]byte(" "), lockNoteSize)
	blank[lockNoteSize-1] = '\n'
	padded := bytes.Clone(blank)
	copy(padded, note)
	_, _ = f.WriteAt(padded, 0)
	return func() {
		_, _ = f.WriteAt(blank, 0)
		_ = f.Close()
	}
}

// tryLock makes the folder when it is missing.
func tryLock(file *flock.Flock) (bool, error) {
	got, err := file.TryLock()
	if !errors.Is(err, fs.ErrNotExist) {
		return got, err
	}
	if err := statefile.MkdirAll(filepath.Dir(file.Path())); err != nil {
		return false, err
	}
	return file.TryLock()
}

// poll calls try until it succeeds, fails, or ctx ends, with pauses that differ from one waiter to the next.
func poll(ctx context.Context, longest time.Duration, try func() (bool, error)) (bool, error) {
	for pause := lockPollMin; ; pause = min(2*pause, longest) {
		if got, err := try(); got || err != nil {
			return got, err
		}
		if !loop.Sleep(ctx, pause/2+rand.N(pause)) {
			return false, nil
		}
	}
}

// readLockNote decodes what a holder wrote, or reports that it cannot: the holder may be about to write it.
func readLockNote(path string, who any) bool {
	data, err := statefile.Read(path)
	return err == nil && json.Unmarshal(data, who) == nil
}

// maxLockName is the length above which a file name is a digest of its key; file systems take 255 bytes.
const maxLockName = 200

// lockName is the file name of a key: small letters, digits and '-' stand for themselves, any other byte is %XX, so that
// no two keys share a name, not even where case does not count. The "%sha256-" of a digest is no byte.
func lockName(key string) string {
	var name strings.Builder
	for i := range len(key) {
		c := key[i]
		if c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, "%%%02X", c)
		}
	}
	if name.Len() > maxLockName {
		return fmt.Sprintf("%%sha256-%x.lock", sha256.Sum256([]byte(key)))
	}
	return name.String() + ".lock"
}
