package eventlog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Position is a place in a log that stays the same when the log is rotated. The zero Position is before the oldest
// event that is kept. It may be stored.
type Position struct {
	File   string    `json:"file"`  // digest of the file's first line; a file's number and its inode get new owners
	Began  time.Time `json:"began"` // time of that line
	Offset int64     `json:"offset"`
}

// Read calls fn with the events after from, oldest first, and returns the position after the last one. It skips lines
// that are no events, and leaves a last line that is still being written for the next time. When the file of from is
// gone it goes on with the oldest that is newer. An error of fn ends it: the position is then before that event. A log
// that is not there has no events.
func Read(ctx context.Context, path string, from Position, fn func(Entry) error) (Position, error) {
	files, err := openAll(path)
	if err != nil {
		return from, fmt.Errorf("read the event log: %w", err)
	}
	defer closeAll(files)
	for _, f := range filesAfter(files, from) {
		start := Position{File: f.id, Began: f.began}
		if f.id == from.File {
			start.Offset = from.Offset
		}
		if from, err = f.read(ctx, start, fn); err != nil {
			return from, err
		}
	}
	return from, nil
}

// End is the position after the last event that is there now.
func End(path string) (Position, error) {
	files, err := openAll(path)
	if err != nil {
		return Position{}, fmt.Errorf("read the event log: %w", err)
	}
	defer closeAll(files)
	if len(files) == 0 {
		return Position{}, nil
	}
	last := files[len(files)-1]
	offset, err := endOfLines(last, last.info.Size())
	if err != nil {
		return Position{}, fmt.Errorf("read the event log: %w", err)
	}
	return Position{File: last.id, Began: last.began, Offset: offset}, nil
}

// endOfLines is the offset after the last line feed before size.
func endOfLines(f io.ReaderAt, size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(block)))
		n, err := f.ReadAt(block[:end-start], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// logFile is one file of a log, open for reading.
type logFile struct {
	*os.File
	info      fs.FileInfo
	id        string // see Position.File
	began     time.Time
	isCurrent bool // the one that is written
}

// openAll opens the files of a log that have at least one line, and returns them from the oldest to the newest. It
// opens them from the newest to the oldest: a rotation meanwhile makes it meet a file twice, never miss one.
func openAll(path string) (files []logFile, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	for n := range MaxRotatedFiles + 1 {
		f, err := os.Open(rotatedPath(path, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
		}
		file := logFile{File: f, isCurrent: n == 0}
		files = append(files, file)
		if err := files[len(files)-1].identify(); err != nil {
			return files, err
		}
		if isDuplicateOrEmpty(files) {
			_ = f.Close()
			files = files[:len(files)-1]
		}
	}
	slices.Reverse(files)
	return files, nil
}

// isDuplicateOrEmpty reports whether the last file is one before it as well, or has no line.
func isDuplicateOrEmpty(files []logFile) bool {
	last := files[len(files)-1]
	return last.id == "" || slices.ContainsFunc(files[:len(files)-1], func(f logFile) bool {
		return os.SameFile(f.info, last.info)
	})
}

func closeAll(files []logFile) {
	for _, f := range files {
		_ = f.Close()
	}
}

// identify reads the first line.
func (f *logFile) identify() (err error) {
	if f.info, err = f.Stat(); err != nil {
		return err
	}
	line, err := bufio.NewReader(f).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256(line)
	f.id = hex.EncodeToString(sum[:8])
	if entry, ok := decode(line); ok {
		f.began = entry.Time
	}
	return nil
}

// filesAfter returns the files that may have something after the position.
func filesAfter(files []logFile, from Position) []logFile {
	if from.File == "" {
		return files
	}
	at := slices.IndexFunc(files, func(f logFile) bool { return f.id == from.File })
	if at < 0 { // rotated away, or removed by hand: then what is older has been read already
		at = slices.IndexFunc(files, func(f logFile) bool { return f.began.After(from.Began) })
	}
	if at < 0 {
		return nil
	}
	return files[at:]
}

// read calls fn with the events after pos.
func (f *logFile) read(ctx context.Context, pos Position, fn func(Entry) error) (Position, error) {
	lines := bufio.NewReader(io.NewSectionReader(f, pos.Offset, 1<<62))
	for {
		if err := ctx.Err(); err != nil {
			return pos, err
		}
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return pos, fmt.Errorf("read the event log: %w", err)
		}
		end := err != nil
		if end && (f.isCurrent || len(line) == 0) {
			return pos, nil
		}
		if entry, ok := decode(bytes.TrimRight(line, "\n")); ok {
			if err := fn(entry); err != nil {
				return pos, err
			}
		}
		pos.Offset += int64(len(line))
	}
}

// followEvery is how often a follower looks for events.
const followEvery = 200 * time.Millisecond

// Follow is [Read] that goes on with the events to come, across rotations, until ctx ends or fn fails; its error is
// that of ctx, of fn, or of reading. It looks five times a second; what is rotated away in between ([MaxRotatedFiles] files and more)
// is skipped.
func Follow(ctx context.Context, path string, from Position, fn func(Entry) error) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	var seen fs.FileInfo
	for {
		now, err := os.Stat(path) // before reading: what is written meanwhile shows next time
		if err != nil || seen == nil || now.Size() != seen.Size() || !os.SameFile(now, seen) {
			if from, err = Read(ctx, path, from, fn); err != nil {
				return err
			}
			seen = now
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
