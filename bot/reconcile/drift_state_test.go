package reconcile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

func TestTheDriftStateOfVersion1IsRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(filepath.Join("testdata", "v1"))); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	want := driftState{Version: 1,
		Message: &driftMessage{Channel: "C0123", Nonce: "n-1", TriedAt: at, MaybePosted: true, TS: "1767225600.000100", ShownHash: "sum", Dismissed: true},
		Restart: &requestedRestart{RequestedBy: "U0123", Started: at},
		LastResult: []sessions.RestartRow{{Ref: "standing:helper", ID: "0b0e1a3c-90e4-4f3c-9d0c-000000000001", TmuxTarget: "loop-standing-helper",
			Outcome: sessions.OutcomeFailed, Detail: "why", Stale: []string{"TOKEN"}}}}
	for range 2 {
		got, err := loadDriftState(root)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
		if err := got.save(root); err != nil {
			t.Fatal(err)
		}
	}
}
