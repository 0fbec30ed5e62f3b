package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"the-loop/sessions"
)

var _ sessions.Ledgers = (*Registry)(nil)

func (r *Registry) ledgersDir() string { return filepath.Join(r.root, "deliveries") }

// ledgerPath is the file of a ledger. Unlike the slug's, its name is the ref's alone.
func (r *Registry) ledgerPath(ref sessions.Ref) (string, error) {
	if _, err := sessions.ParseWorkItem(string(ref)); err != nil {
		return "", err
	}
	return filepath.Join(r.ledgersDir(), strings.TrimSuffix(lockName(string(ref)), ".lock")+extension), nil
}

// LoadLedger returns the ledger of a work item; see [sessions.Ledgers].
func (r *Registry) LoadLedger(ctx context.Context, ref sessions.Ref) (sessions.Ledger, error) {
	empty := sessions.Ledger{Version: sessions.LedgerVersion, Ref: ref}
	if err := ctx.Err(); err != nil {
		return empty, err
	}
	path, err := r.ledgerPath(ref)
	if err != nil {
		return empty, err
	}
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	var l sessions.Ledger
	if err == nil {
		l, err = decodeLedger(data, ref)
	}
	if err != nil {
		return empty, &sessions.UnreadableError{Path: path, Ref: ref, Err: reason(err)}
	}
	return l, nil
}

func decodeLedger(data []byte, ref sessions.Ref) (l sessions.Ledger, err error) {
	if err := json.Unmarshal(data, &l); err != nil {
		return l, fmt.Errorf("not a list of deliveries: %w", err)
	}
	if err := checkVersion(l.Version, sessions.LedgerVersion); err != nil {
		return l, err
	}
	if l.Ref != ref {
		return l, fmt.Errorf("it has the deliveries of %q", l.Ref)
	}
	return l, nil
}

// SaveLedger writes the ledger; see [sessions.Ledgers].
func (r *Registry) SaveLedger(ctx context.Context, l sessions.Ledger) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := r.ledgerPath(l.Ref)
	if err != nil {
		return err
	}
	return writeJSON(path, l)
}
