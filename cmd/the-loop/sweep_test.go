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

// sweepEnv is a state root with a session and what others left.
type sweepEnv struct {
	*testing.T
	app *app
	dir string
	now time.Time
}

func newSweepEnv(t *testing.T) *sweepEnv {
	dir := t.TempDir()
	cfg := &config.Config{StateRoot: dir}
	return &sweepEnv{T: t, dir: dir, now: time.Now(),
		app: &app{cfg: func() *config.Config { return cfg }, registry: registry.New(dir), log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
}

// writeFile makes a file that was last written that long ago.
func (l *sweepEnv) writeFile(name string, age time.Duration, text string) {
	l.Helper()
	path := filepath.Join(l.dir, filepath.FromSlash(name))
	at := l.now.Add(-age)
	for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)} {
		if err != nil {
			l.Fatal(err)
		}
	}
}

func (l *sweepEnv) exists(name string) bool {
	_, err := os.Stat(filepath.Join(l.dir, filepath.FromSlash(name)))
	return err == nil
}

const (
	liveSessionID    = "0b5e0c1e-6f0a-4a6e-9f2b-6a8b1c2d3e4f"
	deletedSessionID = "7d8f5c7a-1111-4222-8333-444455556666"
)

func (l *sweepEnv) saveRecord() {
	l.Helper()
	rec := sessions.Record{Version: sessions.RecordVersion, ID: liveSessionID, Ref: "standing:one", Status: sessions.StatusStopped,
		Definition: sessions.Definition{Name: "one", Harness: "claude", Cwd: l.dir}}
	if err := l.app.registry.Save(context.Background(), rec); err != nil {
		l.Fatal(err)
	}
}

func TestFilesOfDeletedSessionsAreRemoved(t *testing.T) {
	t.Parallel()
	l := newSweepEnv(t)
	l.saveRecord()
	const day = 24 * time.Hour
	stays := []string{"reports/" + liveSessionID + ".jsonl", "reports/" + liveSessionID + ".jsonl.1", "run/claude/" + liveSessionID + ".json", "run/locks/" + liveSessionID + ".lock",
		"reports/notes.txt", "run/locks/standing%3Aone.lock"}
	goes := []string{"reports/" + deletedSessionID + ".jsonl", "reports/" + deletedSessionID + ".jsonl.3", "run/claude/" + deletedSessionID + ".json", "run/locks/" + deletedSessionID + ".lock"}
	for _, name := range append(slices.Clone(stays), goes...) {
		l.writeFile(name, 100*day, "x")
	}
	const fresh = "7d8f5c7a-1111-4222-8333-999999999999"
	for name, age := range map[string]time.Duration{"reports/" + fresh + ".jsonl": time.Hour, "run/locks/" + fresh + ".lock": 80 * day} {
		l.writeFile(name, age, "x")
		stays = append(stays, name)
	}
	l.app.sweepDeletedSessions(t.Context(), l.now)
	for _, name := range stays {
		if !l.exists(name) {
			t.Errorf("%s is gone", name)
		}
	}
	for _, name := range goes {
		if l.exists(name) {
			t.Errorf("%s stays", name)
		}
	}
}

func TestNothingIsRemovedWhileARecordCannotBeRead(t *testing.T) {
	t.Parallel()
	l := newSweepEnv(t)
	l.saveRecord()
	l.writeFile("local/standing/two.json", 0, "{")
	l.writeFile("reports/"+deletedSessionID+".jsonl", 48*time.Hour, "x")
	l.app.sweepDeletedSessions(t.Context(), l.now)
	if !l.exists("reports/" + deletedSessionID + ".jsonl") {
		t.Error("the reports of a session whose record cannot be read are gone")
	}
}

func TestOldDeliveryLedgersAreRemoved(t *testing.T) {
	t.Parallel()
	l := newSweepEnv(t)
	for _, ref := range []sessions.Ref{"github:acme/shop#1", "github:acme/shop#2"} {
		if err := l.app.registry.SaveLedger(t.Context(), sessions.Ledger{Version: sessions.LedgerVersion, Ref: ref, Deliveries: []sessions.LedgerEntry{{ID: "d1", State: sessions.DeliveryDone}}}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(l.dir, "deliveries", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	old := l.now.Add(-staleLedgerAge - time.Hour)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	l.writeFile("deliveries/broken.json", 2*staleLedgerAge, "{")
	l.app.sweepDeletedSessions(t.Context(), l.now)
	left, _ := filepath.Glob(filepath.Join(l.dir, "deliveries", "*.json"))
	if !slices.Equal(left, []string{filepath.Join(l.dir, "deliveries", "broken.json"), files[1]}) {
		t.Errorf("left are %v", left)
	}
}

// Each build that "go run" makes is copied; those that were used longest ago go.
func TestCopiesOfTheProgramAreBounded(t *testing.T) {
	t.Parallel()
	l := newSweepEnv(t)
	l.writeFile("go-build1/the-loop", 0, "this build")
	for _, c := range []struct {
		name string
		age  time.Duration
	}{{"aa", 9 * time.Hour}, {"bb", 8 * time.Hour}, {"cc", 7 * time.Hour}, {"dd", 6 * time.Hour}, {"ee", 5 * time.Hour}, {"ff", 4 * time.Hour}} {
		l.writeFile("run/"+programCopyPrefix+c.name, c.age, c.name)
	}
	for range 3 {
		path, err := stableProgramPath(filepath.Join(l.dir, "go-build1", "the-loop"), filepath.Join(l.dir, "run"))
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); string(data) != "this build" {
			t.Errorf("%q, %v", data, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(l.dir, "run", "*"))
	if len(left) != maxProgramCopies || l.exists("run/"+programCopyPrefix+"aa") || l.exists("run/"+programCopyPrefix+"bb") || !l.exists("run/"+programCopyPrefix+"cc") {
		t.Errorf("left are %v", left)
	}
}
