package core_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
	"the-loop/sessions/core"
)

// countingStore counts how often all records are read.
type countingStore struct {
	sessions.Store
	lists atomic.Int64
}

func (s *countingStore) List(ctx context.Context) ([]sessions.Record, []*sessions.UnreadableError, error) {
	s.lists.Add(1)
	return s.Store.List(ctx)
}

func TestASurveyReadsRecordsAndPanesOnce(t *testing.T) {
	t.Parallel()
	var panes *countingTerminal
	var records *countingStore
	w := newEnv(t, func(_ *env, o *core.Options) {
		panes, records = &countingTerminal{Terminal: o.Terminal}, &countingStore{Store: o.Store}
		o.Terminal, o.Store = panes, records
	}, sessions.Definition{Name: "one"}, sessions.Definition{Name: "two"})
	w.writeEnvFile("TOKEN=new")
	w.start("one")
	rows, err := w.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	drift := w.Drift(t.Context())
	looks, reads := panes.calls.Load(), records.lists.Load()
	s, err := w.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if looked, read := panes.calls.Load()-looks, records.lists.Load()-reads; looked != 1 || read != 1 {
		t.Errorf("%d looks at tmux, the records read %d times", looked, read)
	}
	if diff := cmp.Diff(rows, s.Rows) + cmp.Diff(drift, s.Drift); diff != "" {
		t.Error(diff)
	}
}
