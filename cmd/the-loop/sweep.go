package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
)

// How old what a session left behind is before it is removed. A hook that ends late writes a moment after its session was
// deleted, and a lock must be nobody's any more.
const (
	staleFileAge   = 24 * time.Hour
	staleLockAge   = 90 * 24 * time.Hour
	staleLedgerAge = 90 * 24 * time.Hour // of a work item that nothing was delivered to
)

// sweepDeletedSessions removes what sessions that are no more left behind: reports, settings, locks, and the ids of deliveries that nobody
// sends again. What cannot be removed only takes room. Where a record cannot be read nothing is removed: its session may
// be one of those.
func (a *app) sweepDeletedSessions(ctx context.Context, now time.Time) {
	records, unreadable, err := a.registry.List(ctx)
	if err != nil || len(unreadable) > 0 {
		return
	}
	alive := map[string]bool{}
	for _, r := range records {
		alive[r.ID] = true
	}
	root := a.cfg().StateRoot
	for dir, age := range map[string]time.Duration{"reports": staleFileAge, "run/claude": staleFileAge, "run/locks": staleLockAge} {
		if err := sweepFolder(filepath.Join(root, filepath.FromSlash(dir)), alive, now.Add(-age)); err != nil {
			a.log.Warn("cannot remove files of deleted sessions", "err", err)
		}
	}
	if err := a.registry.SweepLedgers(ctx, now.Add(-staleLedgerAge)); err != nil {
		a.log.Warn("cannot remove old delivery ledgers", "err", err)
	}
}

// sweepFolder removes the files of a folder that are named by a session which is not alive, and were not written since before.
func sweepFolder(dir string, alive map[string]bool, before time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	const idLength = 36
	for _, e := range entries {
		name := e.Name()
		if len(name) <= idLength || name[idLength] != '.' || uuid.Validate(name[:idLength]) != nil || alive[name[:idLength]] {
			continue
		}
		if info, statErr := e.Info(); statErr == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	return err
}

// maxProgramCopies is how many copies of this program stay, for the agents whose hooks call one.
const maxProgramCopies = 5

// sweepProgramCopies removes the copies of this program that were used longest ago.
func sweepProgramCopies(dir string) {
	copies, _ := filepath.Glob(filepath.Join(dir, programCopyPrefix+"*")) // the pattern is well-formed
	used := map[string]time.Time{}
	for _, path := range copies {
		if info, err := os.Stat(path); err == nil {
			used[path] = info.ModTime()
		}
	}
	slices.SortFunc(copies, func(a, b string) int { return used[b].Compare(used[a]) })
	for _, path := range copies[min(maxProgramCopies, len(copies)):] {
		_ = os.Remove(path) // one that stays only takes room
	}
}
