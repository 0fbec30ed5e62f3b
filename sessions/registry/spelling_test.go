package registry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"the-loop/sessions"
)

// GitHub takes names of owners and repositories for the same whatever their case.
func TestARecordIsFoundUnderEverySpellingOfItsRef(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	kept := workItemRecord("Acme/Shop#7")
	save(t, r, kept)
	for _, ref := range []sessions.Ref{"github:Acme/Shop#7", "github:acme/shop#7", "github:ACME/sHOP#7"} {
		if got, err := r.Load(t.Context(), ref); err != nil || got.Ref != kept.Ref || got.ID != kept.ID {
			t.Errorf("%s: %s, %v", ref, got.Ref, err)
		}
	}
	if err := r.Save(t.Context(), workItemRecord("acme/shop#7")); !errors.Is(err, sessions.ErrNameTaken) {
		t.Errorf("the record is written under another spelling: %v", err)
	}
	if err := r.Remove(t.Context(), "github:acme/shop#7"); err != nil {
		t.Error(err)
	}
	if _, err := r.Load(t.Context(), kept.Ref); !errors.Is(err, sessions.ErrNotRecorded) {
		t.Errorf("it is there still: %v", err)
	}
}

// writeLegacyLedger writes the ledger of a work item as it was written when spellings were told apart.
func writeLegacyLedger(t *testing.T, r *Registry, ref sessions.Ref, id string) string {
	t.Helper()
	path := filepath.Join(r.ledgersDir(), ledgerName(ref))
	l := sessions.Ledger{Version: sessions.LedgerVersion, Ref: ref, Deliveries: []sessions.LedgerEntry{{ID: id, State: sessions.DeliveryDone}}}
	if err := ledgerFormat.Save(path, l); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestALegacyLedgerIsFoundUnderEverySpelling(t *testing.T) {
	t.Parallel()
	for _, old := range []sessions.Ref{"github:Acme/Shop#7", "github:acme/shop#7", sessions.Ref("github:Acme/" + strings.Repeat("X.", 45) + "#7")} {
		r := New(t.TempDir())
		path := writeLegacyLedger(t, r, old, "d1")
		other := sessions.Ref("github:" + strings.ToUpper(old.Name()))
		l, err := r.LoadLedger(t.Context(), other)
		if err != nil || len(l.Deliveries) != 1 {
			t.Errorf("%s: %+v, %v", old, l, err)
		}
		l.Deliveries = append(l.Deliveries, sessions.LedgerEntry{ID: "d2", State: sessions.DeliveryDone})
		if err := r.SaveLedger(t.Context(), l); err != nil {
			t.Error(err)
		}
		if l, err := New(r.root).LoadLedger(t.Context(), old); err != nil || len(l.Deliveries) != 2 {
			t.Errorf("%s, later: %+v, %v", old, l, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v", old, entries, err)
		}
	}
}

func TestTwoLedgersOfOneWorkItemAreNamedAndNotMerged(t *testing.T) {
	t.Parallel()
	for _, second := range []sessions.Ref{"github:acme/shop#7", "github:acme/Shop#7"} {
		r := New(t.TempDir())
		paths := []string{writeLegacyLedger(t, r, "github:Acme/Shop#7", "d1"), writeLegacyLedger(t, r, second, "d2")}
		l, err := r.LoadLedger(t.Context(), "github:acme/shop#7")
		var bad *sessions.UnreadableError
		if !errors.As(err, &bad) || len(l.Deliveries) > 0 {
			t.Fatalf("%+v, %v", l, err)
		}
		for _, path := range paths {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name %s", err, path)
			}
		}
		if err := r.SaveLedger(t.Context(), sessions.Ledger{Version: sessions.LedgerVersion, Ref: second}); !errors.As(err, &bad) {
			t.Errorf("saved: %v", err)
		}
		if err := os.Rename(paths[0], filepath.Join(r.root, "kept.json")); err != nil {
			t.Fatal(err)
		}
		if l, err := r.LoadLedger(t.Context(), "github:Acme/Shop#7"); err != nil || len(l.Deliveries) != 1 || l.Deliveries[0].ID != "d2" {
			t.Errorf("with one moved away: %+v, %v", l, err)
		}
		for _, path := range paths[1:] {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
	}
}
