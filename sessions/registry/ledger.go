package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/statefile"
)

var _ sessions.Ledgers = (*Registry)(nil)

// ledgerFormat is how a ledger is stored.
var ledgerFormat = statefile.Format[sessions.Ledger]{Version: sessions.LedgerVersion}

func (r *Registry) ledgersDir() string { return filepath.Join(r.root, "deliveries") }

// ledgerPath is the file of a ledger. Unlike the slug's, its name is the ref's alone, however that is spelt.
func (r *Registry) ledgerPath(ref sessions.Ref) (string, error) {
	if _, err := sessions.ParseWorkItem(string(ref)); err != nil {
		return "", err
	}
	return filepath.Join(r.ledgersDir(), ledgerName(ref.Key())), nil
}

func ledgerName(ref sessions.Ref) string {
	return strings.TrimSuffix(lockName(string(ref)), ".lock") + extension
}

// legacyLedgers are ledgers that were written before the spellings of a ref were one work item's: their names have capitals.
// None comes up any more, so that one look is enough.
type legacyLedgers struct {
	mu      sync.Mutex // guards the fields that follow
	scanned bool
	files   map[sessions.Ref][]string // paths by [sessions.Ref.Key]
}

// find are the files of that work item which are still there.
func (o *legacyLedgers) find(dir string, ref sessions.Ref) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.scanned {
		if err := o.scan(dir); err != nil {
			return nil, err
		}
	}
	var there []string
	for _, path := range o.files[ref.Key()] {
		if _, err := os.Lstat(path); err == nil {
			there = append(there, path)
		}
	}
	return there, nil
}

// scan finds the files whose names are not as they are written now.
func (o *legacyLedgers) scan(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.scanned, o.files = true, map[sessions.Ref][]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if ref := ledgerRef(path).Key(); ref != "" && ledgerName(ref) != e.Name() {
			o.files[ref] = append(o.files[ref], path)
		}
	}
	return nil
}

// ledgerRef is the work item whose ledger a file is, by its name; one that was too long is a digest, and only what is in it
// tells. Empty: it is no ledger, or cannot be read.
func ledgerRef(path string) sessions.Ref {
	name, isLedger := strings.CutSuffix(filepath.Base(path), extension)
	ref, err := url.PathUnescape(name)
	if isLedger && err == nil {
		return sessions.Ref(ref)
	}
	var l sessions.Ledger
	if isLedger && strings.HasPrefix(name, "%sha256-") {
		l, _ = ledgerFormat.Load(path)
	}
	return l.Ref
}

// locateLedger is the file that holds the ledger now, or will. Two of one work item are an [*sessions.UnreadableError]: neither
// counts alone, and nobody said that they belong together.
func (r *Registry) locateLedger(ref sessions.Ref) (path, now string, err error) {
	if path, err = r.ledgerPath(ref); err != nil {
		return "", "", err
	}
	all, err := r.legacyLedgers.find(r.ledgersDir(), ref)
	if err != nil {
		return "", "", &sessions.UnreadableError{Path: r.ledgersDir(), Ref: ref, Err: withoutPath(err)}
	}
	if _, err := os.Lstat(path); err == nil {
		all = append(all, path)
	}
	switch len(all) {
	case 0:
		return path, path, nil
	case 1:
		return path, all[0], nil
	}
	return "", "", &sessions.UnreadableError{Path: all[0], Ref: ref,
		Err: fmt.Errorf("it and %s hold the deliveries of one work item under two spellings", strings.Join(all[1:], ", "))}
}

// LoadLedger returns the ledger of a work item; see [sessions.Ledgers].
func (r *Registry) LoadLedger(ctx context.Context, ref sessions.Ref) (sessions.Ledger, error) {
	empty := sessions.Ledger{Version: sessions.LedgerVersion, Ref: ref}
	if err := ctx.Err(); err != nil {
		return empty, err
	}
	_, path, err := r.locateLedger(ref)
	if err != nil {
		return empty, err
	}
	l, err := ledgerFormat.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty, nil
	case err == nil && !l.Ref.Same(ref):
		err = fmt.Errorf("it has the deliveries of %q", l.Ref)
	}
	if err != nil {
		return empty, &sessions.UnreadableError{Path: path, Ref: ref, Err: withoutPath(err)}
	}
	return l, nil
}

// SaveLedger writes the ledger; see [sessions.Ledgers]. A file under another spelling gets its name first.
func (r *Registry) SaveLedger(ctx context.Context, l sessions.Ledger) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, now, err := r.locateLedger(l.Ref)
	if err != nil {
		return err
	}
	if now != path {
		if err := os.Rename(now, path); err != nil {
			return fmt.Errorf("rename the deliveries of %s: %w", l.Ref, err)
		}
	}
	if err := ledgerFormat.Save(path, l); err != nil {
		return fmt.Errorf("save the deliveries of %s: %w", l.Ref, err)
	}
	return nil
}

// SweepLedgers removes the ledgers that were not written since before.
func (r *Registry) SweepLedgers(ctx context.Context, before time.Time) error {
	entries, err := os.ReadDir(r.ledgersDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if info, statErr := e.Info(); statErr == nil && strings.HasSuffix(e.Name(), extension) && info.ModTime().Before(before) {
			err = errors.Join(err, r.sweepLedger(ctx, filepath.Join(r.ledgersDir(), e.Name()), before))
		}
	}
	return err
}

// sweepLedger removes one, while nobody else is at it. One that cannot be read stays.
func (r *Registry) sweepLedger(ctx context.Context, path string, before time.Time) error {
	l, err := ledgerFormat.Load(path)
	if err != nil {
		return nil
	}
	if _, err := r.ledgerPath(l.Ref); err != nil {
		return nil
	}
	release, err := r.Lock(ctx, sessions.LedgerLockKey(l.Ref), "forget old deliveries")
	if err != nil {
		return err
	}
	defer release()
	if info, err := os.Stat(path); err != nil || !info.ModTime().Before(before) {
		return nil
	}
	return os.Remove(path)
}
