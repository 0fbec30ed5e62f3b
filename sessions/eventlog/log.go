package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"the-loop/sessions"
)

// MaxRotatedFiles is how many rotated files stay beside the one that is written.
const MaxRotatedFiles = 3

// DefaultMaxBytes is the size that a log is rotated at when [Options] do not say.
const DefaultMaxBytes = 64 << 20

// lockTimeout is how long a writer waits for another process that is in the middle of its line.
const lockTimeout = 250 * time.Millisecond

// maxWriteTries is how many files in a row may be rotated away under a writer before it gives an event up.
const maxWriteTries = 100

// Options are what may change while a log is written.
type Options struct {
	MaxBytes int64 // a file does not grow above it, unless a single line is longer; 0: DefaultMaxBytes

	Scrub func(string) string // optional: takes out of the texts of an event what must not be in the log
}

// Log appends events to a file. It may be used by many goroutines, and many processes may write one file. It implements
// [sessions.Sink].
type Log struct {
	path    string
	options func() Options
	log     *slog.Logger

	mu       sync.Mutex // guards the fields that follow
	file     *os.File
	problems map[problem]bool // that were reported and have not ended
	lost     int
}

var _ sessions.Sink = (*Log)(nil)

// problem is a kind of problem. One of each is reported until it has ended.
type problem string

const (
	problemWrite  problem = "an event could not be written"
	problemRotate problem = "the event log could not be rotated"
	problemLock   problem = "the event log could not be locked"
)

// DefaultPath is where the event log of a state root is, unless the configuration says otherwise.
func DefaultPath(root string) string { return filepath.Join(root, "logs", "events.jsonl") }

// New returns a log that appends to path. The file, and its folder, are made with the first event. Problems go to log;
// options is asked at each event and may be nil.
func New(path string, options func() Options, log *slog.Logger) *Log {
	if options == nil {
		options = func() Options { return Options{} }
	}
	return &Log{path: path, options: options, log: log, problems: map[problem]bool{}}
}

// Emit appends the event. It does not fail and does not heed the end of ctx: what happened is recorded. An event that
// cannot be written is lost, and said once to the logger.
func (l *Log) Emit(ctx context.Context, e sessions.Event) {
	if scrub := l.options().Scrub; scrub != nil {
		e.Fields = scrubFields(e.Fields, scrub) // before the lock: it may take a moment
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line := encode(time.Now(), e) // under mu, so that the times of one process ascend
	err := l.write(ctx, line)
	if err != nil {
		l.lost++
		l.report(ctx, problemWrite, err)
		return
	}
	if l.lost > 0 {
		l.log.WarnContext(ctx, "the event log is written again", "path", l.path, "lost", l.lost)
		l.lost = 0
	}
	l.report(ctx, problemWrite, nil)
}

// Close closes the file. An event that comes later opens it again.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.close()
}

func (l *Log) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// report logs a trouble that has begun. A nil error says that it has ended.
func (l *Log) report(ctx context.Context, t problem, err error) {
	if err == nil {
		delete(l.problems, t)
		return
	}
	if !l.problems[t] {
		l.problems[t] = true
		l.log.ErrorContext(ctx, string(t), "path", l.path, "err", err)
	}
}

// write appends the line to the file that has the log's name at the moment of writing.
func (l *Log) write(ctx context.Context, line []byte) error {
	for range maxWriteTries {
		if err := l.open(); err != nil {
			return err
		}
		locked := l.lock(ctx)
		current, err := l.isCurrent()
		switch {
		case err != nil:
			return errors.Join(err, l.close())
		case !current: // rotateIfFull or removed since we opened it; closing it unlocks it
			_ = l.close()
		case !locked:
			// Whoever holds the lock may hold it for ever. The kernel appends the line in one piece all the same.
			_, err := l.file.Write(line)
			return err
		case l.rotateIfFull(ctx, int64(len(line))):
			_ = l.close()
		default:
			err := l.append(line)
			return errors.Join(err, syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN))
		}
	}
	return errors.New("the file was replaced again and again")
}

// open opens the file when it is not.
func (l *Log) open() error {
	if l.file != nil {
		return nil
	}
	// O_NONBLOCK: opening a pipe that nobody reads would wait for ever.
	const flags = os.O_RDWR | os.O_APPEND | os.O_CREATE | syscall.O_NONBLOCK
	f, err := os.OpenFile(l.path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
			return err
		}
		f, err = os.OpenFile(l.path, flags, 0o600)
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", l.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	return nil
}

// lock takes the lock of the file, or reports that it did not get it in time. After that it does not wait again until
// it gets it.
func (l *Log) lock(ctx context.Context) bool {
	patience := lockTimeout
	if l.problems[problemLock] {
		patience = 0
	}
	err := flock(l.file, patience)
	l.report(ctx, problemLock, err)
	return err == nil
}

func flock(f *os.File, patience time.Duration) error {
	begin := time.Now()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK) || time.Since(begin) >= patience:
			return err
		}
		time.Sleep(pause)
	}
}

// isCurrent reports whether the open file still has the log's name.
func (l *Log) isCurrent() (bool, error) {
	ours, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, named), err
}

// rotateIfFull rotates the log if n bytes more were too many, and reports whether it did. The caller holds the lock. When
// rotating fails the log goes on growing.
func (l *Log) rotateIfFull(ctx context.Context, n int64) bool {
	limit := l.options().MaxBytes
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	info, err := l.file.Stat()
	if err != nil || info.Size() == 0 || info.Size()+n <= limit {
		return false
	}
	err = rotate(l.path)
	l.report(ctx, problemRotate, err)
	return err == nil
}

// rotate renames from the oldest to the newest, so that a crash in between loses nothing and the log's own name is the
// last to go.
func rotate(path string) error {
	for n := MaxRotatedFiles; n > 0; n-- {
		err := os.Rename(rotatedPath(path, n-1), rotatedPath(path, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rotatedPath is the name of the nth rotated file; 0 is the log itself.
func rotatedPath(path string, n int) string {
	if n == 0 {
		return path
	}
	return path + "." + strconv.Itoa(n)
}

// append writes the line in one piece, on a line of its own. The caller holds the lock.
func (l *Log) append(line []byte) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if torn, err := endsMidLine(l.file, info.Size()); err != nil {
		return err
	} else if torn {
		line = append([]byte("\n"), line...)
	}
	n, err := l.file.Write(line)
	if err != nil && n > 0 { // the disk is full: take back the half of a line
		err = errors.Join(err, l.file.Truncate(info.Size()))
	}
	return err
}

// endsMidLine reports whether a writer died in the middle of the last line.
func endsMidLine(f io.ReaderAt, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return last[0] != '\n', err
}
