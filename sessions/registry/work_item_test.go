package registry

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

// workItemRecord is the record of a work item.
func workItemRecord(name string) sessions.Record {
	rec := validRecord("one")
	rec.Definition.Name, rec.Definition.Source = name, sessions.SourceRegistered
	rec.Ref, rec.Status = rec.Definition.Ref(), sessions.StatusNew
	return rec
}

func TestR3_2_WorkItemsAndStandingSessionsHaveFoldersOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	item := workItemRecord("standing/one#1")
	save(t, r, item)
	save(t, r, validRecord("one"))
	if _, err := os.Stat(filepath.Join(r.root, "local", "github-standing-one-1.json")); err != nil {
		t.Error(err)
	}
	got, err := r.Load(t.Context(), item.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(item, got); diff != "" {
		t.Error(diff)
	}
	records, broken, err := r.List(t.Context())
	refs := []sessions.Ref{}
	for _, rec := range records {
		refs = append(refs, rec.Ref)
	}
	if err != nil || len(broken) > 0 || !slices.Equal(refs, []sessions.Ref{item.Ref, "standing:one"}) {
		t.Errorf("%v, %v, %v", refs, broken, err)
	}
	if err := r.Remove(t.Context(), item.Ref); err != nil {
		t.Error(err)
	}
	if _, err := r.Load(t.Context(), "standing:one"); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

func TestTwoWorkItemsWithOneSlugAreNeverMixed(t *testing.T) {
	t.Parallel()
	for first, others := range map[string][]string{
		"a-b/c#1": {"a/b-c#1", "A/B-c#1"},
		"a/b.c#1": {"a/b-c#1", "a-b/c#1", "A-B/c#1"},
	} {
		r := New(t.TempDir())
		kept := workItemRecord(first)
		save(t, r, kept)
		for _, name := range others {
			other := workItemRecord(name)
			_, loadErr := r.Load(t.Context(), other.Ref)
			for verb, err := range map[string]error{"load": loadErr, "save": r.Save(t.Context(), other), "remove": r.Remove(t.Context(), other.Ref)} {
				var refusal *sessions.Refusal
				if !errors.As(err, &refusal) || !errors.Is(err, sessions.ErrNameTaken) {
					t.Errorf("%s of %s beside %s: %v", verb, name, first, err)
				}
			}
		}
		if got, err := r.Load(t.Context(), kept.Ref); err != nil || got.Ref != kept.Ref {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestAWorkItemsFileThatCannotBeUsedIsNotAbsent(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	save(t, r, workItemRecord("acme/shop#1"))
	for name, text := range map[string]string{"github-acme-shop-2.json": "{", "github-a-b-3.json": `{"version":1}`, "nonsense.json": "x"} {
		if err := os.WriteFile(filepath.Join(r.workItemsDir(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	records, broken, err := r.List(t.Context())
	if err != nil || len(records) != 1 || len(broken) != 3 || broken[1].Slug != "github-acme-shop-2" || broken[1].Ref != "" {
		t.Errorf("%+v, %v, %v", records, broken, err)
	}
	var bad *sessions.UnreadableError
	if _, err := r.Load(t.Context(), "github:acme/shop#2"); !errors.As(err, &bad) || errors.Is(err, sessions.ErrNotRecorded) {
		t.Errorf("taken for absent: %v", err)
	}
}

func TestALedgerComesBackAsItWasSaved(t *testing.T) {
	t.Parallel()
	r := New(t.TempDir())
	empty, err := r.LoadLedger(t.Context(), "github:Acme/shop#1")
	if err != nil || len(empty.Deliveries) > 0 || empty.Ref != "github:Acme/shop#1" {
		t.Errorf("%+v, %v", empty, err)
	}
	want := empty
	want.Deliveries = []sessions.LedgerEntry{{ID: "d1", State: sessions.DeliveryInFlight, At: time.Now().UTC(), Session: "s",
		Intent: sessions.Intent{Sum: "x", Conversation: "c", Offset: "p"}}, {ID: "d2", State: sessions.DeliveryDone}}
	if err := r.SaveLedger(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := r.LoadLedger(t.Context(), want.Ref)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if other, err := r.LoadLedger(t.Context(), "github:acme/SHOP#1"); err != nil || len(other.Deliveries) != 2 {
		t.Errorf("another spelling has %+v, %v", other, err)
	}
	if _, err := r.LoadLedger(t.Context(), "standing:one"); err == nil {
		t.Error("a standing session has a ledger")
	}
	path, _ := r.ledgerPath(want.Ref)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var bad *sessions.UnreadableError
	if _, err := r.LoadLedger(t.Context(), want.Ref); !errors.As(err, &bad) || bad.Path != path {
		t.Errorf("%v", err)
	}
}
