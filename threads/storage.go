package threads

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"the-loop/threads/chat"
)

// storeRetry is how often it is tried again to store what could not be.
const storeRetry = 2 * time.Second

// storage writes the files of a manager, and knows which of them are not as they should be. What is in memory goes on being
// true meanwhile, and sending needs no disk.
type storage struct {
	write  func(path string, v any) error // writeJSON, but in tests
	log    *slog.Logger
	wakeup chan struct{}

	mu     sync.Mutex // guards the field that follows
	behind map[string]error
}

func newStorage(log *slog.Logger) *storage {
	return &storage{write: writeJSON, log: log, wakeup: make(chan struct{}, 1), behind: map[string]error{}}
}

// Save writes a file. That it fails is logged once.
func (s *storage) Save(path string, v any) error {
	if s == nil {
		return writeJSON(path, v)
	}
	err := s.write(path, v)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.behind[path]
	switch {
	case err == nil && was:
		delete(s.behind, path)
		s.log.Info("a file is stored again", "path", path)
	case err != nil:
		if s.behind[path] = err; !was {
			s.log.Error("a file could not be stored; it is tried again", "path", path, "err", err)
		}
		wake(s.wakeup)
	}
	return err
}

// Forget says that a file is not wanted any more.
func (s *storage) Forget(path string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.behind, path)
}

// IsBehind reports whether a file is not as it should be.
func (s *storage) IsBehind(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behind[path] != nil
}

// problem is why files are not as they should be, in a few words; empty: they are.
func (s *storage) problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.behind {
		return cause(err)
	}
	return ""
}

// unstoredText is why nothing is typed while it cannot be stored what is.
func unstoredText(err error) string {
	return fmt.Sprintf("the bot's disk takes nothing (%s), and nothing is typed that could not be accounted for. "+
		"Make room on it; everything goes on by itself then.", chat.Escape(cause(err)))
}

// cause is the system's word for an error, without the path of a file.
func cause(err error) string {
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

// isDiskFull reports whether a full disk is what failed: it passes when somebody makes room.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
