package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/registry"
)

// leftovers is a state root with a session and what others left.
type leftovers struct {
	*testing.T
	app *app
	dir string
	now time.Time
}

func newLeftovers(t *testing.T) *leftovers {
	dir := t.TempDir()
	cfg := &config.Config{StateRoot: dir}
	return &leftovers{T: t, dir: dir, now: time.Now(),
		app: &app{cfg: func() *config.Config { return cfg }, registry: registry.New(dir), log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
}

// file makes a file that was last written that long ago.
func (l *leftovers) file(name string, age time.Duration, text string) {
	l.Helper()
	path := filepath.Join(l.dir, filepath.FromSlash(name))
	at := l.now.Add(-age)
	for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)} {
		if err != nil {
			l.Fatal(err)
		}
	}
}

func (l *leftovers) there(name string) bool {
	_, err := os.Stat(filepath.Join(l.dir, filepath.FromSlash(name)))
	return err == nil
}

const (
	aliveID = "0b5e0c1e-6f0a-4a6e-9f2b-6a8b1c2d3e4f"
	goneID  = "7d8f5c7a-1111-4222-8333-444455556666"
)

func (l *leftovers) record() {
	l.Helper()
	rec := sessions.Record{Version: sessions.RecordVersion, ID: aliveID, Ref: "standing:one", Status: sessions.StatusStopped,
		Definition: sessions.Definition{Name: "one", Harness: "claude", Cwd: l.dir}}
	if err := l.app.registry.Save(context.Background(), rec); err != nil {
		l.Fatal(err)
	}
}

func TestWhatDeletedSessionsLeftIsRemoved(t *testing.T) {
	t.Parallel()
	l := newLeftovers(t)
	l.record()
	const day = 24 * time.Hour
	stays := []string{"reports/" + aliveID + ".jsonl", "reports/" + aliveID + ".jsonl.1", "run/claude/" + aliveID + ".json", "run/locks/" + aliveID + ".lock",
		"reports/notes.txt", "run/locks/standing%3Aone.lock"}
	goes := []string{"reports/" + goneID + ".jsonl", "reports/" + goneID + ".jsonl.3", "run/claude/" + goneID + ".json", "run/locks/" + goneID + ".lock"}
	for _, name := range append(slices.Clone(stays), goes...) {
		l.file(name, 100*day, "x")
	}
	const fresh = "7d8f5c7a-1111-4222-8333-999999999999"
	for name, age := range map[string]time.Duration{"reports/" + fresh + ".jsonl": time.Hour, "run/locks/" + fresh + ".lock": 80 * day} {
		l.file(name, age, "x")
		stays = append(stays, name)
	}
	l.app.sweep(t.Context(), l.now)
	for _, name := range stays {
		if !l.there(name) {
			t.Errorf("%s is gone", name)
		}
	}
	for _, name := range goes {
		if l.there(name) {
			t.Errorf("%s stays", name)
		}
	}
}

func TestNothingIsRemovedWhileARecordCannotBeRead(t *testing.T) {
	t.Parallel()
	l := newLeftovers(t)
	l.record()
	l.file("local/standing/two.json", 0, "{")
	l.file("reports/"+goneID+".jsonl", 48*time.Hour, "x")
	l.app.sweep(t.Context(), l.now)
	if !l.there("reports/" + goneID + ".jsonl") {
		t.Error("the reports of a session whose record cannot be read are gone")
	}
}

func TestListsOfDeliveriesThatNobodySendsAgainAreRemoved(t *testing.T) {
	t.Parallel()
	l := newLeftovers(t)
	for _, ref := range []sessions.Ref{"github:acme/shop#1", "github:acme/shop#2"} {
		if err := l.app.registry.SaveLedger(t.Context(), sessions.Ledger{Version: sessions.LedgerVersion, Ref: ref, Deliveries: []sessions.Entry{{ID: "d1", State: sessions.EntryDone}}}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(l.dir, "deliveries", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	old := l.now.Add(-ledgerAge - time.Hour)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	l.file("deliveries/broken.json", 2*ledgerAge, "{")
	l.app.sweep(t.Context(), l.now)
	left, _ := filepath.Glob(filepath.Join(l.dir, "deliveries", "*.json"))
	if !slices.Equal(left, []string{filepath.Join(l.dir, "deliveries", "broken.json"), files[1]}) {
		t.Errorf("left are %v", left)
	}
}

// Each build that "go run" makes is copied; those that were used longest ago go.
func TestCopiesOfTheProgramAreBounded(t *testing.T) {
	t.Parallel()
	l := newLeftovers(t)
	l.file("go-build1/the-loop", 0, "this build")
	for _, c := range []struct {
		name string
		age  time.Duration
	}{{"aa", 9 * time.Hour}, {"bb", 8 * time.Hour}, {"cc", 7 * time.Hour}, {"dd", 6 * time.Hour}, {"ee", 5 * time.Hour}, {"ff", 4 * time.Hour}} {
		l.file("run/"+programName+c.name, c.age, c.name)
	}
	for range 3 {
		path, err := stable(filepath.Join(l.dir, "go-build1", "the-loop"), filepath.Join(l.dir, "run"))
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); string(data) != "this build" {
			t.Errorf("%q, %v", data, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(l.dir, "run", "*"))
	if len(left) != programsKept || l.there("run/"+programName+"aa") || l.there("run/"+programName+"bb") || !l.there("run/"+programName+"cc") {
		t.Errorf("left are %v", left)
	}
}
