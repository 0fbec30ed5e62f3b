package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxBotLogBytes is the size that bot.log is rotated at. One older file stays beside it.
const maxBotLogBytes = 16 << 20

// openBotLog writes the bot's log beside the events, and to also, as scrub leaves it.
func openBotLog(root string, also io.Writer, scrub func(string) string) (*slog.Logger, func(), error) {
	dir := filepath.Join(root, "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	f := &rotatingFile{path: filepath.Join(dir, "bot.log"), max: maxBotLogBytes}
	if err := f.open(); err != nil {
		return nil, nil, err
	}
	lines := slog.NewTextHandler(scrubbingWriter{io.MultiWriter(f, also), scrub}, nil)
	return slog.New(unauthorizedLogLimiter{Handler: lines, state: &unauthorizedLogState{}}), f.close, nil
}

// rotatingFile appends to a file that is renamed when it is full. It may be used by many goroutines.
type rotatingFile struct {
	path string
	max  int64

	mu   sync.Mutex // guards the fields that follow
	file *os.File
	info fs.FileInfo
	size int64
}

// Write appends a line. When rotating fails the file goes on growing.
func (f *rotatingFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size > 0 && f.size+int64(len(line)) > f.max && os.Rename(f.path, f.path+".1") == nil || f.wasReplaced() {
		if err := f.openLocked(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

// wasReplaced reports whether somebody else rotated or removed the file.
func (f *rotatingFile) wasReplaced() bool {
	now, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, f.info)
}

func (f *rotatingFile) open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.openLocked()
}

// openLocked opens the file that has the name now. The one before stays in use when that fails. The caller holds mu.
func (f *rotatingFile) openLocked() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if f.file != nil {
		_ = f.file.Close() // all was written
	}
	f.file, f.info, f.size = file, info, info.Size()
	return nil
}

func (f *rotatingFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.file.Close() // all was written
}

// What people who are not let in may have written into the log: the same about one of them once in unauthorizedLogWindow, and
// maxUnauthorizedLines lines in all meanwhile. The event log has each attempt.
const (
	unauthorizedLogWindow = time.Hour
	maxUnauthorizedLines  = 60
)

// unauthorizedLogLimiter is a handler that passes on everything but what people who are not let in make it say again and again. Those
// lines name a member and why it was not let in.
type unauthorizedLogLimiter struct {
	slog.Handler
	state *unauthorizedLogState
}

// Handle implements [slog.Handler].
func (h unauthorizedLogLimiter) Handle(ctx context.Context, r slog.Record) error {
	member, why := "", ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "member":
			member = a.Value.String()
		case "because":
			why = a.Value.String()
		}
		return true
	})
	if member == "" || why == "" {
		return h.Handler.Handle(ctx, r)
	}
	say, unsaid := h.state.allow(r.Message+"\x00"+member+"\x00"+why, r.Time)
	if !say {
		return nil
	}
	if unsaid > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", unsaid))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h unauthorizedLogLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return unauthorizedLogLimiter{Handler: h.Handler.WithAttrs(attrs), state: h.state}
}

// WithGroup implements [slog.Handler].
func (h unauthorizedLogLimiter) WithGroup(name string) slog.Handler {
	return unauthorizedLogLimiter{Handler: h.Handler.WithGroup(name), state: h.state}
}

// unauthorizedLogState is what was said of whom since when.
type unauthorizedLogState struct {
	mu          sync.Mutex // guards the fields that follow
	windowStart time.Time
	logged      map[string]bool
	suppressed  int // lines that were kept back since the last one that was said
}

// allow reports whether a line is to be said, and how many were not since the last one.
func (s *unauthorizedLogState) allow(line string, now time.Time) (say bool, unsaid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logged == nil || now.Sub(s.windowStart) >= unauthorizedLogWindow {
		s.windowStart, s.logged = now, map[string]bool{}
	}
	if s.logged[line] || len(s.logged) >= maxUnauthorizedLines {
		s.suppressed++
		return false, 0
	}
	s.logged[line] = true
	unsaid, s.suppressed = s.suppressed, 0
	return true, unsaid
}
