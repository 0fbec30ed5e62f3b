package registry

import (
	"path/filepath"
	"sync"
	"time"

	"the-loop/sessions"
)

// Registry is the state below one root. It may be used by many goroutines, and many processes may have one each on the
// same root. It implements [sessions.Store].
type Registry struct {
	root          string
	lockWait      time.Duration
	sweep         sync.Once // of temporary files, at the first write
	legacyLedgers legacyLedgers
}

var _ sessions.Store = (*Registry)(nil)

// New returns the registry of the state root. It touches nothing on disk.
func New(root string) *Registry {
	return &Registry{root: root, lockWait: sessions.LockWait}
}

func (r *Registry) standingDir() string  { return filepath.Join(r.root, "local", "standing") }
func (r *Registry) workItemsDir() string { return filepath.Join(r.root, "local") }
func (r *Registry) locksDir() string     { return filepath.Join(r.root, "run", "locks") }
func (r *Registry) botLock() string      { return filepath.Join(r.root, "run", "bot.lock") }
func (r *Registry) botFile() string      { return filepath.Join(r.root, "run", "bot.json") }
